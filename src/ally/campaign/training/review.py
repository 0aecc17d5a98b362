"""Labels that may be wrong: those the model finds hardest to fit, with predictions of a model that never saw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ally.campaign.training.data import Part
from ally.learning.linear import FittedLinear
from ally.learning.trained import Trained
from ally.loop import Loop
from ally.rng import streams
from ally.sources import Samples

KEPT = 100
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
    probability that a learner gives them which was trained on the other half of the labels.

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
    # Labels that were held out of the training have no dual (NaN), and come last.
    order = np.argsort(-duals.double().numpy(), kind="stable")[:KEPT]
    order = order[duals.numpy()[order] > 0]
    rows = loop.labelled[order].tolist()
    place = {row: number for number, row in enumerate(labelled.rows)}
    said = _unseen([place[row] for row in rows], labelled, samples, fit, seed) if len(labelled) >= LEAST else {}
    entries = []
    for row, dual in zip(rows, duals[order].tolist(), strict=True):
        predicted, probability = said.get(place[row], (None, None))
        entries.append({"row": row, "dual": dual, "predicted": predicted, "probability": probability})
    return entries


def _unseen(
    places: Sequence[int], labelled: Part, samples: Samples, fit: Callable[[Part], Trained], seed: int
) -> dict[int, tuple[Any, float | None]]:
    """Label and probability of the labelled samples at `places`, each by a learner trained on the half that it is not
    in."""
    shuffled = streams(seed).child("review").numpy("halves").permutation(len(labelled))
    halves = [sorted(half.tolist()) for half in np.array_split(shuffled, 2)]
    said: dict[int, tuple[Any, float | None]] = {}
    for half, other in (halves, halves[::-1]):
        inside = sorted(set(half) & set(places))
        if inside:
            labels, probability = fit(labelled.at(other)).predict(samples.features(labelled.at(inside).ids))
            chances = [None] * len(inside) if probability is None else probability.tolist()
            said |= dict(zip(inside, zip(labels.tolist(), chances, strict=True), strict=True))
    return said
