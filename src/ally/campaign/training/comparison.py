"""Is it better than random here? Compares models trained on equally many active and random labels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ally.campaign.settings import Settings
from ally.campaign.training.data import Part, TrainingData
from ally.campaign.training.measures import RESAMPLES
from ally.campaign.values import RandomComparison
from ally.data import Samples
from ally.learning.trained import Trained
from ally.metrics import METRICS, Said
from ally.store import Store
from ally.types import FloatArray

LEAST = 20
"""Fewest labels per arm, and fewest evaluated samples, for a meaningful comparison."""


def compare(
    store: Store, settings: Settings, data: TrainingData, samples: Samples, fit: Callable[[Part], Trained]
) -> RandomComparison | None:
    """The m random labels against the first m the model asked for; None until there are enough of each."""
    if not settings.random_share or len(data.evaluate) < LEAST:
        return None
    asked = store.asked_as()
    by_kind: dict[str, list[tuple[int, int]]] = {"random": [], "active": []}
    for place, row in enumerate(data.training.rows):
        kind, query, _ = asked.get(row, ("none", 0, None))
        if kind in by_kind:
            by_kind[kind].append((query, place))
    m = min(map(len, by_kind.values()))
    arms = {kind: data.training.at([place for _, place in sorted(found)[:m]]) for kind, found in by_kind.items()}
    if m < LEAST or any(settings.task == "classification" and len(set(arm.labels)) < 2 for arm in arms.values()):
        return None
    features = samples.features(data.evaluate.ids)
    said = {kind: fit(arm).predict(features)[0] for kind, arm in arms.items()}
    truth = np.asarray(data.evaluate.labels, dtype=object)
    if settings.task == "classification":
        right = {kind: (predicted == truth).astype(np.float64) for kind, predicted in said.items()}
        return _difference(m, right["active"], right["random"], None)
    errors = {kind: np.asarray(predicted, dtype=np.float64) for kind, predicted in said.items()}
    return _difference(m, errors["active"], errors["random"], truth.astype(np.float64))


def _difference(m: int, active: FloatArray, random: FloatArray, truth: FloatArray | None) -> RandomComparison:
    """Paired over evaluation samples: both models use the same bootstrap draws."""
    n = len(active)

    def value(predicted: FloatArray, rows: FloatArray | slice) -> float:
        if truth is None:
            return float(predicted[rows].mean())
        return METRICS["r2"].measure(Said(truth[rows], predicted[rows]))

    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    low, high = np.nanquantile([value(active, rows) - value(random, rows) for rows in drawn], (0.025, 0.975))
    everything = slice(None)
    one, other = value(active, everything), value(random, everything)
    return RandomComparison(m, one, other, one - other, float(low), float(high), n)
