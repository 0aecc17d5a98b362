"""The statistics of a report: curves, paired comparisons, tests, labels needed."""
