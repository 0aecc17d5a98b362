"""Progress on standard error, so that standard output stays clean for pipes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ally.types import Progress as Report

stderr = Console(stderr=True)
stdout = Console()


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
