"""Results on standard output, notes on standard error, as plain text: no markup in ids and labels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from ally.cli.console import make_printable, stderr, stdout


def say(*lines: str) -> None:
    for line in lines:
        stdout.print(Text(make_printable(line)), soft_wrap=True)


def note(*lines: str) -> None:
    for line in lines:
        stderr.print(Text(make_printable(line)), soft_wrap=True)


def dump(value: Any) -> None:
    """JSON; dates and the like as text."""
    print(json.dumps(value, indent=2, default=str, allow_nan=False))


def counted(n: int, one: str, many: str | None = None) -> str:
    """``1 label``, ``2 labels``."""
    return f"{n} {one if n == 1 else many or one + 's'}"


def few(values: Iterable[str], most: int = 5) -> str:
    """The first values, and how many more there are."""
    found = list(values)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")


def problem_lines(problems: Sequence[str], most: int = 5) -> list[str]:
    """Problems of single samples, one per line."""
    more = len(problems) - most
    return [f"  {problem}" for problem in problems[:most]] + ([f"  … (--json lists {more} more)"] if more > 0 else [])


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """A table of any width: ids are never cut."""
    cells = [list(columns), *([make_printable(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(row[place]) for row in cells) for place in range(len(columns))]

    def padded(cell: str, width: int) -> str:
        space = " " * (width - cell_len(cell))
        return space + cell if right else cell + space

    return ["  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
