"""Images: a folder of them as samples, their pixels, and the small copies a learner reads."""
