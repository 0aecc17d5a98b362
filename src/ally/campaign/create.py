"""Creates a campaign: the source is read once, and the store is created completely or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ally.campaign.changing import check_names, kept_model
from ally.campaign.places import KIND, beside, kept_options, kept_place, on_disk, open_cache, vectors_folder
from ally.campaign.settings import Evaluate, Settings, allow_settings, declarations
from ally.campaign.source import check_options, note_problems
from ally.campaign.status import GIVEN
from ally.catalogue_names import ANY_SHAPE, LEARNERS
from ally.data import Samples, open_source
from ally.data.encoders.choosing import encode_samples
from ally.data.fingerprint import ENCODED, WHOLE_IDS
from ally.data.ids import are_whole
from ally.data.source_labels import LabelReader
from ally.store import NewSample, Store, new_id
from ally.store import create as create_store
from ally.store.values import Role
from ally.types import Progress

EVALUATE, PART, LEAST = 100, 10, 20
"""The evaluation sample by default: 100 samples, no more than a tenth of all, and none if that were fewer than 20."""


def create(
    place: str | Path,
    source: Any,
    given: Mapping[str, Any],
    *,
    clock: Callable[[], float],
    progress: Progress | None,
) -> tuple[Store, Samples, dict[str, Any], str | None]:
    """`given` are settings and options of the source; what was created, the source, its options, and a sentence about
    the task if labels that came with the source decided it."""
    id = new_id()
    cache = open_cache(id) if on_disk(place) else None
    note = None
    try:
        try:
            store, samples, options, note = _create(place, source, given, id, cache, clock=clock, progress=progress)
        except _NumbersFound as found:
            given = {**given, "task": "regression"}
            store, samples, options, _ = _create(place, source, given, id, cache, clock=clock, progress=progress)
            note = found.note
    except BaseException:
        if cache is not None:
            shutil.rmtree(cache, ignore_errors=True)
        raise
    allow_settings(store, remember=False)
    note_problems(store, samples, round(clock(), 6))
    return store, samples, options, note


class _NumbersFound(Exception):
    """Labels were read as classes, and the rule says that they are numbers: the source is read again."""

    def __init__(self, note: str) -> None:
        super().__init__(note)
        self.note = note


def _create(
    place: str | Path,
    source: Any,
    given: Mapping[str, Any],
    id: str,
    cache: Path | None,
    *,
    clock: Callable[[], float],
    progress: Progress | None,
) -> tuple[Store, Samples, dict[str, Any], str | None]:
    declared = declarations()
    names = [item.name for item in declared]
    options = {name: value for name, value in given.items() if name not in names}
    check_options(options, names)
    chosen = {item.name: given.get(item.name, item.default) for item in declared}
    task = chosen["task"]
    if task == "auto":
        chosen["task"] = "classification"
    chosen["model"] = kept_model(chosen["model"]) or "auto"
    evaluate: Evaluate | None = chosen["evaluate"]
    others = {name: value for name, value in chosen.items() if name not in ("encoder", "evaluate")}
    folder = beside(place)

    def settings(fingerprint: Mapping[str, Any], evaluated: Evaluate) -> Settings:
        return Settings(
            kept_place(source, folder),
            kept_options(options, folder),
            fingerprint,
            evaluate=evaluated,
            encoder=fingerprint.get(ENCODED, {}).get("name"),
            **others,
        )

    draft = settings({}, evaluate or 0)
    check_names(draft)
    samples = open_source(source, **options, cache=cache)
    if samples.kind.is_own:
        options[KIND] = samples.kind
    embeddings, kept_in = options.get("embeddings"), vectors_folder(cache)
    samples = encode_samples(samples, chosen["encoder"], draft.model, embeddings, kept_in, folder)
    reading = _Reading(samples, LabelReader(task, draft.classes, draft.place or "the source"), progress)

    def evaluated() -> Evaluate:
        return evaluate if evaluate is not None else evaluate_by_default(reading.found)

    def reserve() -> dict[Role, int]:
        held_out = 0 if evaluate == "cv" else int(evaluated())
        sizes: dict[Role, int] = {"evaluate": held_out, "validate": draft.validation}
        return {role: n for role, n in sizes.items() if n}

    def finished() -> dict[str, Any]:
        reading.decide_task()
        check_model(draft, samples)
        return settings(samples.fingerprint() | reading.describe_ids(), evaluated()).to_json()

    store = create_store(
        place, finished, reading, now=clock(), seed=draft.random_state, reserve=reserve, labelled_by=GIVEN, id=id
    )
    return store, samples, options, reading.note


class _Reading:
    """New samples of a source, counted on the way, and the labels that came with them."""

    def __init__(self, samples: Samples, labels: LabelReader, progress: Progress | None) -> None:
        self.samples = samples
        self.labels = labels
        self.progress = progress
        self.found = 0
        self.whole_ids = True
        self.note: str | None = None

    def __iter__(self) -> Iterator[NewSample]:
        for sample in self.samples.scan():
            self.found += 1
            if self.progress is not None and self.found % 1000 == 0:
                self.progress("reading samples", self.found, 0)
            self.whole_ids = self.whole_ids and are_whole([sample.id])
            yield NewSample(sample.id, sample.hash, label=self.labels.read(sample))

    def describe_ids(self) -> dict[str, bool]:
        """What the fingerprint says of ids that are all whole numbers, and no hashes."""
        layout = self.samples.fingerprint(learned=False).get("layout")
        return {WHOLE_IDS: True} if self.whole_ids and (layout is None or layout["id"] is not None) else {}

    def decide_task(self) -> None:
        """Ask the rule, if there are labels. Raises `_NumbersFound` if they are numbers."""
        verdict = self.labels.decide()
        if verdict is not None:
            self.note = verdict.note
            if verdict.task != self.labels.task:
                raise _NumbersFound(verdict.note)


def evaluate_by_default(samples: int) -> int:
    size = min(EVALUATE, samples // PART)
    return size if size >= LEAST else 0


def check_model(settings: Settings, samples: Samples) -> None:
    """Check that the model accepts the samples."""
    if settings.model is not None and settings.model not in (*ANY_SHAPE, *LEARNERS):
        from ally.learning.network import Network
        from ally.learning.resolve import resolve_learner

        shape = samples.features([]).shape
        learner = resolve_learner(settings.model, shape)
        if isinstance(learner, Network):
            learner.build(shape, 2)
