"""What reaches the terminal. Progress is on standard error, so that standard output stays clean for pipes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ally.types import Progress as Report

stderr = Console(stderr=True)
stdout = Console()


def make_printable(text: str) -> str:
    """Escapes what is no character to see: the name of a file could move the cursor, or turn the line around."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def write_lines(lines: Iterable[str]) -> None:
    """Lines of a table on standard output: printable on a terminal, as they are in a pipe or a file."""
    terminal = sys.stdout.isatty()
    for line in lines:
        sys.stdout.write(f"{make_printable(line) if terminal else line}\n")


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """In the place of `warnings.showwarning`: one line, without the code that warned."""
    print(f"warning: {make_printable(str(message))}", file=sys.stderr)


@contextmanager
def live_progress() -> Iterator[Report]:
    """A bar per stage; on a terminal they are removed when done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        stages = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in stages:
                stages[stage] = bars.add_task(stage, total=total or None)
            bars.update(stages[stage], completed=done, total=total or None)

        yield report
