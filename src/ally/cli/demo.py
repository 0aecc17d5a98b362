"""``ally demo``: does ALLY choose better than chance?"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ally.cli.console import live_progress, stderr, stdout


def demo(
    out: Annotated[Path, typer.Option(help="Folder for results.csv, curves.png and report.html.")] = Path("ally-demo"),
    seeds: Annotated[int, typer.Option(help="Campaigns per strategy and data set.", min=2)] = 5,
) -> None:
    """Compare ALLY with every baseline on scikit-learn's digits and diabetes (about a minute)."""
    import torch

    import ally
    from ally.experiment import run_cells
    from ally.experiment.demo import demo_cells, demo_trial
    from ally.report import cells, compare, draw_curves, sentence, write_page

    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    stderr.print(f"digits and diabetes, every strategy, {seeds} seeds: about a minute on 2 cores", highlight=False)
    with live_progress() as progress:
        results = run_cells(demo_trial, list(demo_cells(seeds)), min(os.cpu_count() or 1, 8), progress)
    results.to_csv(out / "results.csv", index=False)
    comparisons = compare(results)
    draw_curves(results, out / "curves.png")
    answers = [sentence(c) for c in comparisons if c.strategy == "ally"]
    facts = {
        "Data": "scikit-learn's digits (1197 in the pool, 600 for testing) and diabetes (300 and 142); one fixed split",
        "Protocol": "a random start, then batches; every strategy has the same trainer, starting sets and initial weights; "
        "labels come from an oracle; no validation labels are used",
        "Mean": "the test metric averaged over the rounds after the first; gains are paired by seed, intervals are Student's t, "
        "not corrected for the number of strategies compared; with few seeds they show large effects only",
        "Versions": f"ally {ally.__version__}, torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}",
        "Time": f"{time.perf_counter() - began:.0f} s",
    }
    write_page(out / "report.html", "Does ALLY choose better than chance?", answers, comparisons, out / "curves.png", facts)
    for dataset in dict.fromkeys(c.dataset for c in comparisons):
        part = [c for c in comparisons if c.dataset == dataset]
        table = Table(title=f"{dataset}: test {part[0].metric}", box=None, header_style="bold", title_justify="left", pad_edge=False)
        for name in ("strategy", "mean", "final", "gain", "95% interval", "against random"):
            table.add_column(name, justify="left" if name in ("strategy", "against random") else "right", no_wrap=True)
        for c in part:
            strategy, mean, final, gain, interval, _, verdict = cells(c)
            table.add_row(strategy, mean, final.split(" ")[0], gain, interval, verdict, style="bold" if c.strategy == "ally" else "")
        stdout.print(table, "")
    for answer in answers:
        stdout.print(answer, highlight=False, soft_wrap=True)
    stdout.print(f"{out / 'report.html'}, curves.png and results.csv written in {time.perf_counter() - began:.0f} s", highlight=False)
