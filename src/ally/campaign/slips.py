"""Answers that may be slips of the finger: said to whoever gave them, never refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ally.campaign.settings import Settings
from ally.sources.export.answers import reads
from ally.types import SKIP

ENOUGH = 20
"""Different numbers told before anything is said about another."""
FAR = 5.0
"""Times the distance between the quartiles, beyond them."""


def slips(settings: Settings, known: Mapping[str, Any], answers: Mapping[str, Any]) -> list[str]:
    """One sentence each; `known` are labels on record by how they read, and `answers`, by id, are not on record yet."""
    told = {id: label for id, label in answers.items() if label is not SKIP}
    if settings.task == "regression":
        return _far_off(known, told)
    return [] if settings.classes is not None else _alike(known, told)


def _alike(known: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """New classes that differ from another only by how they are written."""
    first: dict[str, str] = {}
    for text in (*known, *map(reads, told.values())):
        first.setdefault(_plain(text), text)
    odd: dict[str, str] = {}
    for id, label in told.items():
        other = first[_plain(reads(label))]
        if other != reads(label) and reads(label) not in known:
            odd.setdefault(other, f"{label!r} (of {id!r}) is a class of its own beside {other!r}; if it is a slip, answer again")
    return list(odd.values())


def _plain(text: str) -> str:
    """Without case, and with spaces for other marks between words."""
    return " ".join(re.sub(r"(?<=\w)[-_]+(?=\w)", " ", text.casefold()).split())


def _far_off(known: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """Numbers far from all others."""
    try:
        given = {id: float(value) for id, value in told.items()}
    except (TypeError, ValueError, OverflowError):
        return []  # it will be refused with its reason
    if len(known) < ENOUGH:
        return []
    low, high = np.quantile([float(value) for value in known.values()], [0.25, 0.75])
    reach = FAR * (high - low)
    return [
        f"{value:g} (of {id!r}) is far from the numbers told before (half of the different ones lie between {low:g} and {high:g}); "
        "if it is a slip, answer again"
        for id, value in given.items()
        if reach and not low - reach <= value <= high + reach
    ]
