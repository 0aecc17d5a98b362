"""Learning curves as a picture for a paper."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ally.metrics import constant_name, metric_named
from ally.report.statistics.summary import Summary
from ally.report.style import Style, styles

Band = Literal["ci", "std"]
BANDS: dict[Band, str] = {"ci": "95 % interval of the mean", "std": "one standard deviation"}
LONGEST = 80
"""Characters of a name in a picture."""
OTHERS = "other series"


def draw(summary: Summary, band: Band = "ci") -> Figure:
    """One panel per data set: means over seeds, a band for ALLY (its best variant) and the baseline; one legend
    below."""
    datasets, look = summary.datasets, styles(summary)
    columns = min(len(datasets), 3 if len(datasets) > 4 else 2)
    rows = math.ceil(len(datasets) / columns)
    across = 2 if columns == 1 else 3 if columns == 2 else 4
    shown = [name for name in summary.series if look[name].shown]
    legend_rows = math.ceil((len(shown) + 1) / across)
    figure = Figure(
        figsize=(6.4 if columns == 1 else 5.0 * columns, 3.9 * rows + 0.24 * legend_rows + 0.5), layout="constrained"
    )
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, dataset in zip(panels, datasets, strict=False):
        _panel(ax, summary.curves[summary.curves["dataset"] == dataset], look, band, summary.constants.get(dataset))
        if summary.smoothing:
            ax.set_title(f"{ax.get_title()}, smoothed", fontsize=10)
    for ax in panels[len(datasets) :]:
        ax.set_visible(False)
    handles = {label: handle for ax in panels for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    constants = [constant_name(metric_named(str(name)).task) for name in summary.curves["metric"].unique()]
    names = [name for name in dict.fromkeys((*map(_plain, shown), OTHERS, *constants)) if name in handles]
    banded = [_plain(name) for name in summary.series if look[name].banded]
    told = f"band ({', '.join(banded)}): {BANDS[band]}" if summary.curves["seeds"].max() > 1 else "one seed: no band"
    smoothed = "" if not summary.smoothing else f"; smoothed (moving average, weight {summary.smoothing:g})"
    figure.legend(
        [handles[name] for name in names],
        names,
        loc="outside lower center",
        ncols=across,
        fontsize=8,
        frameon=False,
        title=f"mean over seeds; {told}{smoothed}",
        title_fontsize=8,
    )
    return figure


def _panel(ax: Axes, part: pd.DataFrame, look: dict[str, Style], band: Band, constant: float | None) -> None:
    metric = metric_named(str(part["metric"].iloc[0]))
    seeds = part["seeds"].max()
    for name, curve in part.groupby("series", sort=False):
        style = look[str(name)]
        labels, mean = curve["labels"].to_numpy(dtype=float), curve["mean"].to_numpy(dtype=float)
        if not style.shown:
            ax.plot(labels, mean, color="#b0b0b0", linewidth=0.7, label=OTHERS, zorder=1)
            continue
        ax.plot(
            labels,
            mean,
            label=_plain(str(name)),
            color=style.colour,
            linewidth=style.width,
            linestyle="--" if style.dashed else "-",
            marker=style.marker,
            markersize=4.5 if style.strong else 3.5,
            zorder=4 if style.strong else 3,
        )
        if style.banded:
            low, high = _band(curve, band)
            ax.fill_between(labels, low, high, color=style.colour, alpha=0.13, linewidth=0, zorder=2)
    _frame(ax, part)
    if constant is not None:
        _constant(ax, constant, constant_name(metric.task))
    ax.set_title(f"{_plain(str(part['dataset'].iloc[0]))} ({seeds} seed{'' if seeds == 1 else 's'})", fontsize=10)
    ax.set_xlabel("labels bought")
    ax.set_ylabel(f"test {metric.name.replace('_', ' ')} ({metric.direction})")
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=True))
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def _band(curve: pd.DataFrame, band: Band) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    mean, std = curve["mean"].to_numpy(dtype=float), curve["std"].to_numpy(dtype=float)
    low, high = (
        (mean - std, mean + std)
        if band == "std"
        else (curve["low"].to_numpy(dtype=float), curve["high"].to_numpy(dtype=float))
    )
    return np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high)


def _frame(ax: Axes, part: pd.DataFrame) -> None:
    """The axis fits the means: the band of two seeds would squeeze every curve into a line."""
    low, high = float(part["mean"].min()), float(part["mean"].max())
    room = 0.08 * (high - low) or 0.05 * (abs(high) or 1.0)
    ax.set_ylim(low - room, high + room)


def _constant(ax: Axes, value: float, name: str) -> None:
    """One answer for all samples, as a dotted line. The axis grows by up to half for it; beyond that it is written at
    the edge, so that the curves stay readable."""
    low, high = ax.get_ylim()
    span = high - low
    if low - span / 2 <= value <= high + span / 2:
        ax.set_ylim(min(low, value - 0.05 * span), max(high, value + 0.05 * span))
        ax.axhline(value, color="#707070", linewidth=1.2, linestyle=":", label=name, zorder=1)
        return
    above = value > high
    words = f"{name}: {value:.4g} {'↑' if above else '↓'}"
    place, edge = (0.98, "top") if above else (0.02, "bottom")
    ax.text(0.99, place, words, transform=ax.transAxes, ha="right", va=edge, fontsize=8, color="#505050")


def _plain(text: str) -> str:
    """A leading underscore would hide a name from the legend, dollars would make it a formula."""
    short = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
    return (" " if text.startswith("_") else "") + short.replace("$", r"\$")
