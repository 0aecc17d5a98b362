"""The progression as a picture: images in a grid, tables as curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ally.drawing import use_own_style
from ally.generation.progression import Progression
from ally.types import AnyArray, FloatArray

SHOWN = 12
"""Rows drawn at most."""
FEATURES = 5
"""Features drawn per sample of a table: those that moved most."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa3377", "#8c6d31")


@use_own_style()
def draw(progression: Progression, *files: Path | str, names: Sequence[str] | None = None) -> Figure:
    """One row per sample. Images: one column per moment, below it the predicted dual and the likeliest classes. Tables:
    the predicted dual, and the features that moved most. A title says so where steps were smoothed. Saved to each of
    `files` (.png, .svg, …); the first 12 samples are drawn.
    """
    figure = _images(progression) if is_image(progression.samples.shape[2:]) else _curves(progression, names)
    if progression.smooth:
        figure.suptitle("steps smoothed: mixtures of the ways in which samples differ", fontsize=9)
    for file in files:
        figure.savefig(file, dpi=150)
    return figure


def is_image(shape: Sequence[int]) -> bool:
    """Whether samples of this shape can be shown: (h, w), or (c, h, w) with one or three channels."""
    return len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))


def _images(progression: Progression) -> Figure:
    s, n = len(progression.steps), min(len(progression), SHOWN)
    lines = 1 if progression.probabilities is None else 2
    figure = Figure(figsize=(1.25 * s + 0.3, (1.2 + 0.17 * lines) * n + 0.5), layout="constrained")
    axes = figure.subplots(n, s, squeeze=False)
    for place, step in enumerate(progression.steps.tolist()):
        axes[0, place].set_title("start" if step == 0 else f"step {step}", fontsize=9, pad=6)
        for sample in range(n):
            ax: Axes = axes[sample, place]
            picture = _picture(progression.samples[place, sample], progression.bounds)
            ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
            ax.set_xticks([])
            ax.set_yticks([])
            ax.spines[:].set_color("#b0b0b0")
            ax.set_xlabel(_caption(progression, place, sample), fontsize=7, labelpad=3, linespacing=1.25)
    return figure


def _picture(sample: FloatArray, bounds: tuple[FloatArray, FloatArray]) -> FloatArray:
    """(h, w) or (h, w, 3), from 0 to 1 over the bounds."""
    low, high = float(bounds[0].min()), float(bounds[1].max())
    shade = (sample - low) / ((high - low) or 1.0)
    if shade.ndim == 3:
        shade = shade[0] if len(shade) == 1 else shade.transpose(1, 2, 0)
    return np.asarray(shade)


def _caption(progression: Progression, place: int, sample: int) -> str:
    dual = f"λ = {progression.duals[place, sample]:.3g}"
    if progression.probabilities is None or progression.classes is None:
        return f"{dual}, ŷ = {progression.predictions[place, sample]:.3g}"
    p = progression.probabilities[place, sample]
    likeliest = [k for k in np.argsort(-p, kind="stable")[:3] if p[k] >= 0.005]
    return dual + "\n" + "  ".join(f"{_short(progression.classes[k])} {100 * p[k]:.0f}%" for k in likeliest)


def _short(name: Any) -> str:
    text = str(name)
    return text if len(text) <= 8 else text[:7] + "…"


def _curves(progression: Progression, names: Sequence[str] | None) -> Figure:
    n = min(len(progression), SHOWN)
    low, high = (side.reshape(-1) for side in progression.bounds)
    width = np.where(high > low, high - low, 1.0)
    place = (progression.samples.reshape(*progression.duals.shape, -1) - low) / width
    label = [f"x{k}" for k in range(len(low))] if names is None else [str(name) for name in names]
    figure = Figure(figsize=(9.5, 1.55 * n + 0.6), layout="constrained")
    axes = figure.subplots(n, 2, squeeze=False, sharex=True, width_ratios=(1, 1.3))
    for sample in range(n):
        left, right = axes[sample]
        left.plot(progression.steps, progression.duals[:, sample], color="#000000", marker="o", markersize=3)
        left.set_ylabel(f"sample {sample}\n{_ends(progression, sample)}", fontsize=7.5)
        for k, colour in zip(_most_moved(place[:, sample]), COLOURS, strict=False):
            right.plot(
                progression.steps,
                place[:, sample, k],
                color=colour,
                marker="o",
                markersize=2.5,
                linewidth=1.2,
                label=_short(label[k]),
            )
        right.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False)
        for ax in (left, right):
            ax.grid(alpha=0.25)
            ax.tick_params(labelsize=7)
            ax.spines[["top", "right"]].set_visible(False)
            ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes[0, 0].set_title("predicted dual λ", fontsize=9)
    axes[0, 1].set_title(
        f"the {min(FEATURES, len(low))} features that moved most, from 0 (lowest) to 1 (highest in the data)",
        fontsize=9,
    )
    for ax in axes[-1]:
        ax.set_xlabel("step", fontsize=8)
    return figure


def _ends(progression: Progression, sample: int) -> str:
    """What is predicted at the start and at the end."""
    first, last = progression.predictions[0, sample], progression.predictions[-1, sample]
    if progression.probabilities is None:
        return f"ŷ {first:.4g} → {last:.4g}"
    p = progression.probabilities[[0, -1], sample].max(axis=1)
    return f"{_short(first)} {100 * p[0]:.0f}% → {_short(last)} {100 * p[1]:.0f}%"


def _most_moved(place: FloatArray) -> AnyArray:
    """Features by how far they are from their start at the end, farthest first."""
    return np.argsort(-np.abs(place[-1] - place[0]), kind="stable")[:FEATURES]
