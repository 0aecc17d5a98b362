"""The figure: what strategies pick from one pool in the plane, by running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

import ally
from ally.cards import CARDS

SHOWN = (
    "random",
    "entropy",
    "margin",
    "badge",
    "bait",
    "coreset",
    "lcmd",
    "typiclust",
    "maxherding",
    "uherding",
    "ally",
    "ally-unlabelled",
)
BATCH = 10
LABELLED = 4
"""Labels per class."""
COLOURS = ("#56b4e9", "#e69f00", "#009e73")
PICK = "#c1121f"


def toy_pool() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points in the plane (300, 2) and their classes (300,): a dense crescent, a thinner one around its tip, a small
    far cluster."""
    rng = np.random.default_rng(4)
    angles = [np.pi * rng.random(180), np.pi * (1 + rng.random(85))]
    crescents = [np.column_stack([np.cos(angle), np.sin(angle)]) for angle in angles]
    points = [
        crescents[0] + rng.normal(scale=0.13, size=(180, 2)),
        crescents[1] + [1.0, 0.35] + rng.normal(scale=0.2, size=(85, 2)),
        rng.normal([-0.55, -0.75], 0.14, size=(35, 2)),
    ]
    classes = np.repeat([0.0, 1.0, 2.0], [len(part) for part in points])
    order = rng.permutation(len(classes))
    return np.concatenate(points)[order], classes[order]


def draw(path: Path) -> None:
    """One panel per strategy; each is asked once, with the same labels, network and seed."""
    X, truth = toy_pool()
    first = np.concatenate([np.flatnonzero(truth == label)[:LABELLED] for label in range(3)])
    y = np.full(len(X), np.nan)
    y[first] = truth[first]
    figure = Figure(figsize=(9.0, 5.7), layout="constrained")
    for ax, name in zip(figure.subplots(3, 4).flat, SHOWN, strict=True):
        _panel(ax, name, X, y)
    handles = [
        *(
            Line2D([], [], linestyle="", marker="s", color=colour, markeredgecolor="black", markersize=7)
            for colour in COLOURS
        ),
        Line2D([], [], linestyle="", marker="o", color="#9a9a9a", markersize=4),
        Line2D([], [], linestyle="", marker="o", color=PICK, markeredgecolor="white", markersize=9),
    ]
    texts = ["labelled, class 1", "class 2", "class 3", "candidate", f"one of the {BATCH} picked"]
    figure.legend(
        handles, texts, loc="outside lower center", ncols=len(texts), frameon=False, fontsize=10, handletextpad=0.2
    )
    figure.savefig(path, dpi=110, metadata={"Software": None}, facecolor="white")


def _panel(ax: Axes, name: str, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    model: Any = ally.ConstrainedClassifier(hidden=(32, 32), lr=5e-3, epochs=60, batch_size=8)
    picked = ally.query(X, y, n=BATCH, strategy=name, model=model, random_state=0, device="cpu").ids
    known = ~np.isnan(y)
    ax.scatter(X[~known, 0], X[~known, 1], s=7, color="#9a9a9a", linewidths=0, zorder=1)
    for label, colour in enumerate(COLOURS):
        ax.scatter(
            X[y == label, 0],
            X[y == label, 1],
            s=36,
            marker="s",
            color=colour,
            edgecolors="black",
            linewidths=0.8,
            zorder=2,
        )
    ax.scatter(X[picked, 0], X[picked, 1], s=62, color=PICK, edgecolors="white", linewidths=1.0, zorder=3)
    ax.set_title(f"{name} ({CARDS[name].family})", fontsize=10)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_aspect("equal")
