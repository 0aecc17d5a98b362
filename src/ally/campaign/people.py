"""The people who label: who they are, and how fast they are."""

from __future__ import annotations

import getpass
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ally.campaign.status import GIVEN
from ally.campaign.values import Value
from ally.errors import InputError
from ally.store import StoredAnswer

PAUSE = 120.0
"""A longer gap between answers, in seconds, counts as a break."""
RECENT = 50
"""How many recent answers per person the pace is based on."""


@dataclass(frozen=True)
class Pace(Value):
    """Answers per minute while working, from the median of the last gaps between answers; None before there are any."""

    annotator: str
    answers: int
    per_minute: float | None
    last_at: float


def paces(record: Iterable[StoredAnswer], besides: str) -> list[Pace]:
    """Everyone in the record except `besides`, most answers first."""
    counts: Counter[str] = Counter()
    times: dict[str, deque[float]] = {}
    for answer in record:
        if answer.annotator == besides:
            continue
        counts[answer.annotator] += 1 if answer.kind != "undo" else -1
        times.setdefault(answer.annotator, deque(maxlen=RECENT + 1)).append(answer.at)
    return [Pace(who, n, _per_minute(list(times[who])), times[who][-1]) for who, n in counts.most_common() if n > 0]


def _per_minute(times: list[float]) -> float | None:
    gaps = [later - earlier for earlier, later in pairwise(times) if 0 < later - earlier < PAUSE]
    return round(60.0 / median(gaps), 2) if gaps and median(gaps) > 0 else None


def person(name: str | None) -> str:
    """The name of an annotator; by default `user`."""
    if name == GIVEN:
        raise InputError.about("annotator", name, "is reserved for labels that came with the source; use another name")
    return name or user()


def user() -> str:
    """The account name, for when no annotator is given."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "somebody"
