"""How much annotators agree: Krippendorff's alpha over the samples that several of them labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ally.campaign.values import Agreement
from ally.sources.export.answers import reads
from ally.store import Store
from ally.types import Task

LEAST = 2
"""Samples with two labels at least, below which nothing can be said."""
MOST_CLASSES = 100


def agreement_of(store: Store, task: Task) -> Agreement | None:
    """None where fewer than `LEAST` samples have labels of two people."""
    shared = [row for row, label in store.labels().items() if label.answers > 1]
    units = [
        [answer.value for answer in people if answer.kind == "label"] for people in store.opinions(shared).values()
    ]
    units = [labels for labels in units if len(labels) > 1]
    if len(units) < LEAST:
        return None
    if task == "regression":
        return Agreement(alpha([[float(label) for label in labels] for labels in units], squares), len(units), {})
    named = [[reads(label) for label in labels] for labels in units]
    classes = list(dict.fromkeys(label for labels in named for label in labels))[:MOST_CLASSES]
    each = {name: alpha([[label == name for label in labels] for labels in named], unequal) for name in classes}
    return Agreement(alpha(named, unequal), len(units), each)


def alpha(units: Sequence[Sequence[Any]], disagreement: Callable[[Sequence[Any]], float]) -> float:
    """1 - observed / expected disagreement: 1 where all agree, 0 where labels might as well be drawn at random.

    Each unit holds the labels of one sample, two at least; `disagreement` adds up the distances of all ordered pairs of
    a list. Equal labels everywhere leave nothing to expect: 1.
    """
    pooled = [label for labels in units for label in labels]
    observed = sum(disagreement(labels) / (len(labels) - 1) for labels in units) / len(pooled)
    expected = disagreement(pooled) / (len(pooled) * (len(pooled) - 1))
    return 1.0 if expected == 0 else 1.0 - observed / expected


def unequal(labels: Sequence[Any]) -> float:
    """How many ordered pairs differ."""
    return float(len(labels) ** 2 - sum(n * n for n in Counter(labels).values()))


def squares(numbers: Sequence[float]) -> float:
    """The squared differences of all ordered pairs."""
    middle = sum(numbers) / len(numbers)
    return 2 * len(numbers) * sum((number - middle) ** 2 for number in numbers)
