"""The conformance check of samples.

    from ally.testing.samples import check_samples
    check_samples(lambda known: open_source("clips/", kind=SOUNDS, known=known))

The contract is in `ally.data.samples`. A check that fails raises `AssertionError` and says what it found.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from ally.data import Sample, SampleKind, Samples, Shown, Source
from ally.data.problems import Problems
from ally.errors import AllyError, IdError
from ally.types import AnyArray

MakeSamples: TypeAlias = Callable[[Mapping[str, Any] | None], Samples]
"""Opens the same source anew; with a fingerprint, as it was known before."""
LOOKED_AT = 50
"""Samples that are shown and read; all are scanned."""


@dataclass(frozen=True)
class SamplesBench:
    """A source to try: at least two samples that can be read."""

    make: MakeSamples

    @cached_property
    def samples(self) -> Samples:
        return self.make(None)

    @cached_property
    def scanned(self) -> list[Sample]:
        return list(self.samples.scan())

    @cached_property
    def ids(self) -> list[str]:
        return [sample.id for sample in self.scanned][:LOOKED_AT]

    @cached_property
    def unknown(self) -> str:
        """An id that the source does not have."""
        return "no-such-sample" + "-" * max(len(sample.id) for sample in self.scanned)

    @cached_property
    def values(self) -> AnyArray:
        """What is read of the first samples, together."""
        return self.samples.features(self.ids).read(np.arange(len(self.ids)))


def ids_are_unique_and_stable(bench: SamplesBench) -> None:
    ids = [sample.id for sample in bench.scanned]
    assert len(ids) >= 2, f"a scan gave {len(ids)} samples; give a source with at least two"
    odd = next((id for id in ids if not isinstance(id, str) or not id), None)
    assert odd is None, f"the id {odd!r} is a {type(odd).__name__}; ids are texts that are not empty"
    twice = next((id for id in ids if ids.count(id) > 1), None) if len(set(ids)) < len(ids) else None
    assert twice is None, f"the id {twice!r} came more than once in a scan"
    again = list(bench.make(None).scan())
    assert [sample.id for sample in again] == ids, "the same source opened again gave other ids, or another order"
    assert again == bench.scanned, "the same source opened again gave other hashes or labels"


def a_scan_starts_anew(bench: SamplesBench) -> None:
    samples = bench.make(None)
    next(iter(samples.scan()))
    assert list(samples.scan()) == bench.scanned, "a scan after one that was abandoned gave other samples"
    problems = list(samples.problems)
    assert list(samples.scan()) == bench.scanned, "a second scan gave other samples"
    assert list(samples.problems) == problems, "a second scan recorded other problems; a scan empties them first"


def kind_is_an_entry(bench: SamplesBench) -> None:
    kind = bench.samples.kind
    assert isinstance(kind, SampleKind), f"kind is a {type(kind).__name__}; it is an ally.data.SampleKind"
    assert kind is bench.make(None).kind, "the same source opened again is of another kind"
    assert all(isinstance(word, str) and word for word in kind.words), f"words are {kind.words!r}"
    assert kind.widget in ("image", "text", "card"), f"the widget {kind.widget!r} is unknown"


def features_follow_the_ids(bench: SamplesBench) -> None:
    source, n = bench.samples.features(bench.ids), len(bench.ids)
    assert isinstance(source, Source), f"features are a {type(source).__name__}; they are an ally.data.Source"
    assert len(source) == n, f"features of {n} ids have {len(source)} rows"
    assert bench.values.shape == (n, *source.shape), f"read gave {bench.values.shape} for {n} rows of {source.shape}"
    assert bench.values.dtype.kind == "f", f"features are of the type {bench.values.dtype}; they are floats"
    assert np.isfinite(bench.values).all(), "features hold NaN or infinity"
    turned = bench.samples.features(bench.ids[::-1]).read(np.arange(n))
    assert np.array_equal(turned, bench.values[::-1]), "features of the ids in another order are not in that order"
    rows = np.asarray([n - 1, 0, 0])
    assert np.array_equal(source.read(rows), bench.values[rows]), "rows in another order, or twice, are others"
    empty = source.read(np.arange(0))
    assert empty.shape == (0, *source.shape), f"no rows have the shape {empty.shape}"


def features_are_equal_for_any_chunks(bench: SamplesBench) -> None:
    source, n = bench.samples.features(bench.ids), len(bench.ids)
    for size in (1, 2, 7):
        parts = [source.read(np.arange(start, min(start + size, n))) for start in range(0, n, size)]
        assert np.array_equal(np.concatenate(parts), bench.values), f"read {size} at a time, features are others"
    if source.divisible:
        half = source.part(slice(n // 2, n))
        assert np.array_equal(half.read(np.arange(len(half))), bench.values[n // 2 :]), "a part has other features"


def every_sample_is_shown(bench: SamplesBench) -> None:
    for id in bench.ids:
        shown = bench.samples.show(id)
        assert isinstance(shown, Shown), f"show gave a {type(shown).__name__}; it gives an ally.data.Shown"
        assert shown.id == id, f"show({id!r}) gave the sample {shown.id!r}"
        seen = shown.path is not None or shown.picture is not None or shown.text or shown.columns
        assert seen, f"there is nothing to see of {id!r}"
        assert shown.path is None or shown.path.is_file(), f"the image of {id!r} is no file: {shown.path}"
        if shown.picture is not None:
            from PIL import Image

            with Image.open(io.BytesIO(shown.picture)) as picture:
                picture.verify()


def missing_ids_are_named(bench: SamplesBench) -> None:
    samples, unknown = bench.make(None), bench.unknown
    assert samples.missing(bench.ids) == [], "ids of the scan are missing"
    assert samples.missing([]) == [], "of no ids some are missing"
    found = samples.missing([bench.ids[0], unknown, bench.ids[1]])
    assert found == [unknown], f"missing said {found!r}, and {unknown!r} is the one that is not there"
    assert [problem.kind for problem in samples.problems.of(unknown)] == ["gone"], "a missing id is a problem 'gone'"
    for name, call in (("show", lambda: samples.show(unknown)), ("features", lambda: samples.features([unknown]))):
        words = _words_of_error(call)
        assert words is not None, f"{name} took the id {unknown!r}, which the source does not have"
        assert unknown in words, f"{name} of an unknown id raised an error that does not name it: {words}"


def _words_of_error(call: Callable[[], Any]) -> str | None:
    """What an `IdError` of the call says; None if it raises none."""
    try:
        call()
    except IdError as error:
        return str(error)
    return None


def a_fingerprint_keeps_the_meaning(bench: SamplesBench) -> None:
    kept = bench.samples.fingerprint()
    try:
        written = json.loads(json.dumps(kept, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the fingerprint is not plain JSON: {error}") from error
    assert written == kept, "the fingerprint changes when it is written as JSON; use lists and texts as keys"
    assert kept.get("kind") == bench.samples.kind.name, f"the fingerprint names the kind {kept.get('kind')!r}"
    quick = bench.make(None).fingerprint(learned=False)
    odd = next((name for name, value in quick.items() if kept.get(name, value) != value), None)
    assert odd is None, f"with and without what is learned, the fingerprint has another {odd!r}"
    again = bench.make(written)
    assert again.fingerprint() == kept, "opened by its fingerprint, the source has another one"
    values = again.features(bench.ids).read(np.arange(len(bench.ids)))
    assert np.array_equal(values, bench.values), "opened by its fingerprint, the source has other features"
    assert list(again.scan()) == bench.scanned, "opened by its fingerprint, the source has other samples"


def problems_are_named(bench: SamplesBench) -> None:
    problems = bench.samples.problems
    assert isinstance(problems, Problems), f"problems are a {type(problems).__name__}"
    for problem in problems:
        assert problem.id, f"a problem without its sample: {problem}"
        assert problem.reason.strip(), f"a problem without a reason: {problem}"


def notes_are_sentences(bench: SamplesBench) -> None:
    notes = bench.samples.notes
    assert isinstance(notes, tuple), f"notes are a {type(notes).__name__}; they are a tuple of texts"
    for note in notes:
        assert isinstance(note, str), f"the note {note!r} is no text"
        assert len(note.split()) > 1, f"the note {note!r} is no sentence"
        assert "\n" not in note, f"the note {note!r} has several lines"


def contents_are_what_an_encoder_reads(bench: SamplesBench) -> None:
    if bench.samples.kind.encoder is None:
        try:
            bench.samples.contents(bench.ids)
        except AllyError:
            return
        raise AssertionError("contents gave something, and the kind says that no encoder reads it")
    for id, content in zip(bench.ids, bench.samples.contents(bench.ids), strict=True):
        fits = isinstance(content, str) if bench.samples.kind.encoder == "text" else hasattr(content, "open")
        assert fits, f"of {id!r}, an encoder of {bench.samples.kind.encoder}s would get a {type(content).__name__}"


CHECKS = (
    ids_are_unique_and_stable,
    a_scan_starts_anew,
    kind_is_an_entry,
    features_follow_the_ids,
    features_are_equal_for_any_chunks,
    every_sample_is_shown,
    missing_ids_are_named,
    a_fingerprint_keeps_the_meaning,
    problems_are_named,
    notes_are_sentences,
    contents_are_what_an_encoder_reads,
)


def check_samples(make: MakeSamples) -> None:
    """Raises unless the samples that `make` opens keep their contract. ``make(known)`` opens the same source anew each
    time, with an earlier fingerprint if `known` is one and otherwise for the first time."""
    bench = SamplesBench(make)
    for check in CHECKS:
        check(bench)
