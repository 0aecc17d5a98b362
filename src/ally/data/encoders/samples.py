"""The samples of a campaign as vectors of an encoder.

Nothing is encoded, and no model is loaded, before features are read or `prepare` is called: what asks and shows samples
does not wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.base import Source
from ally.data.encoders.base import Encoder, EncoderKind
from ally.data.encoders.places import InUse, machine_folder, scratch_folder
from ally.data.encoders.vectors import BATCH, Kept, windows
from ally.data.fingerprint import ENCODED
from ally.data.kinds import SampleKind
from ally.data.problems import Problems
from ally.data.samples import ById, Sample, Samples, Shown, ensure_none_gone
from ally.errors import InputError
from ally.types import AnyArray, Progress

WORDS = "words"
"""In what the fingerprint keeps of an encoder of texts: whether words are kept too. Campaigns of 0.1.0 do not say."""
PIXELS = "pixels"
"""What a model says of the features it was trained on, where they are not the encoder's."""


class EncodedSamples(Samples):
    """`samples` seen through an encoder. `about` is what the fingerprint keeps of it: its name, identity and width."""

    def __init__(
        self, samples: Samples, about: Mapping[str, Any], open: Callable[[], Encoder], folder: Path | None = None
    ) -> None:
        """`open` gives the encoder when it is first needed. Vectors are kept in `folder`, else while this object
        lives."""
        self.samples = samples
        self.problems: Problems = samples.problems
        self.about = dict(about)
        self._open = open
        self._folder = scratch_folder(self) if folder is None else folder
        self._in_use: InUse | None = None
        self._encoder: Encoder | None = None
        self._kept: Kept | None = None
        self._rows: dict[str, int] = {}
        self._one_at_a_time = threading.RLock()

    def see(self, samples: Samples) -> EncodedSamples:
        """Other samples through the same encoder."""
        return EncodedSamples(samples, self.about, self._open)

    @property
    def kind(self) -> SampleKind:
        return self.samples.kind

    @property
    def encoder_kind(self) -> EncoderKind:
        assert self.kind.encoder is not None
        return self.kind.encoder

    @property
    def width(self) -> int:
        return int(self.about["width"])

    @property
    def _with_words(self) -> bool:
        """Whether the learner sees the words of the texts too."""
        return bool(self.about.get(WORDS))

    @property
    def notes(self) -> tuple[str, ...]:
        others = [note for note in self.samples.notes if not note.startswith("the learner reads")]
        words = f"the learner reads {self.width} numbers that the encoder {self.about['name']} makes of each sample"
        return (*others, words)

    @property
    def encoder_notes(self) -> tuple[str, ...]:
        """What the encoder met, in sentences, since it was opened."""
        return tuple(getattr(self._encoder, "notes", ()))

    def columns(self) -> dict[str, str]:
        return self.samples.columns()

    def scan(self) -> Iterator[Sample]:
        self._rows.clear()
        return self.samples.scan()

    def show(self, id: str) -> Shown:
        return self.samples.show(id)

    def missing(self, ids: Sequence[str]) -> list[str]:
        return self.samples.missing(ids)

    def contents(self, ids: Sequence[str]) -> list[str | Path | None]:
        return self.samples.contents(ids)

    def features(self, ids: Sequence[str]) -> Source:
        """Vectors (width,) of one common scale; those that are missing are made when they are read. Texts have their
        words beside them."""
        ensure_none_gone(self.missing(ids), ids, "the source")
        words = self.samples.features(ids) if self._with_words else None
        return ById(ids, (self.width,), self._load, vectors=True, words=words)

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        """Without what was learned of the samples themselves, unless the learner sees words too."""
        return {**self.samples.fingerprint(learned=learned and self._with_words), ENCODED: self.about}

    def prepare(self, ids: Sequence[str], progress: Progress | None = None, seconds: float | None = None) -> int:
        """Encodes those of `ids` that have no vector yet, in order, and stops after about `seconds`. Returns how many
        ids were checked. Samples whose content has changed are encoded again."""
        started = time.monotonic()
        done = 0
        for window in windows(len(ids), self.encoder_kind):
            with self._one_at_a_time:
                self._find([ids[place] for place in window])
            done = window.stop
            if progress is not None:
                progress("encoding", done, len(ids))
            if seconds is not None and time.monotonic() - started > seconds:
                break
        return done

    def _load(self, ids: Sequence[str]) -> AnyArray:
        with self._one_at_a_time:
            unknown = [id for id in ids if id not in self._rows]
            for window in windows(len(unknown), self.encoder_kind):
                self._find([unknown[place] for place in window])
            rows = np.fromiter((self._rows[id] for id in ids), np.int64, len(ids))
            return self._cache().read(rows)

    def _find(self, ids: Sequence[str]) -> None:
        given = {place: content for place, content in enumerate(self.contents(ids)) if content is not None}

        def report(place: int, why: str) -> None:
            self.problems.add(ids[place], "unreadable", why)

        rows = self._cache().rows(self._opened, given, BATCH, report, lambda place: repr(ids[place]))
        self._rows |= dict.fromkeys(ids, -1) | {
            ids[place]: row for place, row in zip(given, rows.tolist(), strict=True)
        }

    def _cache(self) -> Kept:
        if self._kept is None:
            if self._folder.parent == machine_folder():
                self._in_use = InUse(self._folder)
            self._kept = Kept(self._folder, self.encoder_kind, str(self.about["identity"]), self.width)
        return self._kept

    def _opened(self) -> Encoder:
        if self._encoder is None:
            encoder = self._open()
            ensure_same(encoder, self.about)
            self._encoder = encoder
        return self._encoder


def ensure_same(encoder: Encoder, about: Mapping[str, Any]) -> None:
    """Vectors of another encoder would mean something else to the learner."""
    if encoder.identity != about["identity"]:
        raise InputError(
            f"the encoder {about['name']!r} has changed ({encoder.identity} instead of "
            f"{about['identity']}): its weights or settings differ; restore it, or make "
            "a new campaign"
        )


def seen_by(samples: Samples, about: Mapping[str, Any]) -> Samples:
    """The samples as a model looks at them that says this `about` itself: without their encoder where it was trained on
    pixels."""
    return samples.samples if isinstance(samples, EncodedSamples) and about.get("features") == PIXELS else samples
