"""How well annotators agree on samples that several of them labelled: Krippendorff's alpha overall, Cohen's kappa per
pair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ally.campaign.values import Agreement, Value
from ally.data.export.answers import reads
from ally.store import Store, StoredAnswer
from ally.types import Task

LEAST = 2
"""Fewest samples with at least two labels for a meaningful figure."""
MOST_CLASSES = 100


@dataclass(frozen=True)
class PairAgreement(Value):
    """Two people on the samples that both labelled: the share of equal labels, and Cohen's kappa (1 is the same, 0 is
    chance)."""

    one: str
    other: str
    samples: int
    same: float
    kappa: float | None


def agreement_of(store: Store, task: Task) -> Agreement | None:
    """None if fewer than `LEAST` samples have labels from two people."""
    shared = [row for row, label in store.answers.labels().items() if label.answers > 1]
    units = [
        [answer.value for answer in people if answer.kind == "label"]
        for people in store.answers.opinions(shared).values()
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
    """1 - observed / expected disagreement: 1 if all agree, 0 if labels might as well be random.

    Each unit holds the labels of one sample, at least two; `disagreement` adds up the distances of all ordered pairs of
    a list. If all labels are equal it is 1.
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


def agreements(opinions: Mapping[int, list[StoredAnswer]]) -> list[PairAgreement]:
    """For each pair of people who labelled the same samples, pairs with the most samples first."""
    pairs: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for people in opinions.values():
        labels = sorted((said.annotator, reads(said.value)) for said in people if said.kind == "label")
        for (one, first), (other, second) in combinations(labels, 2):
            pairs.setdefault((one, other), []).append((first, second))
    found = [_pair(one, other, labels) for (one, other), labels in pairs.items()]
    return sorted(found, key=lambda pair: (-pair.samples, pair.one, pair.other))


def _pair(one: str, other: str, labels: list[tuple[Any, Any]]) -> PairAgreement:
    n = len(labels)
    same = sum(first == second for first, second in labels) / n
    left, right = Counter(first for first, _ in labels), Counter(second for _, second in labels)
    chance = sum(left[label] * right[label] for label in left) / n**2
    return PairAgreement(one, other, n, same, None if chance == 1.0 else (same - chance) / (1.0 - chance))
