"""The HTML page of a report, in one self-contained file."""
