"""Figures look alike everywhere, and a settings file of matplotlib in the current folder has no say in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def use_own_style() -> Iterator[None]:
    """Matplotlib's own defaults while figures are drawn and saved. It reads ``matplotlibrc`` from the current folder,
    which may be somebody else's: that could start LaTeX. Names are drawn as they are, not read as formulas, and equal
    figures give equal files."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"text.parse_math": False, "svg.hashsalt": "ally"})
        yield
