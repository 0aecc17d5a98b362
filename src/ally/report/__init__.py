"""Statistics, curves and pages from results."""

from ally.report.curves import draw_curves
from ally.report.page import cells, write_page
from ally.report.summary import Comparison, compare, sentence

__all__ = ["Comparison", "cells", "compare", "draw_curves", "sentence", "write_page"]
