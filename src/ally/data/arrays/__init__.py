"""Arrays: what `ally.query` reads by row, and features without anything to look at as samples."""
