"""The two models that a training keeps: the one that was measured, and the one that is handed out.

The first never saw the held-out labels, so that its figure is honest. The second is trained on every label. Its
`Trained.about` says on how many, and holds the figure of the first, so that it can be told wherever the file goes.
"""

from __future__ import annotations

from ally.campaign.values import Figure
from ally.learning.trained import Trained

TWO = b"ally: two models"
LENGTH = 8
"""Bytes that say how long the first model is."""


def pack(measured: Trained, handed: Trained | None) -> bytes:
    """What the store keeps as weights; without `handed` the measured model is handed out."""
    first = measured.to_bytes()
    if handed is None:
        return first
    return TWO + len(first).to_bytes(LENGTH, "little") + first + handed.to_bytes()


def measured_model(data: bytes, name: str = "the model") -> Trained:
    return Trained.from_bytes(_split(data)[0], name, trusted=None)


def handed_model(data: bytes, name: str = "the model") -> Trained:
    return Trained.from_bytes(_split(data)[1], name, trusted=None)


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Campaigns made before there were two models hold one, which is both."""
    if not data.startswith(TWO):
        return data, data
    start = len(TWO) + LENGTH
    end = start + int.from_bytes(data[len(TWO) : start], "little")
    return data[start:end], data[end:]


def origin(trained: Trained) -> str:
    """On how many labels a model was trained, and the figure that goes with it, in a sentence."""
    labels, kept = trained.about.get("labels"), trained.about.get("measured")
    if labels is None:
        return "the model does not say on how many labels it was trained; retrain to get one that uses every label"
    if kept is None:
        return f"the model is trained on all {labels} labels; it is not measured"
    figure = Figure(**kept)
    if figure.by == "cv":
        return f"the model is trained on all {labels} labels: {figure.sentence}"
    return (
        f"the model is trained on all {labels} labels; the one that was measured, on {figure.labels} of them: "
        f"{figure.sentence}"
    )
