"""Labels that may be wrong: those the model finds hardest to fit, with predictions of a model that never saw them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ally.campaign.training.data import Part
from ally.data import Samples
from ally.learning.linear import FittedLinear
from ally.learning.trained import Trained
from ally.loop import Loop
from ally.rng import streams
from ally.types import AnyArray, FloatArray

KEPT = 100
LEAST_PROBABILITY = 1e-12
LEAST = 10
"""With fewer labels, a model trained on half of them is too poor to judge."""


def suspects(
    loop: Loop,
    labelled: Part,
    samples: Samples,
    *,
    accumulating: Callable[[], Loop],
    fit: Callable[[Part], Trained],
    seed: int,
) -> list[dict[str, Any]]:
    """Row and dual of the labelled samples with the highest duals, highest first, at most `KEPT`; with the label and
    probability that a learner gives them which was trained on the other half of the labels, and the loss of their own
    label under it. After them the samples with the highest such losses, at most `KEPT`.

    For numbers, and where the objective of `loop` has no dual variables of labels, losses added up over a plain
    training serve as duals: for classes they find wrong labels as well as duals do, for numbers a little better
    (docs/review.md).
    """
    fitted = loop.fit()
    # Constraints over the pool use no labels, so their duals say nothing about wrong ones.
    # Exact duals stop at their bound, and those of wrong labels often reach it.
    about_labels = fitted.task == "classification" and "unlabelled" not in fitted.duals
    about_labels &= not isinstance(fitted, FittedLinear)
    duals = fitted.duals.get("labelled") if about_labels else None
    if duals is None:
        loop = accumulating()
        duals = loop.fit().duals["labelled"]
    dual = duals.double().numpy()
    place = {row: number for number, row in enumerate(labelled.rows)}
    order = [place[row] for row in loop.labelled.tolist()]
    seen = _see_from_outside(labelled, samples, fit, seed) if len(labelled) >= LEAST else None
    entries = [
        # A label that was held out of the training has no dual.
        {
            "row": labelled.rows[number],
            "dual": value if math.isfinite(value) else None,
            **(_UNSEEN if seen is None else seen.entry(number)),
        }
        for number, value in zip(order, dual.tolist(), strict=True)
    ]
    positive = (entry for entry in entries if (entry["dual"] or 0) > 0)
    by_dual = sorted(positive, key=lambda entry: (-entry["dual"], -(entry["loss"] or 0.0)))[:KEPT]
    by_loss = sorted((entry for entry in entries if entry["loss"] is not None), key=lambda entry: -entry["loss"])[:KEPT]
    kept = {entry["row"] for entry in by_dual}
    return by_dual + [entry for entry in by_loss if entry["row"] not in kept]


_UNSEEN: dict[str, Any] = {"predicted": None, "probability": None, "loss": None}


@dataclass(frozen=True)
class _Outside:
    """What learners that have not seen them say of the labelled samples, each an array (n,)."""

    labels: AnyArray
    probabilities: FloatArray | None
    losses: FloatArray

    def entry(self, number: int) -> dict[str, Any]:
        chance = None if self.probabilities is None else float(self.probabilities[number])
        loss = float(self.losses[number])
        return {
            "predicted": self.labels[number],
            "probability": chance,
            "loss": loss if math.isfinite(loss) else None,
        }


def _see_from_outside(labelled: Part, samples: Samples, fit: Callable[[Part], Trained], seed: int) -> _Outside:
    """Each sample by a learner trained on the half of the labels that it is not in. The loss is −log p of the label, or
    the squared error in units of the labels' variance."""
    shuffled = streams(seed).child("review").numpy("halves").permutation(len(labelled))
    halves = [sorted(half.tolist()) for half in np.array_split(shuffled, 2)]
    labels: list[Any] = [None] * len(labelled)
    chances: list[float | None] = [None] * len(labelled)
    losses = np.full(len(labelled), np.nan)
    for half, other in (halves, halves[::-1]):
        trained = fit(labelled.at(other))
        view = trained.look(samples.features(labelled.at(half).ids))
        said = trained.code.decode(view.predictions.numpy())
        given = [labelled.labels[number] for number in half]
        if view.probabilities is not None:
            table = view.probabilities.double().numpy()
            known = {name: column for column, name in enumerate(trained.fit.classes or ())}
            own = [table[place, known[name]] if name in known else 0.0 for place, name in enumerate(given)]
            losses[half] = -np.log(np.clip(own, LEAST_PROBABILITY, None))
            for number, chance in zip(half, table.max(1).tolist(), strict=True):
                chances[number] = chance
        elif trained.fit.task == "regression":
            losses[half] = np.square(np.asarray(said, dtype=float) - np.asarray(given, dtype=float))
        for number, label in zip(half, said.tolist(), strict=True):
            labels[number] = label
    if trained.fit.task == "regression":
        losses /= max(float(np.var(np.asarray(labelled.labels, dtype=float))), 1e-300)
    probabilities = None if chances[0] is None else np.asarray(chances, dtype=np.float64)
    return _Outside(np.asarray(labels, dtype=object), probabilities, losses)
