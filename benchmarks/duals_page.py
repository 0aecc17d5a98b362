"""The measured part of docs/duals.md, and its figure, from what benchmarks/duals.py has run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from ally.drawing import use_own_style

BENCHMARKS = Path(__file__).parent
DOCS = BENCHMARKS.parent / "docs"
PAGE, FIGURE = DOCS / "duals.md", DOCS / "images" / "pruning.png"
MARKS = "<!-- results: written by benchmarks/duals.py -->", "<!-- end of results -->"
RANKINGS = (
    "dual, ties by slack",
    "dual, bounded, ties by slack",
    "loss",
    "loss, mean over epochs",
    "cleanlab",
    "cleanlab, normalised margin",
)
COLOURS = {"dual": "#2563eb", "dual, bounded": "#0d9488", "loss": "#d97706", "random": "0.5"}


def write_page(labels: pd.DataFrame, pruning: pd.DataFrame) -> None:
    """Replaces what stands between the marks, and draws the figure."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{describe(labels, pruning)}\n{MARKS[1]}{after}", encoding="utf-8")
    with use_own_style():
        draw_pruning(pruning)


def describe(labels: pd.DataFrame, pruning: pd.DataFrame) -> str:
    """The tables, as Markdown."""
    return "\n".join([*tabulate_labels(labels), "", *tabulate_pruning(pruning), ""])


def tabulate_labels(labels: pd.DataFrame) -> list[str]:
    lines = [
        "| model | ranking | first 20, 5 % wrong | first 20, 10 % wrong | average precision, 5 % | average precision, "
        "10 % | against cleanlab |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, runs in labels.groupby("model"):
        for ranking in RANKINGS:
            own = runs[runs["ranking"] == ranking]
            if own.empty:
                continue
            cells = [
                short(own.loc[own["share"] == share, column].mean())
                for column in ("precision", "average_precision")
                for share in (0.05, 0.1)
            ]
            lines.append(f"| {model} | {ranking} | {' | '.join(cells)} | {compare(runs, ranking, 'cleanlab')} |")
    return lines


def compare(runs: pd.DataFrame, ranking: str, other: str) -> str:
    """The mean lead in average precision, and its 95 % interval over the sets."""
    if ranking == other:
        return ""
    values = runs.pivot_table(index=["data", "seed", "share"], columns="ranking", values="average_precision")
    leads = (values[ranking] - values[other]).groupby("data").mean()
    low, high = stats.t.interval(0.95, len(leads) - 1, leads.mean(), stats.sem(leads))
    return f"{signed(leads.mean())} ({signed(low)} … {signed(high)})"


def tabulate_pruning(pruning: pd.DataFrame) -> list[str]:
    shares = sorted(set(pruning["left_out"]))
    lines = [
        f"| model | left out by | {' | '.join(f'{share:.0%}'.replace('%', ' %') for share in shares)} |",
        "|---|---|" + "---|" * len(shares),
    ]
    means = pruning.groupby(["model", "ranking", "left_out"])["accuracy"].mean()
    for model in sorted(set(pruning["model"])):
        for ranking in COLOURS:
            cells = [short(means[model, ranking, share]) for share in shares]
            lines.append(f"| {model} | {ranking} | {' | '.join(cells)} |")
    return lines


def draw_pruning(pruning: pd.DataFrame) -> None:
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    models = sorted(set(pruning["model"]))
    for axes, model in zip(np.atleast_1d(figure.subplots(1, len(models), sharey=True)), models, strict=True):
        for ranking, colour in COLOURS.items():
            own = pruning[(pruning["model"] == model) & (pruning["ranking"] == ranking)]
            curve = own.groupby("left_out")["accuracy"].mean()
            # The same curve twice is shown as dashes on a line.
            style = "--" if ranking == "loss" else "-"
            axes.plot(100 * curve.index, curve, style, color=colour, label=ranking, marker="o", markersize=3)
        axes.set_title(model, loc="left", fontsize=11)
        axes.set_xlabel("labels left out, %")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("accuracy, mean of the sets")
    figure.axes[0].legend(frameon=False, fontsize=9, title="lowest first")
    figure.savefig(FIGURE, dpi=110)


def short(value: float) -> str:
    """.845, as in the other tables."""
    return f"{value:.3f}".removeprefix("0")


def signed(value: float) -> str:
    return ("+" if value >= 0 else "−") + short(abs(value))
