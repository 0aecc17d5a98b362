"""The source of a campaign: how it is opened, found again and rescanned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from ally.campaign.answers import Vocabulary
from ally.campaign.permissions import PLACE_OF_SOURCE
from ally.campaign.places import (
    KIND,
    PATHS,
    absolute,
    beside,
    found_place,
    kept_options,
    kept_place,
    on_disk,
    open_cache,
    vectors_folder,
)
from ally.campaign.settings import Settings, allow_settings, current_settings
from ally.campaign.status import GIVEN
from ally.campaign.values import Scanned
from ally.data import Answer, Sample, SampleKind, Samples, open_source
from ally.data.encoders.choosing import encoded_again
from ally.data.source_labels import normalize_answer
from ally.errors import DataError, InputError, NotTrusted
from ally.store import NewSample, Store
from ally.types import Progress


class SourceOptions(TypedDict, total=False):
    """How the source is read; see `ally.data.open_source`."""

    kind: SampleKind | str | None
    id_column: str | None
    text: str | None
    image: str | None
    label: str | None
    embeddings: Any
    columns: Any
    recursive: bool
    ids: Any
    folder: str | Path | None
    encoding: str
    header: bool
    size: int
    channels: Literal["auto", "first", "last"]
    missing_label: str | int | None


def check_options(options: Mapping[str, Any], settings: Iterable[str] = ()) -> None:
    """Check the options of a source; if `settings` are allowed too, the error lists them."""
    odd = next((name for name in options if name not in SourceOptions.__annotations__), None)
    if odd is not None:
        others = f"; a campaign has the settings {', '.join(settings)}" if settings else ""
        raise InputError(f"{odd}= is not known; a source takes {', '.join(SourceOptions.__annotations__)}{others}")


LOOKED_AT = 1000
"""How many samples are used to recognise a source."""


class CampaignSource:
    """``campaign.source``: the samples of a campaign, wherever they are now."""

    def __init__(
        self,
        place: str | Path,
        store: Store,
        clock: Callable[[], float],
        vocabulary: Vocabulary,
        source: Any,
        options: Mapping[str, Any],
        samples: Samples | None,
        encoder: Any,
    ) -> None:
        self.place = absolute(place)
        """Where the campaign is kept."""
        self.encoder = encoder
        """The encoder, where it was passed again."""
        self._store, self._clock, self._vocabulary = store, clock, vocabulary
        self._source, self._options, self._samples = source, options, samples
        self._opening = threading.Lock()

    @property
    def samples(self) -> Samples:
        """The source, opened on first use."""
        with self._opening:
            if self._samples is None:
                self._samples = self._open(self._source, self._options)
            return self._samples

    def _open(self, source: Any, options: Mapping[str, Any]) -> Samples:
        settings = current_settings(self._store)
        return found_source(settings, self.place, source, options, self.encoder, self.cache)

    def encode(self, samples: Samples, fingerprint: Mapping[str, Any]) -> Samples:
        """Other samples, seen as a model with this fingerprint sees them."""
        allowed = current_settings(self._store).encoded
        kept_in, folder = vectors_folder(self.cache), beside(self.place)
        return encoded_again(samples, fingerprint, self.encoder, kept_in, folder, allowed=allowed)

    def kind_option(self) -> SourceOptions:
        """The kind of data as `open_source` takes it, for other samples of this kind; nothing where it is found out.
        The source itself need not be there."""
        settings = current_settings(self._store)
        if self._options.get(KIND) is not None:
            return {"kind": self._options[KIND]}
        ensure_kind_allowed(settings)
        if KIND not in settings.options:
            return {}
        kept = settings.options[KIND]
        return {"kind": self.samples.kind if kept is None else kept}

    @property
    def size(self) -> int:
        """How many samples there are, missing ones included."""
        return self._store.samples.size()

    @property
    def cache(self) -> Path | None:
        """The cache folder, for instance for row positions in a long table; None if the campaign lives in memory."""
        return open_cache(self._store.id) if on_disk(self.place) else None

    def move(self, source: Any, **options: Unpack[SourceOptions]) -> None:
        """Set the source's new place. It must be the same kind of source and contain samples of the campaign."""
        check_options(options)
        samples = self._open(source, options)
        folder = beside(self.place)
        moved = moved_settings(current_settings(self._store), source, options, samples, self._store, folder)

        def change(kept: dict[str, Any]) -> dict[str, Any]:
            return replace(Settings.from_json(kept), place=moved.place, options=moved.options).to_json()

        self._store.change_settings(change)
        named = (KIND,) if KIND in options else ()
        allow_settings(self._store, (PLACE_OF_SOURCE, *PATHS, *named), remember=False)
        with self._opening:
            self._source, self._options, self._samples = source, options, samples

    def rescan(self, progress: Progress | None = None) -> Scanned:
        """Read the source again: add new samples, set missing ones aside, and restore those that reappeared."""
        settings = current_settings(self._store)
        labels = self._vocabulary.of(settings)
        return rescan(self._store, self.samples, settings, labels, self._clock(), progress)

    def problems(self) -> tuple[str, ...]:
        """Problems with single samples when the source was last read, in sentences; at most twenty."""
        return problems(self._store)

    def elsewhere(self) -> str | None:
        """Where another process can open the campaign with this source; None if it cannot."""
        kept = current_settings(self._store)
        same = self._source is None or kept_place(self._source, beside(self.place)) == kept.place
        encoded = not (kept.encoded or {}).get("in memory")
        found = on_disk(self.place) and kept.place is not None and None not in kept.options.values()
        return str(self.place) if found and same and encoded else None


def found_source(
    settings: Settings,
    store_place: str | Path,
    given: Any,
    options: Mapping[str, Any],
    encoder: Any = None,
    cache: Path | None = None,
) -> Samples:
    """The source as the settings describe it, or at the place now `given`, through the `encoder` if one is passed
    again."""
    folder = beside(store_place)
    if KIND not in options:
        ensure_kind_allowed(settings)
    for one in settings.ignored:
        named_again = given is not None if one.name == PLACE_OF_SOURCE else one.name in options
        if one.name in (PLACE_OF_SOURCE, *PATHS) and not named_again:
            raise NotTrusted(
                f"the campaign's {one} lies outside its folder and is not read until you allow it (`ally trust NAME`) "
                "or say yourself where it is (--from PLACE)"
            )
    place = given if given is not None else found_place(settings.place, folder)
    if place is None:
        raise InputError("the campaign's source lived in memory; pass it again: Campaign.open(place, source=...)")
    if given is None and not Path(place).exists():
        raise DataError(
            f"the source {place} is missing; bring it back, or say where it is now: `ally change NAME --from "
            "PLACE`, campaign.source.move(place)"
        )
    kept = dict(settings.options)
    for name in PATHS:
        if isinstance(kept.get(name), str):
            kept[name] = found_place(kept[name], folder)
    lost = next((name for name, value in kept.items() if value is None and name not in options), None)
    if lost is not None:
        raise InputError(
            f"the {lost} of the campaign's source lived in memory; pass them again: Campaign.open(place, {lost}=...)"
        )
    samples = open_source(place, **{**kept, **options}, cache=cache, known=settings.fingerprint)
    about = settings.encoded
    return encoded_again(samples, settings.fingerprint, encoder, vectors_folder(cache), folder, allowed=about)


def ensure_kind_allowed(settings: Settings) -> None:
    """Raises `NotTrusted` if the campaign names a kind of data that is code, and its user has not allowed it."""
    for one in settings.ignored:
        if one.name == KIND:
            raise NotTrusted(
                f"the campaign's {one} names code, which does not run until you allow it (`ally trust NAME`) or pass "
                "it yourself: Campaign.open(place, kind=...)"
            )


def moved_settings(
    settings: Settings, place: Any, options: Mapping[str, Any], samples: Samples, store: Store, folder: Path | None
) -> Settings:
    """The settings with a new place of the source, if it has any of the samples."""
    some = [sample.id for sample in islice(store.samples.all(), LOOKED_AT)]
    if len(samples.missing(some)) == len(some):
        raise InputError(
            f"{place} has none of the campaign's samples, such as {some[0]!r}; name the place where they are now"
        )
    samples.problems.clear()
    kept = {**settings.options, **kept_options(options, folder)}
    return replace(settings, place=kept_place(place, folder), options=kept)


def new_sample(sample: Sample, settings: Settings, first: dict[str, Any]) -> NewSample:
    """A sample in the store's form; its label, if any, is checked. `first` maps written forms to labels and grows."""
    if sample.label is None:
        return NewSample(sample.id, sample.hash)
    answer = normalize_answer(Answer(sample.id, sample.label), settings.task, settings.classes, first)
    return NewSample(sample.id, sample.hash, label=answer.label)


SOURCE = "source"
"""The kind of event that records the result of a scan."""
UNREADABLE = "unreadable"
"""The kind of event that records which samples a training could not read, and why."""
SHOWN = 20


def rescan(
    store: Store,
    samples: Samples,
    settings: Settings,
    labels: Mapping[str, Any],
    now: float,
    progress: Progress | None = None,
) -> Scanned:
    """Add new samples to the pool, set missing ones aside, restore those that reappeared, and take new labels of the
    source for samples nobody has labelled. `labels` are the campaign's labels by their written form."""
    known = {sample.id: sample.gone for sample in store.samples.all()}
    kept = {sample.id: sample.hash for sample in store.samples.all() if sample.gone}
    broken = unreadable(store)
    first = dict(labels)
    there: set[str] = set()

    def new() -> Iterator[NewSample]:
        for sample in samples.scan():
            if sample.id in broken and sample.hash == kept.get(sample.id):
                samples.problems.add(sample.id, "unreadable", broken[sample.id])
                continue
            there.add(sample.id)
            if progress is not None and len(there) % 1000 == 0:
                progress("reading samples", len(there), 0)
            if sample.id not in known or sample.label is not None:
                try:
                    yield new_sample(sample, settings, first)
                except InputError as error:
                    samples.problems.add(sample.id, "value", str(error))
                    yield new_sample(sample._replace(label=None), settings, first)

    added = store.samples.add(new(), now=now, labelled_by=GIVEN)
    gone = store.samples.mark_gone([id for id, was_gone in known.items() if id not in there and not was_gone])
    back = store.samples.mark_gone([id for id, was_gone in known.items() if id in there and was_gone], gone=False)
    met = note_problems(store, samples, now, added=added.samples, gone=gone, back=back, labelled=added.labels)
    return Scanned(added.samples, gone, back, added.labels, met)


def set_aside(store: Store, now: float, reasons: Mapping[str, str]) -> None:
    """Stop asking about samples that a training could not read, and record why."""
    known = {sample.id for sample in store.samples.all() if not sample.gone} & set(reasons) if reasons else set()
    if known:
        store.samples.mark_gone(sorted(known))
        store.log(now, UNREADABLE, {"reasons": {id: reasons[id] for id in sorted(known)}})


def unreadable(store: Store) -> dict[str, str]:
    """By id, why samples now set aside could not be read in a training."""
    met: dict[str, str] = {}
    for event in store.events():
        if event.kind == UNREADABLE:
            met |= event.detail.get("reasons", {})
    if not met:
        return {}
    gone = {sample.id for sample in store.samples.all() if sample.gone}
    return {id: reason for id, reason in met.items() if id in gone}


def note_problems(store: Store, samples: Samples, now: float, **figures: int) -> tuple[str, ...]:
    """Record the problems of a scan; the first few, as sentences."""
    met = samples.problems
    shown = [f"{problem.id}: {problem.reason}" for problem in met][:SHOWN]
    if len(met) > len(shown):
        shown.append(f"and {len(met) - len(shown)} more")
    store.log(now, SOURCE, {"problems": shown, "counts": dict(met.counts), **figures})
    return tuple(shown)


def problems(store: Store) -> tuple[str, ...]:
    """Problems of the last scan, and samples that trainings could not read since."""
    last = [event.detail.get("problems", []) for event in store.events() if event.kind == SOURCE]
    said = list(last[-1]) if last else []
    later = [f"{id}: {reason}" for id, reason in unreadable(store).items()]
    return tuple(dict.fromkeys([*said, *later]))
