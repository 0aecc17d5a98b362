"""Labels that may be wrong, as the newest training left them on record."""

from __future__ import annotations

from ally.campaign.settings import Settings
from ally.campaign.values import Suspect
from ally.store import Store


def review(store: Store, settings: Settings, n: int) -> list[Suspect]:
    """At most n labels that are likely to be wrong, likeliest first; those answered anew since the training are left
    out."""
    model = store.models.newest()
    entries = [] if model is None else model.report.get("suspects", [])
    labels = store.labels(settings.store_policy)
    touched = {answer.row for answer in store.answers(0 if model is None else model.seen)}
    standing = [entry for entry in entries if entry["row"] in labels and entry["row"] not in touched][:n]
    found = []
    for entry, id in zip(standing, store.ids([entry["row"] for entry in standing]), strict=True):
        label = labels[entry["row"]]
        found.append(
            Suspect(id, label.value, label.annotator, float(entry["dual"]), entry["predicted"], entry["probability"])
        )
    return found
