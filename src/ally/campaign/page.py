"""What a labelling page shows and stores besides the answers: samples, notes, people, a map, access."""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ally.campaign import notes as remarks
from ally.campaign.agreement import PairAgreement, agreements
from ally.campaign.answers import recent_values, said
from ally.campaign.content import Content, content
from ally.campaign.people import Pace, paces, person
from ally.campaign.pool_map import Alike, PoolMap, alike, pool_map
from ally.campaign.settings import current_settings
from ally.campaign.source import CampaignSource
from ally.campaign.status import GIVEN
from ally.campaign.telling import PageAnswer, Taken, Telling
from ally.campaign.training.chart import Chart
from ally.campaign.training.progress import underway
from ally.campaign.training.schedule import running
from ally.campaign.values import Pulse
from ally.data.images.shown import EDGES, Picture, Pictures
from ally.errors import DataError, InputError, StoreError
from ally.store import Event, Store, StoredAnswer

MOST_KNOWN = 50_000
"""Ids that are kept in memory."""


class CampaignPage:
    """``campaign.page``. Small copies of images are kept in the cache of the source, or in a temporary folder."""

    def __init__(
        self,
        store: Store,
        source: CampaignSource,
        telling: Telling,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._source, self._telling, self._clock = store, source, telling, clock
        self._opening = threading.Lock()
        self._shown: Pictures | None = None
        self._spare: tempfile.TemporaryDirectory[str] | None = None
        self._known: set[str] = set()
        self._kept_chart: tuple[int, Chart | None] = (0, None)
        self._counting = threading.Lock()
        self._counted: tuple[int, int] | None = None

    def close(self) -> None:
        if self._spare is not None:
            self._spare.cleanup()

    def together(
        self, answers: Sequence[PageAnswer], calls: Sequence[Callable[[], Any]] = (), seconds: float = math.inf
    ) -> tuple[list[Taken | InputError], list[Any]]:
        """Answers of one or several people and other calls of this campaign with one flush, each taken or refused by
        itself, in their order; what is wrong with one comes back in its place. After `seconds` no further call is
        begun: make the rest with the next flush. This never starts a training: call `training.start_if_due` when nobody
        is waiting."""
        end = time.monotonic() + seconds

        def work() -> tuple[list[Taken | InputError], list[Any]]:
            told = self._telling.together(answers) if answers else []
            made: list[Any] = []
            for call in calls:
                if made and time.monotonic() > end:
                    break
                try:
                    made.append(self._store.together(call))
                except StoreError:
                    raise
                except Exception as error:
                    made.append(error)
            return told, made

        return self._store.together(work)

    def content(self, id: str) -> Content:
        """What a page shows of a sample of the campaign; an unknown id is an `IdError`."""
        self._ensure_known(id)
        return content(self._source.samples, self._pictures, id)

    def picture(self, id: str, size: str = "view") -> Picture:
        """The image of a sample, upright and encoded anew: "thumb", "view" or "large"."""
        if size not in EDGES:
            raise InputError.about("size", size, f"must be one of {', '.join(EDGES)}")
        self._ensure_known(id)
        shown = self._source.samples.show(id)
        image = shown.picture if shown.path is None else shown.path
        if image is None:
            raise DataError(f"{id!r} has no image; it is shown by its text or its columns")
        return self._pictures.make(image, size)

    def expect(self, ids: Iterable[str]) -> None:
        """Samples of the campaign that somebody will look at next: to show them takes no look into the store, where
        answers may be on their way to disk."""
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known.update(ids)

    def _ensure_known(self, id: str) -> None:
        if id not in self._known:
            self._store.samples.rows([id])
            self.expect([id])  # a sample never leaves a campaign

    @property
    def _pictures(self) -> Pictures:
        with self._opening:
            if self._shown is None:
                kept = self._source.cache
                if kept is None:
                    self._spare = tempfile.TemporaryDirectory(prefix="ally-pictures-")
                self._shown = Pictures(Path(self._spare.name) if self._spare else kept / "pictures")  # type: ignore[operator]
            return self._shown

    def note(self, id: str, text: str, *, annotator: str | None = None, key: str | None = None) -> None:
        """Keeps a remark about a sample; an empty text takes the last one back, the same `key` again changes
        nothing."""
        remarks.keep(self._store, self._clock(), id, text, person(annotator), key)

    def notes(self) -> dict[str, dict[str, str]]:
        """By id, the last note of each annotator."""
        return remarks.notes(self._store)

    def opinions(self, id: str) -> dict[str, Any]:
        """What each annotator says about a sample now, in the order given."""
        people = self._store.answers.opinions(self._store.samples.rows([id])).values()
        return {answer.annotator: said(answer) for answers in people for answer in answers}

    def last_answers(self, n: int, *, annotator: str | None = None) -> list[StoredAnswer]:
        """The annotator's own newest answers that count, newest first."""
        return self._store.answers.last_of(person(annotator), n)

    def pulse(self) -> Pulse:
        """What changes while people label, in a few quick reads."""
        model, training = self._store.models.newest(), running(self._store)
        return Pulse(
            last_answer=self._store.answers.last_number(),
            model=None if model is None else model.number,
            training=training,
            underway=underway(self._store, self._clock()) if training else None,
        )

    def map(self) -> PoolMap | None:
        """Where the samples lie as the newest model sees them, and what is known of each now; None before the first
        training."""
        chart, model = self._chart()
        return None if chart is None else pool_map(self._store, current_settings(self._store), chart, model)

    def alike(self, n: int, predicted: Any = None) -> Alike | None:
        """Samples without an answer that the newest model takes for one class, the surest first and then those nearest
        to it; None before the first training, and for numbers."""
        chart, model = self._chart()
        return None if chart is None else alike(self._store, current_settings(self._store), chart, model, n, predicted)

    def _chart(self) -> tuple[Chart | None, int]:
        """What the newest model left, and its number. It does not change, and is read once."""
        newest = self._store.models.newest()
        if newest is None:
            return None, 0
        if self._kept_chart[0] != newest.number:
            data = self._store.models.map(newest.number)
            self._kept_chart = newest.number, None if data is None else Chart.from_bytes(data)
        return self._kept_chart[1], newest.number

    def label_count(self) -> int:
        """Labels bought so far, as `status` counts them. All answers are counted once; after that, what is new."""
        with self._counting:
            if self._counted is None:
                counts = self._store.count(self._clock())
                self._counted = counts.answers, sum(counts.said.values()) - counts.said.get(GIVEN, 0)
            seen, labels = self._counted
            new = list(self._store.answers.all(seen))
            if new:
                rows, last = list({answer.row for answer in new}), new[-1].number
                labels += self._standing(rows, last) - self._standing(rows, seen)
                self._counted = last, labels
            return labels

    def _standing(self, rows: Sequence[int], until: int) -> int:
        """Labels bought of these samples that counted after the answer `until`."""
        people = self._store.answers.opinions(rows, until).values()
        return sum(said.kind == "label" and said.annotator != GIVEN for answers in people for said in answers)

    def numbers(self) -> list[float]:
        """The different numbers told lately, in order; for a regression."""
        return sorted(float(value) for value in recent_values(self._store, self._store.answers.last_number()).values())

    def paces(self) -> list[Pace]:
        """Everyone's pace, most answers first."""
        return paces(self._store.answers.all(), GIVEN)

    def agreements(self) -> list[PairAgreement]:
        """How well each pair of people agrees on the samples both labelled."""
        return agreements(self._store.answers.opinions())

    def log(self, *entries: tuple[str, Mapping[str, Any]]) -> None:
        """Record something other than answers, such as who may label, by its kind and with its details: all of it with
        one flush, or nothing."""
        self._store.together(lambda: [self._store.log(self._clock(), kind, detail) for kind, detail in entries])

    def events(self, since: int = 0) -> Iterator[Event]:
        """Everything recorded besides answers with a higher number, in order."""
        return self._store.events(since)
