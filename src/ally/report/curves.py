"""Learning curves as a picture."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ally.report.summary import LOWER_IS_BETTER

HIGHLIGHT = "ally"
BASELINE = "random"
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c6d31", "#7f7f7f")


def draw_curves(results: pd.DataFrame, path: Path) -> None:
    """One panel per data set: mean over seeds with a band of one standard error; ALLY bold, the baseline dashed."""
    datasets = list(results["dataset"].unique())
    figure = Figure(figsize=(6.0 * len(datasets), 4.4), layout="constrained")
    axes = figure.subplots(1, len(datasets), squeeze=False)[0]
    for ax, dataset in zip(axes, datasets, strict=True):
        _draw(ax, results[results["dataset"] == dataset], str(dataset))
    figure.savefig(path, dpi=150)


def _draw(ax: Axes, part: pd.DataFrame, dataset: str) -> None:
    metric = str(part["metric"].iloc[0])
    colours = iter(COLOURS * 4)
    for strategy in part["strategy"].unique():
        curve = part[part["strategy"] == strategy].groupby("labels")["value"].agg(["mean", "sem"]).fillna(0.0)
        colour = {HIGHLIGHT: "#d62728", BASELINE: "#000000"}.get(str(strategy)) or next(colours)
        strong = strategy in (HIGHLIGHT, BASELINE)
        ax.plot(
            curve.index,
            curve["mean"],
            label=str(strategy),
            color=colour,
            linewidth=2.6 if strategy == HIGHLIGHT else 1.8 if strong else 1.2,
            linestyle="--" if strategy == BASELINE else "-",
            zorder=3 if strong else 2,
        )
        if strong:
            ax.fill_between(curve.index, curve["mean"] - curve["sem"], curve["mean"] + curve["sem"], color=colour, alpha=0.15, linewidth=0)
    ax.set_title(f"{dataset} ({part['seed'].nunique()} seeds)")
    ax.set_xlabel("labels")
    ax.set_ylabel(f"test {metric} ({'lower' if metric in LOWER_IS_BETTER else 'higher'} is better)")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, ncols=2)
