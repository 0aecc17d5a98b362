"""The two models that a training keeps: the measured one and the final one.

The first never saw the held-out labels, so its figure is honest. The second is trained on every label and is the one
handed out. Its `Trained.about` says on how many labels, and holds the figure of the first, so that the figure travels
with the file.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NotRequired, get_type_hints

from ally.campaign.values import Figure
from ally.errors import DataError
from ally.json_form import find_misfit
from ally.learning.trained import Trained

TWO = b"ally: two models"
ABOUT: Mapping[str, Any] = {
    "fingerprint": NotRequired[dict[str, Any]],
    "labels": NotRequired[int],
    "features": NotRequired[str],
    "range": NotRequired[list[float]],
    "measured": NotRequired[get_type_hints(Figure)],
}
LENGTH = 8
"""Number of bytes that hold the length of the first model."""


def pack(measured: Trained, handed: Trained | None) -> bytes:
    """What the store keeps as weights; without `handed` the measured model is handed out."""
    first = measured.to_bytes()
    if handed is None:
        return first
    return TWO + len(first).to_bytes(LENGTH, "little") + first + handed.to_bytes()


def measured_model(data: bytes, name: str = "the model", trusted: Container[str] = ()) -> Trained:
    return _read(_split(data)[0], name, trusted)


def handed_model(data: bytes, name: str = "the model", trusted: Container[str] = ()) -> Trained:
    return _read(_split(data)[1], name, trusted)


def _read(data: bytes, name: str, trusted: Container[str]) -> Trained:
    """`trusted` are the models that the campaign's user allowed it; what the campaign itself names allows nothing."""
    try:
        trained = Trained.from_bytes(data, name, trusted)
        check_about(trained)
        return trained
    except DataError as error:
        raise DataError(f"{error}; the labels are safe, and `ally retrain` makes a new model from them") from error


def check_about(trained: Trained) -> None:
    """Raises `DataError` unless what a model says of itself has the types that it must have; whoever opens a source by
    its fingerprint checks that."""
    known = {name: value for name, value in trained.about.items() if name in ABOUT}
    misfit = find_misfit(known, ABOUT, "the model's record")
    if misfit is None and len(known.get("range", (0, 0))) != 2:
        misfit = "the range of labels is not two numbers"
    if misfit is not None:
        raise DataError(f"{misfit}; train it again")


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Older campaigns hold a single model, which serves as both."""
    if not data.startswith(TWO):
        return data, data
    start = len(TWO) + LENGTH
    end = start + int.from_bytes(data[len(TWO) : start], "little")
    return data[start:end], data[end:]


def origin(trained: Trained) -> str:
    """How many labels a model was trained on, and its figure, as a sentence."""
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
