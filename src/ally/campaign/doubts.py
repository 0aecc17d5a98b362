"""Labels in doubt: those that annotators disagree about, and those that the newest model finds suspicious."""

from __future__ import annotations

from typing import Any

from ally.campaign.settings import Settings
from ally.campaign.values import Suspect
from ally.store import Store
from ally.types import SKIP


def disagreements(store: Store, settings: Settings) -> dict[str, dict[str, Any]]:
    """By id, what each annotator says, where their labels differ."""
    differ = [row for row, label in store.labels(settings.store_policy).items() if label.disagree]
    found: dict[str, dict[str, Any]] = {}
    for people in store.opinions(differ).values():
        found[people[0].sample] = {answer.annotator: SKIP if answer.kind == "skip" else answer.value for answer in people}
    return found


def review(store: Store, settings: Settings, n: int) -> list[Suspect]:
    """At most n labels that are likely to be wrong, likeliest first; those answered anew since the training are left out."""
    model = store.newest_model()
    entries = [] if model is None else model.report.get("suspects", [])
    labels = store.labels(settings.store_policy)
    touched = {answer.row for answer in store.answers(0 if model is None else model.seen)}
    standing = [entry for entry in entries if entry["row"] in labels and entry["row"] not in touched][:n]
    found = []
    for entry, id in zip(standing, store.ids([entry["row"] for entry in standing]), strict=True):
        label = labels[entry["row"]]
        found.append(Suspect(id, label.value, label.annotator, float(entry["dual"]), entry["predicted"], entry["probability"]))
    return found
