"""Cells of a CSV file that no spreadsheet runs as a formula, and that come back as they were.

A spreadsheet runs a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line end. Such a text gets an
apostrophe in front, unless it is a number such as -1.5. So does a label that is a text but looks like a number, a truth
value or nothing, so that ``"1"`` and ``1`` differ. An apostrophe is taken away only where it would have been put; other
texts may begin with one.
"""

from __future__ import annotations

import re
from typing import Any

DIGITS = 309
"""The most digits of a whole number: a longer one is too large for a float, and so for any target."""
WRITTEN = {
    int: re.compile(rf"-?(0|[1-9]\d{{0,{DIGITS - 1}}})"),
    float: re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?"),
}
"""How a number is written: no leading zeros, no words."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
TRUTH = {"true": True, "false": False}


def text_cell(text: str) -> str:
    return f"'{text}" if _guarded(text) else text


def read_text(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _guarded(cell[1:]) else cell


def label_cell(label: Any) -> str:
    """Numbers and truth values as they are, texts guarded."""
    if isinstance(label, bool):
        return str(label).lower()
    if isinstance(label, (int, float)):
        return repr(label)
    return f"'{label}" if _guarded_label(label) else str(label)


def read_label(cell: str) -> Any:
    """A text, a whole number, a float or a truth value."""
    if cell.startswith("'") and _guarded_label(cell[1:]):
        return cell[1:]
    if cell in TRUTH:
        return TRUTH[cell]
    for kind, written in WRITTEN.items():
        if written.fullmatch(cell):
            return kind(cell)
    return cell


def _guarded(text: str) -> bool:
    if WRITTEN[float].fullmatch(text):
        return False
    return text.startswith(FORMULA) or (text.startswith("'") and _guarded(text[1:]))


def _guarded_label(text: str) -> bool:
    looks = text == "" or text in TRUTH or WRITTEN[float].fullmatch(text) is not None
    return looks or text.startswith(FORMULA) or (text.startswith("'") and _guarded_label(text[1:]))
