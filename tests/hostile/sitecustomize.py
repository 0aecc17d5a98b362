"""Read by every Python that finds this folder on its path: processes that a watched command starts."""

from report_acts import report_acts

report_acts()
