"""The map of the pool as it is now: places from the last training, labels and requests from the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ally.campaign.settings import Settings
from ally.campaign.training.chart import Chart
from ally.store import Store

State: TypeAlias = Literal["free", "asked", "labelled", "skipped"]


@dataclass(frozen=True)
class PoolMap:
    """One entry per sample in each: its place (between 0 and 1), what the model says of it, the label that counts and
    its state. A sample that is asked about is with somebody, or was. Samples that measure the model are not on it."""

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
    decided = store.decided(settings.store_policy)
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
    return PoolMap(model, store.ids(rows), x, y, predicted, probability, labels, states)
