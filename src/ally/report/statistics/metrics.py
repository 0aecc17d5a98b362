"""Metrics a report understands: which way is better, and how they are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ally.errors import UnknownName


@dataclass(frozen=True)
class Metric:
    """A measure on the test set."""

    name: str
    higher: bool
    points: bool = False
    """A share: differences are told in points, hundredths of it."""

    @property
    def sign(self) -> float:
        """1 where more is better, -1 where less is."""
        return 1.0 if self.higher else -1.0

    @property
    def direction(self) -> str:
        return f"{'higher' if self.higher else 'lower'} is better"

    def digits(self, size: float) -> int:
        """Decimals for values of that size: four for shares, otherwise four figures that count."""
        if self.points or size == 0:
            return 4
        return min(max(3 - math.floor(math.log10(abs(size))), 0), 8)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("accuracy", higher=True, points=True),
        Metric("balanced_accuracy", higher=True, points=True),
        Metric("f1", higher=True),
        Metric("auroc", higher=True),
        Metric("r2", higher=True),
        Metric("rmse", higher=False),
        Metric("mse", higher=False),
        Metric("mae", higher=False),
        Metric("log_loss", higher=False),
    )
}


def metric_named(name: str) -> Metric:
    """The metric, or an error that lists those that are known."""
    if name not in METRICS:
        raise UnknownName(f"unknown metric {name!r}; known metrics: {', '.join(METRICS)}")
    return METRICS[name]
