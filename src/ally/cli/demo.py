"""``ally demo``: does ALLY choose better than chance?"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Annotated

import typer

from ally.cli.console import live_progress, stderr, stdout


def demo(
    out: Annotated[Path, typer.Option(help="Folder for results.csv, curves.png, report.html and tables.")] = Path(
        "ally-demo"
    ),
    seeds: Annotated[int, typer.Option(help="Campaigns per strategy and data set.", min=2, metavar="N")] = 5,
) -> None:
    """Compare ALLY with the baselines on scikit-learn's digits and diabetes (about a minute).

    Example: ally demo --out ally-demo
    """
    import torch

    import ally
    from ally.cli.report import tables
    from ally.experiment import run_cells
    from ally.experiment.demo import demo_cells, demo_trial
    from ally.report import load, sentence, write_summary

    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    stderr.print(f"digits and diabetes, every strategy, {seeds} seeds: about a minute on 2 cores", highlight=False)
    with live_progress() as progress:
        results = run_cells(demo_trial, list(demo_cells(seeds)), min(os.cpu_count() or 1, 8), progress)
    results.to_csv(out / "results.csv", index=False)
    notes = {
        "title": "Does ALLY choose better than chance?",
        "question": "ALLY and every baseline on scikit-learn's digits (classification) and diabetes (regression)",
        "baseline": "random",
        "settings": {
            "Data": (
                "scikit-learn's digits (1197 in the pool, 600 for testing) and diabetes (300 and 142); one fixed split"
            ),
            "Protocol": "a random start, then batches; every strategy has the same trainer, starting sets and initial "
            "weights; labels come from an oracle; no validation labels are used",
        },
        "environment": {
            "Versions": (
                f"ally {ally.__version__}, torch {torch.__version__}, Python {platform.python_version()}, "
                f"{platform.machine()}"
            ),
            "Time": f"{time.perf_counter() - began:.0f} s",
        },
    }
    (out / "settings.json").write_text(json.dumps(notes, indent=2), encoding="utf-8")
    summary, description = load(out)
    write_summary(out, summary, description)
    for table in tables(summary):
        stdout.print(table, "")
    for c in summary.comparisons:
        if c.strategy == "ally":
            stdout.print(sentence(c), highlight=False, soft_wrap=True)
    stdout.print(
        f"{out / 'report.html'}, curves.png and results.csv written in {time.perf_counter() - began:.0f} s",
        highlight=False,
    )
