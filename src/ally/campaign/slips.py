"""Answers that may be slips of the finger: said to whoever gave them, never refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ally.campaign.settings import Settings
from ally.store import Store
from ally.types import SKIP

ENOUGH = 20
"""Numbers told before anything is said about another."""
FAR = 5.0
"""Times the distance between the quartiles, beyond them."""


def slips(store: Store, settings: Settings, answers: Mapping[str, Any]) -> list[str]:
    """One sentence each; `answers` are by id, and not on record yet."""
    told = {id: label for id, label in answers.items() if label is not SKIP}
    if settings.task == "regression":
        return _far_off(store, settings, told)
    return [] if settings.classes is not None else _alike(store, settings, told)


def _alike(store: Store, settings: Settings, told: Mapping[str, Any]) -> list[str]:
    """New classes that differ from another only by how they are written."""
    first: dict[str, Any] = {}
    for label in (*(label.value for label in store.labels(settings.policy).values()), *told.values()):
        first.setdefault(_plain(label), label)
    odd: dict[str, str] = {}
    for id, label in told.items():
        other = first[_plain(label)]
        if str(other).strip() != str(label).strip():
            odd.setdefault(str(label), f"{label!r} (of {id!r}) is a class of its own beside {other!r}; if it is a slip, answer again")
    return list(odd.values())


def _plain(label: Any) -> str:
    return " ".join(str(label).casefold().replace("_", " ").replace("-", " ").split())


def _far_off(store: Store, settings: Settings, told: Mapping[str, Any]) -> list[str]:
    """Numbers far from all others."""
    try:
        given = {id: float(value) for id, value in told.items()}
    except (TypeError, ValueError):
        return []  # it will be refused with its reason
    before = [float(label.value) for label in store.labels(settings.policy).values()]
    if len(before) < ENOUGH:
        return []
    low, high = np.quantile(before, [0.25, 0.75])
    reach = FAR * (high - low)
    return [
        f"{value:g} (of {id!r}) is far from what was told before (half of it between {low:g} and {high:g}); if it is a slip, answer again"
        for id, value in given.items()
        if reach and not low - reach <= value <= high + reach
    ]
