"""A labelling campaign: ask, tell, and everything around them. All state is in the store.

Nothing here imports torch before it trains or predicts: asking and telling stay fast.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ally.campaign import asking
from ally.campaign.answers import Vocabulary, said
from ally.campaign.changing import checked_change, keep_change
from ally.campaign.classes import Classes
from ally.campaign.create import create
from ally.campaign.page import CampaignPage
from ally.campaign.people import person
from ally.campaign.places import encoded_folder
from ally.campaign.record import AnswerRecord
from ally.campaign.settings import Settings, current_settings, lists_settings
from ally.campaign.source import CampaignSource, SourceOptions, check_options
from ally.campaign.status import status_of
from ally.campaign.telling import Telling
from ally.campaign.training.trainer import Trainer
from ally.campaign.values import CampaignQuery, Status, Suspect, Told, Undone
from ally.checks import check_count
from ally.errors import AnswerError
from ally.sources import Samples, Shown
from ally.store import Store
from ally.store import open as open_store
from ally.types import SKIP, Progress

if TYPE_CHECKING:
    import pandas as pd


IMPORTED = "import"


class Campaign:
    """Use `Campaign.create` or `Campaign.open`; close it, or use it in a ``with`` block. It can be used from several
    threads.

    Besides its methods it has parts: `source` (the samples), `answers` (what is on record), `classes`, `training`, and
    `page` (what a labelling page needs besides).
    """

    source: CampaignSource
    """Where the samples are, how many, and what cannot be read; it can move, and be read again."""
    answers: AnswerRecord
    """Every answer on record, those that count, and how far people agree."""
    classes: Classes
    """The classes, in order. They can be added, renamed, merged and removed, on record, and the last change taken back:
    ``campaign.classes.rename("cta", "cat")``."""
    training: Trainer
    """Training in this process or another, and the newest model."""
    page: CampaignPage
    """What a labelling page shows and keeps besides the answers."""

    def __init__(
        self,
        place: str | Path,
        store: Store,
        source: Any,
        options: Mapping[str, Any],
        clock: Callable[[], float],
        samples: Samples | None,
        encoder: Any = None,
    ) -> None:
        self._store = store
        self._given_clock = clock
        vocabulary = Vocabulary(store)
        self.source = CampaignSource(place, store, self._clock, vocabulary, source, options, samples, encoder)
        self.answers = AnswerRecord(store, self.source)
        self.classes = Classes(store, self._clock)
        self.training = Trainer(store, self.source, self._clock)
        self._telling = Telling(store, self._clock, vocabulary, self.training)
        self.page = CampaignPage(store, self.source, self._telling, self._clock)

    @classmethod
    @lists_settings
    def create(
        cls,
        place: str | Path,
        source: Any,
        *,
        clock: Callable[[], float] = time.time,
        progress: Progress | None = None,
        **chosen: Any,
    ) -> Campaign:
        """Creates a campaign, whole or not at all.

        Args:
            place: where to keep it: the name of a new file, or a postgresql:// URL.
            source: a folder of images, a table, a text file, an array of features, or a frame in memory.
            clock: returns the time, in seconds since 1970.
            progress: called while the samples are read.
            chosen: settings, and options of `ally.sources.open_source`. The settings are
                listed by ``help(ally.Campaign.create)`` and in docs/campaign.md.
        """
        store, samples, options = create(place, source, chosen, clock=clock, progress=progress)
        campaign = cls(place, store, source, options, clock, samples)
        campaign._telling.offer_training()
        return campaign

    @classmethod
    def open(
        cls,
        place: str | Path,
        source: Any = None,
        *,
        clock: Callable[[], float] = time.time,
        encoder: Any = None,
        **options: Unpack[SourceOptions],
    ) -> Campaign:
        """Opens a campaign. `source`, `encoder` and `options` are needed only where they lived in memory, or where the
        source has moved."""
        check_options(options)
        store = open_store(place)
        try:
            current_settings(store)
        except BaseException:
            store.close()
            raise
        return cls(place, store, source, options, clock, None, encoder)

    @property
    def name(self) -> str:
        return self._store.name

    def _clock(self) -> float:
        """The time in whole microseconds, which files can hold exactly."""
        return round(self._given_clock(), 6)

    @property
    def settings(self) -> Settings:
        """The current settings; another process may change them."""
        return current_settings(self._store)

    def change(self, *, source: Any = None, **chosen: Any) -> Settings:
        """Changes settings, by the names of `ally.campaign.Settings`. Classes can be added but not removed. What fixes
        the samples and their roles (the task, the held-out samples, the seed) cannot change. `source` says
        where the source is now, see `CampaignSource.move`."""
        changed = checked_change(self._store, chosen)
        if source is not None:
            self.source.move(source)
        if not chosen:
            return self.settings
        keep_change(self._store, self._clock(), changed, chosen)
        return changed

    # Asking and telling

    def ask(
        self, n: int | None = None, *, annotator: str | None = None, key: str | None = None, at_most: bool = False
    ) -> CampaignQuery:
        """The next `n` samples to label (default: a batch), reserved for this annotator for a while.

        The same `key` gives the same query again. A sample reserved for someone else is never given. With `at_most`,
        fewer than n are given if there are no more.
        """
        return asking.ask(self._store, person(annotator), n, self._clock(), key, at_most)

    def query(self, number: int) -> CampaignQuery:
        """A query on record, with all its samples."""
        return asking.given_query(self._store.query(number))

    def release(self, query: int | CampaignQuery, only: Sequence[str] | None = None) -> int:
        """Gives up on a query, or on those samples of it: what is unanswered can be asked about by others at once; how
        many."""
        return self._store.release(query.id if isinstance(query, CampaignQuery) else query, only)

    def show(self, id: str) -> Shown:
        """What a person sees to label a sample."""
        return self.source.samples.show(id)

    def tell(
        self,
        query: int | CampaignQuery,
        answers: Mapping[str, Any],
        *,
        annotator: str | None = None,
        key: str | None = None,
        add_classes: bool = False,
    ) -> Told:
        """Takes labels, or `ally.SKIP`, by id, for all or some of a query; all of them or none. They are on disk when
        this returns. With `add_classes`, labels that are no class yet become classes."""
        number = query.id if isinstance(query, CampaignQuery) else query
        return self._telling.tell(number, answers, annotator, key, add_classes)

    def relabel(
        self,
        answers: Mapping[str, Any],
        *,
        annotator: str | None = None,
        key: str | None = None,
        add_classes: bool = False,
        settle: bool = False,
    ) -> Told:
        """Labels samples of one's own choice, asked about or not, labelled already or not. Earlier answers stay on
        record. With `add_classes`, labels that are no class yet become classes. With `settle`, the samples are not
        listed as disagreements any more, unless somebody answers after that."""
        return self._telling.relabel(answers, annotator, key, add=add_classes, settle=settle)

    def skip(self, ids: Iterable[str], *, annotator: str | None = None, key: str | None = None) -> Told:
        """Skips samples: they are not asked about again."""
        if isinstance(ids, str):
            raise AnswerError(f"ids is the text {ids!r}; pass a list of ids, such as [{ids!r}]")
        return self.relabel(dict.fromkeys(ids, SKIP), annotator=annotator, key=key)

    def undo(self, *, annotator: str | None = None, number: int | None = None, key: str | None = None) -> Undone:
        """Undoes the annotator's last answer, or the one with this number. The sample can be asked about again."""
        _, taken = self._store.undo(person(annotator), self._clock(), number, key)
        return Undone(taken.sample, taken.kind, said(taken), taken.number)

    # Labels

    def labels(self) -> dict[str, Any]:
        """The label that counts of each labelled sample."""
        return {answer.id: answer.label for answer in self.answers.current(skips=False)}

    def import_labels(
        self,
        path: str | Path,
        *,
        annotator: str | None = None,
        add_classes: bool = False,
        id_column: str | None = None,
        label_column: str | None = None,
    ) -> Told:
        """Takes the labels of a .csv, .tsv, .jsonl or .parquet file with the columns id and label, or of a folder per
        class of images: all of them or none, in the order of the file. Annotators and times are those of the file,
        where it has them."""
        importer = person(annotator or IMPORTED)
        found = self.answers.read(path, id_column=id_column, label_column=label_column)
        if not found:
            raise AnswerError(f"{path} holds no answers; fill in its column label, or write yes into a column skip")
        passed_on = [answer._replace(annotator=answer.annotator or importer) for answer in found]
        return self._telling.relabel(passed_on, importer, add=add_classes)

    def export(self, path: str | Path, *, skips: bool = True, link: bool = False) -> int:
        """Writes the labels that count to a .csv, .jsonl or .parquet file, or as tasks of Label Studio to a .json file,
        which `import_labels` reads back; without an ending, the images to a new folder with one folder per class; how
        many. `link` saves space in that folder by hard links. Images that are gone are left out; `problems` of
        `self.source.samples` says which."""
        return self.answers.export(path, skips=skips, link=link)

    # Learning

    def retrain(self, *, wait: bool = True, progress: Progress | None = None) -> int | None:
        """Trains on all labels now; returns the number of the model. With ``wait=False`` another process does it, and
        None is returned."""
        if wait:
            return self.training.train(progress)
        self.training.start()
        return None

    def review(self, n: int = 20) -> list[Suspect]:
        """Labels that may be wrong, the most likely first, as the newest model sees them. Labels changed since then are
        left out."""
        return self.training.suspects(check_count("n", n))

    def predict(
        self, source: Any = None, *, every_class: bool = False, **options: Unpack[SourceOptions]
    ) -> pd.DataFrame:
        """A table of ids, labels and their probabilities (with `every_class` those of all classes) for other data of
        the same kind, or for the unlabelled pool. Numbers beyond all labels seen are marked."""
        return self.training.predict(source, every_class=every_class, **options)

    # The campaign as a whole

    def status(self) -> Status:
        found = status_of(self._store, self.settings, self._clock(), encoded_folder(self.source.place))
        return replace(found, problems=self.source.problems())

    def check(self) -> list[str]:
        """Problems with the store or its source, in words; empty if there are none."""
        found = self._store.check()
        try:
            _ = self.source.samples
        except Exception as error:
            found.append(f"the source cannot be opened: {error}")
        return found

    def backup(self, path: str | Path | None = None) -> Path:
        """Copies the campaign to a new file, by default a numbered one beside it."""
        return self._store.backup(path)

    def close(self) -> None:
        self._store.close()
        self.page.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<campaign {self.name}>"
