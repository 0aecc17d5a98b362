"""How far labels spread along a graph, chosen by what each label would be without itself.

Spreading is linear in the labels, so leaving one out costs nothing: it is what the others say of its point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ally.learning.pool_graph import ALPHAS, NEIGHBOURS, PoolGraph
from ally.types import AnyArray, FloatArray, IntArray

FEWEST = 5
"""With fewer labels there is nothing to choose by."""
MOST = 400
"""Choose by at most this many labels: a seeded sample if there are more."""
TEMPERATURES = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
NOTHING = 1e-9
"""Masses below this say nothing: the shares of the classes, or the mean, count instead."""


class GraphSettings(NamedTuple):
    """How labels become predictions.

    Attributes:
        k, alpha: neighbours of a point, and how far labels spread.
        balanced: whether the mass of each class is scaled to its share of the labels.
        temperature: probabilities are p^(1/T), normalised.
        share: of the median squared distance to a neighbour, at which the weight of a link has fallen to 1/e.
    """

    k: int = 10
    alpha: float = 0.9
    balanced: bool = True
    temperature: float = 1.0
    share: float = 0.25

    @classmethod
    def usual(cls, classes: bool) -> GraphSettings:
        """What is used unless something else is clearly better."""
        return cls() if classes else cls(balanced=False, share=1.0)


class SpreadLabels(NamedTuple):
    """Labels as they spread: (m, c) class memberships, or (m, 2) standardised targets and ones, times their weights."""

    values: FloatArray
    classes: bool

    def at(self, places: IntArray) -> SpreadLabels:
        return SpreadLabels(self.values[places], self.classes)

    @property
    def shares(self) -> FloatArray | None:
        """(c,) of the classes, with one label more for each, so that none is ruled out; None for numbers."""
        if not self.classes:
            return None
        counts = self.values.sum(axis=0)
        return np.asarray((counts + 1) / (counts.sum() + len(counts)))


class ChosenSettings(NamedTuple):
    """Settings, and what each label would be without itself: (m, c) or (m, 1), with its squared errors (m,)."""

    settings: GraphSettings
    said: FloatArray
    errors: FloatArray

    def is_clearly_better(self, other: ChosenSettings) -> bool:
        """Few labels can hardly tell settings apart: better by more than a standard error of the difference."""
        gain = other.errors - self.errors
        return bool(gain.mean() > gain.std() / math.sqrt(len(gain)))


def choose_settings(pool: PoolGraph, points: AnyArray, labels: SpreadLabels) -> ChosenSettings:
    """The best settings if they are clearly better than the usual ones."""
    best: dict[bool, ChosenSettings] = {}
    truth = _truth(labels)
    for settings, said in _try_settings(pool, points, labels):
        tried = ChosenSettings(settings, said, np.square(said - truth).sum(axis=1))
        usual = settings._replace(temperature=1.0) == GraphSettings.usual(labels.classes)
        if usual not in best or tried.errors.mean() < best[usual].errors.mean():
            best[usual] = tried
    other = best.get(False)
    return other if other is not None and other.is_clearly_better(best[True]) else best[True]


def _try_settings(
    pool: PoolGraph, points: AnyArray, labels: SpreadLabels
) -> Iterator[tuple[GraphSettings, FloatArray]]:
    usual = GraphSettings.usual(labels.classes)
    few = len(points) < FEWEST
    for k in (usual.k,) if few else NEIGHBOURS:
        reached, totals = pool.relate_labels(points, k, usual.share)
        for place, alpha in enumerate(ALPHAS):
            if few and alpha != usual.alpha:
                continue
            masses = reached[place] @ labels.values
            balanced = balance(masses, totals[place] @ labels.values, labels) if labels.classes else masses
            for is_balanced in (True, False) if labels.classes and not few else (usual.balanced,):
                for temperature in TEMPERATURES if labels.classes and not few else (usual.temperature,):
                    settings = GraphSettings(k, alpha, is_balanced, temperature, usual.share)
                    yield settings, predict_labels(balanced if is_balanced else masses, temperature, labels.shares)


def balance(masses: FloatArray, everywhere: FloatArray, labels: SpreadLabels) -> FloatArray:
    """(n, c) with the mass of each class, which is `everywhere` (c,), scaled to its share of the labels."""
    assert labels.shares is not None
    return np.asarray(masses * (labels.shares * everywhere.sum() / np.where(everywhere > 0, everywhere, 1.0)))


def predict_labels(masses: FloatArray, temperature: float, shares: FloatArray | None) -> FloatArray:
    """(n, c) probabilities from masses (n, c) and the shares (c,) of the classes; without shares (n, 1) standardised
    predictions from masses (n, 2)."""
    if shares is None:
        return np.asarray(masses[:, :1] / (masses[:, 1:] + NOTHING))
    p = masses + NOTHING * shares
    p /= p.sum(axis=1, keepdims=True)
    if temperature != 1.0:
        p **= 1 / temperature
        p /= p.sum(axis=1, keepdims=True)
    return p


def _truth(labels: SpreadLabels) -> FloatArray:
    if labels.classes:
        return np.asarray(labels.values / labels.values.sum(axis=1, keepdims=True))
    return np.asarray(labels.values[:, :1] / labels.values[:, 1:])
