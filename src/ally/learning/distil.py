"""A plain model that says nearly the same as another: trained on what the other says of many samples.

What looks at the whole pool, as label spreading does, has to carry it in its file; a linear model or trees trained on
its labels carry nothing of it.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from ally.data import Source
from ally.errors import InputError
from ally.learning.candidates import extra_trees
from ally.learning.learner import Examples, Learner
from ally.learning.linear import LinearLearner
from ally.learning.objectives import ERM
from ally.learning.trained import Trained
from ally.rng import Streams
from ally.types import PlainModel

MOST, COMPARED = 5000, 1000
"""Samples that it is trained on, and that it is compared on."""
AGREEMENT = "agreement"
"""What `Trained.about` keeps the comparison as."""


def distil(trained: Trained, source: Source, name: PlainModel) -> Trained:
    """A plain model trained on what `trained` says of a source, each sample weighted by how sure it is.

    Its `about` is that of `trained`, without its figure, and has the ``"agreement"`` of both on samples that it was not
    trained on: the share of equal labels, or for numbers the correlation.
    """
    if name not in get_args(PlainModel):
        raise InputError.about("as", name, f"; pass one of {', '.join(map(repr, get_args(PlainModel)))}")
    if len(source) < 10:
        raise InputError(f"there are {len(source)} samples to train a plain model on; it takes at least 10")
    order = np.random.default_rng(0).permutation(len(source))
    compared = np.sort(order[: min(COMPARED, len(source) // 5)])
    rows = np.sort(order[len(compared) :][:MOST])
    seen = trained.fit.view(source, rows)
    weights = None if seen.probabilities is None else seen.probabilities.amax(1).double().numpy()
    labels = seen.predictions.double().numpy()
    classes = trained.fit.classes
    if classes is not None and len(np.unique(labels)) < 2:
        raise InputError("the model gives every sample the same label, so there is nothing to train a plain one on")
    learner: Learner = LinearLearner() if name == "linear" else extra_trees()
    examples = Examples(source, rows, labels, trained.fit.task, classes, weights)
    fitted = learner.prepared(source, rows).fit(examples, ERM(), Streams(0))
    kept: dict[str, Any] = {key: value for key, value in trained.about.items() if key != "measured"}
    both = [fit.view(source, compared).predictions.double().numpy() for fit in (trained.fit, fitted)]
    same = np.mean(both[0] == both[1]) if classes is not None else _correlate(*both)
    return Trained(fitted, {**kept, AGREEMENT: round(float(same), 4)})


def _correlate(one: Any, other: Any) -> float:
    return float(np.corrcoef(one, other)[0, 1]) if one.std() > 0 and other.std() > 0 else 0.0
