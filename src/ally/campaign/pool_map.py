"""The current map of the pool, and similar samples on it: positions from the last training, labels and requests from
the record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ally.campaign.settings import Settings
from ally.campaign.training.chart import Chart
from ally.store import Store

State: TypeAlias = Literal["free", "asked", "labelled", "skipped"]


@dataclass(frozen=True)
class PoolMap:
    """Each list has one entry per sample: its position (between 0 and 1), the model's prediction, the label that
    counts and its state. A sample in the state "asked" is or was reserved for someone. Held-out samples are not on the
    map."""

    model: int
    ids: Sequence[str]
    x: Sequence[float]
    y: Sequence[float]
    predicted: Sequence[Any]
    probability: Sequence[float | None]
    labels: Sequence[Any]
    states: Sequence[State]


def pool_map(store: Store, settings: Settings, chart: Chart, model: int) -> PoolMap:
    rows = chart.rows.tolist()
    decided = store.answers.decided(settings.store_policy)
    asked = store.asked_as()
    labels, states = [], []
    for row in rows:
        said = decided.get(row)
        labels.append(said.value if said is not None and said.kind == "label" else None)
        state: State = "asked" if row in asked else "free"
        states.append(state if said is None else "labelled" if said.kind == "label" else "skipped")
    predicted = [
        (chart.classes[int(value)] if chart.classes else value) if value == value else None
        for value in chart.predicted.tolist()
    ]
    probability = [round(value, 4) if value == value else None for value in chart.probability.tolist()]
    x, y = ([round(value, 4) for value in axis.tolist()] for axis in (chart.x, chart.y))
    return PoolMap(model, store.samples.ids(rows), x, y, predicted, probability, labels, states)


@dataclass(frozen=True)
class Alike:
    """Samples without an answer that the model takes for one class: first the surest, then those nearest to it as the
    model sees them. `open` says how many each class has, by its label."""

    model: int
    open: Mapping[Any, int]
    predicted: Any
    ids: Sequence[str]
    probability: Sequence[float]


def alike(store: Store, settings: Settings, chart: Chart, model: int, n: int, predicted: Any = None) -> Alike | None:
    """At most n; of the class with most samples unless `predicted` names another. None where there is no class."""
    if not chart.classes:
        return None
    decided = store.answers.decided(settings.store_policy)
    waits = np.asarray([row not in decided for row in chart.rows.tolist()], dtype=bool)
    places = chart.predicted[waits].astype(int)
    counted = Counter(places.tolist())
    waiting = {label: counted.get(place, 0) for place, label in enumerate(chart.classes)}
    if predicted not in waiting:
        predicted = max(waiting, key=lambda label: waiting[label])
    inside = np.flatnonzero(waits)[places == chart.classes.index(predicted)]
    if not len(inside):
        return Alike(model, waiting, predicted, [], [])
    surest = inside[np.argmax(chart.probability[inside])]
    gaps = np.square(chart.points[inside] - chart.points[surest]).sum(1)
    gaps[inside == surest] = -1.0  # a copy of it is as near
    first = inside[np.argsort(gaps, kind="stable")[:n]]
    ids = store.samples.ids(chart.rows[first].tolist())
    return Alike(model, waiting, predicted, ids, [round(value, 4) for value in chart.probability[first].tolist()])
