"""Statistics, curves and pages from results."""

from ally.report.answer import answer, sentences
from ally.report.comparison import Comparison, compare, sentence
from ally.report.read import read_results
from ally.report.series import add_series
from ally.report.settings import Settings, read_settings
from ally.report.summary import Summary, summarise
from ally.report.write import load, write_report, write_summary

__all__ = [
    "Comparison",
    "Settings",
    "Summary",
    "add_series",
    "answer",
    "compare",
    "load",
    "read_results",
    "read_settings",
    "sentence",
    "sentences",
    "summarise",
    "write_report",
    "write_summary",
]
