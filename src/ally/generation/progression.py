"""The path of generated samples, step by step, with the model's predictions on the way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ally.errors import LabelError
from ally.generation.bounds import Bounds
from ally.learning.learner import Fitted
from ally.types import AnyArray, FloatArray, IntArray

Stop = Literal["flat", "corner", "peak", "ceiling"]
STOPS: dict[Stop, str] = {
    "flat": (
        "the gradient vanished: near the sample the predicted dual does not depend on it (no active "
        "unit leads to the dual head)"
    ),
    "corner": "every feature that would raise the dual is at its bound",
    "peak": "no step, however short, raised the dual: a local maximum",
    "ceiling": "the predicted dual reached the ceiling",
}
SMOOTHED = (
    "steps were smoothed: each is a mixture of the ways in which samples of the data differ, not the plain gradient"
)


class Moment(NamedTuple):
    """n samples at one step."""

    samples: FloatArray
    duals: FloatArray
    predictions: AnyArray
    probabilities: FloatArray | None


Part = tuple[Sequence[Moment], Sequence[Stop | None], Sequence[int]]
"""Moments of a block of samples, why each stopped, how often each jumped."""


@dataclass(frozen=True, eq=False)
class Progression:
    """n samples at s moments of their ascent."""

    steps: IntArray
    """(s,) numbers of steps taken; the first is 0."""
    samples: FloatArray = field(repr=False)
    """(s, n, *shape) in the units of the data, within `bounds`."""
    duals: FloatArray = field(repr=False)
    """(s, n) predicted λ ≥ 0."""
    predictions: AnyArray = field(repr=False)
    """(s, n) predicted classes or targets."""
    probabilities: FloatArray | None = field(repr=False)
    """(s, n, C) in the order of `classes`; None for regression."""
    classes: AnyArray | None
    bounds: Bounds = field(repr=False)
    stops: tuple[Stop | None, ...] = ()
    """(n,) why a sample stopped before the last step; None if it did not."""
    jumps: tuple[int, ...] = ()
    """(n,) how often a sample was stuck and jumped."""
    smooth: bool = False
    """Whether steps followed the ways in which samples differ, instead of the plain gradient."""

    def __len__(self) -> int:
        return int(self.samples.shape[1])

    @property
    def notes(self) -> tuple[str, ...]:
        """How steps were smoothed, how many samples jumped or stopped early, and why, in sentences."""
        counts = {why: self.stops.count(why) for why in STOPS}
        jumped = sum(jumps > 0 for jumps in self.jumps)
        return (
            *([SMOOTHED] if self.smooth else []),
            *(
                [f"{jumped} of {len(self)} samples were stuck and jumped; the last step shows each one's best point"]
                if jumped
                else []
            ),
            *(
                f"{count} of {len(self)} samples stopped before step {self.steps[-1]}: {STOPS[why]}"
                for why, count in counts.items()
                if count
            ),
        )

    def table(self, names: Sequence[str] | None = None, starts: Sequence[Any] | None = None) -> pd.DataFrame:
        """One row per step and sample: step, sample, start (its id, if given), dual, prediction, a probability per
        class, features.

        Features are left out where samples are images; `names` are theirs, ``x0``, ``x1``, … if None.
        """
        s, n = self.duals.shape
        columns: dict[str, AnyArray] = {"step": np.repeat(self.steps, n), "sample": np.tile(np.arange(n), s)}
        if starts is not None:
            columns["start"] = np.tile(np.asarray(starts), s)
        columns |= {"dual": self.duals.reshape(-1), "prediction": self.predictions.reshape(-1)}
        if self.probabilities is not None and self.classes is not None:
            columns |= {
                f"p({name})": self.probabilities[:, :, k].reshape(-1) for k, name in enumerate(self.classes.tolist())
            }
        frame = pd.DataFrame(columns)
        if self.samples.ndim != 3:
            return frame
        width = self.samples.shape[2]
        header = [f"x{k}" for k in range(width)] if names is None else [str(name) for name in names]
        return pd.concat([frame, pd.DataFrame(self.samples.reshape(-1, width), columns=header)], axis=1)

    def as_training(self, labels: Any) -> tuple[FloatArray, AnyArray]:
        """The last samples (n, *shape) with the labels (n,) of their starts, to fine-tune on.

        Warns, because these are guesses: a sample led into doubt may have left its class, and nobody labelled it.
        """
        given = np.asarray(labels)
        if given.shape != (len(self),):
            raise LabelError(
                f"labels have shape {given.shape} and there are {len(self)} samples; pass the label of each start"
            )
        moved = (
            ""
            if self.classes is None
            else f"; the model itself disagrees with {int((self.predictions[-1] != given).sum())} of these labels"
        )
        warnings.warn(
            f"nobody labelled these {len(self)} generated samples: they carry the labels of their starts{moved}",
            stacklevel=2,
        )
        return self.samples[-1].copy(), given.copy()


def join(steps: IntArray, parts: Sequence[Part], fit: Fitted, bounds: Bounds, smooth: bool) -> Progression:
    """One progression from blocks of samples, classes by name."""
    rows = zip(*(moments for moments, _, _ in parts), strict=True)
    whole = [Moment(*(_side_by_side(values) for values in zip(*row, strict=True))) for row in rows]
    classes = None if fit.classes is None else _array_of(fit.classes)
    predictions = np.stack([moment.predictions for moment in whole])
    return Progression(
        steps=steps,
        samples=np.stack([moment.samples for moment in whole]),
        duals=np.stack([moment.duals for moment in whole]),
        predictions=predictions if classes is None else classes[predictions],
        probabilities=None
        if classes is None
        else np.stack([moment.probabilities for moment in whole if moment.probabilities is not None]),
        classes=classes,
        bounds=bounds,
        stops=tuple(why for _, stops, _ in parts for why in stops),
        jumps=tuple(count for _, _, jumps in parts for count in jumps),
        smooth=smooth,
    )


def _side_by_side(values: Sequence[AnyArray | None]) -> Any:
    present = [value for value in values if value is not None]
    return np.concatenate(present) if present else None


def _array_of(classes: Sequence[Any]) -> AnyArray:
    """Classes of one type as numpy would hold them, others as they are."""
    array = np.empty(len(classes), dtype=object)
    array[:] = classes
    return np.asarray(list(classes)) if len({type(name) for name in classes}) == 1 else array
