"""The data of a training: labels by purpose, and the unlabelled samples that may be asked about next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ally.campaign.settings import Settings
from ally.campaign.training.schedule import UNENCODED
from ally.data import Samples
from ally.data.encoders.samples import EncodedSamples
from ally.data.export.answers import reads
from ally.data.identity import id_keys
from ally.rng import streams
from ally.store import Store
from ally.store.values import Role
from ally.types import Progress

SECONDS = 60.0
"""A training in the background encodes for so long, or for three times as long as the last training took."""


@dataclass(frozen=True)
class Part:
    """Samples by store row and id, with labels if they have any."""

    rows: tuple[int, ...] = ()
    ids: tuple[str, ...] = ()
    labels: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: Sequence[int]) -> Part:
        labels = tuple(self.labels[place] for place in places) if self.labels else ()
        return Part(tuple(self.rows[place] for place in places), tuple(self.ids[place] for place in places), labels)


@dataclass(frozen=True)
class TrainingData:
    """`seen` is the last answer the labels include. Samples missing from the source are in no part."""

    seen: int
    training: Part
    evaluate: Part
    validate: Part
    candidates: Part
    free: int
    """Total number of unlabelled samples; `candidates` may be a random part of them."""
    gone: tuple[str, ...]
    """Samples newly found to be missing."""

    @property
    def classes(self) -> list[Any]:
        """Every label that training may use, in order."""
        return in_order({*self.training.labels, *self.validate.labels})

    @property
    def every_label(self) -> Part:
        """Training, validation and evaluation samples."""
        parts = (self.training, self.validate, self.evaluate)
        return Part(*(sum((getattr(part, name) for part in parts), ()) for name in ("rows", "ids", "labels")))


def in_order(labels: Iterable[Any]) -> list[Any]:
    return sorted(set(labels), key=lambda label: (type(label).__name__, label))


def gather(store: Store, samples: Samples, settings: Settings, turn: int) -> TrainingData:
    """Reads labels and samples; `turn` varies which unlabelled ones are looked at, if there are more than `look_at`."""
    seen = store.answers.last_number()
    decided = store.answers.decided(settings.store_policy)
    labels = {row: label.value for row, label in decided.items() if label.kind == "label"}
    if settings.task == "classification":
        # Classes may have been declared after labels were given, and two people may have told 1 and "1" at the same
        # moment.
        first = {reads(label): label for label in settings.classes or ()}
        labels = {row: first.setdefault(reads(label), label) for row, label in labels.items()}
    labelled: dict[Role, list[tuple[int, str]]] = {"pool": [], "evaluate": [], "validate": []}
    rows: list[int] = []
    ids: list[str] = []
    for sample in store.samples.all():
        if sample.gone:
            continue
        if sample.row in labels:
            labelled[sample.role].append((sample.row, sample.id))
        elif sample.role == "pool" and sample.row not in decided:
            rows.append(sample.row)
            ids.append(sample.id)
    free = len(rows)
    if free > settings.look_at:
        chosen = np.sort(
            streams(settings.random_state).child(f"look {turn}").numpy("rows").permutation(free)[: settings.look_at]
        ).tolist()
        rows, ids = [rows[place] for place in chosen], [ids[place] for place in chosen]
    used = [id for part in labelled.values() for _, id in part] + ids
    gone = set(samples.missing(used))
    parts = {role: _labelled(part, labels, gone) for role, part in labelled.items()}
    kept = [(row, id) for row, id in zip(rows, ids, strict=True) if id not in gone]
    candidates = Part(tuple(row for row, _ in kept), tuple(id for _, id in kept))
    return TrainingData(
        seen, parts["pool"], parts["evaluate"], parts["validate"], candidates, free, tuple(sorted(gone))
    )


def _labelled(part: Sequence[tuple[int, str]], labels: dict[int, Any], gone: set[str]) -> Part:
    there = [(row, id) for row, id in part if id not in gone]
    return Part(tuple(row for row, _ in there), tuple(id for _, id in there), tuple(labels[row] for row, _ in there))


def encode_first(
    store: Store, samples: Samples, data: TrainingData, progress: Progress | None, at_once: bool
) -> tuple[TrainingData, dict[str, Any]]:
    """The data, with those candidates that are encoded, and what the report says about it.

    Labelled samples come first, then as many candidates as time allows: annotators do not wait for a pool that takes
    hours to encode. Queries come from a model of what is encoded, and the rest follows in the next training.
    """
    if not isinstance(samples, EncodedSamples):
        return data, {}
    samples.prepare([*data.training.ids, *data.validate.ids, *data.evaluate.ids], progress)
    candidates = data.candidates
    # By a hash of the id: the same random order each time, so that what is encoded stays a random part of the pool.
    order = np.argsort(id_keys(candidates.ids), kind="stable").tolist()
    newest = store.models.newest()
    last = 0.0 if newest is None else float(newest.report.get("seconds", 0.0))
    seconds = None if at_once else max(SECONDS, 3 * last)
    done = samples.prepare([candidates.ids[place] for place in order], progress, seconds)
    notes = list(samples.encoder_notes)
    if done < len(candidates):
        notes.append(f"{done} of {len(candidates)} unlabelled samples are encoded; the others follow")
        data = replace(data, candidates=candidates.at(sorted(order[:done])))
    return data, {UNENCODED: len(candidates) - done, "notes": notes}
