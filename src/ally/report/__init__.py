"""Statistics, curves and pages from results."""

from ally.report.answer import answer, sentences
from ally.report.grid import Description, read_description, read_results
from ally.report.statistics.comparison import Comparison, compare, sentence
from ally.report.statistics.series import add_series
from ally.report.statistics.summary import Summary, summarise
from ally.report.write import load, write_report, write_summary

__all__ = [
    "Comparison",
    "Description",
    "Summary",
    "add_series",
    "answer",
    "compare",
    "load",
    "read_description",
    "read_results",
    "sentence",
    "sentences",
    "summarise",
    "write_report",
    "write_summary",
]
