"""A labelling campaign: ask, tell, and everything around them. All state is in the store.

Nothing here imports torch before it trains or predicts: asking and telling stay fast.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from ally._renamed_arguments import renamed_arguments
from ally.campaign import asking
from ally.campaign.answers import Vocabulary, said
from ally.campaign.changing import checked_change, keep_change
from ally.campaign.classes import Classes
from ally.campaign.create import create
from ally.campaign.foreign import check_record
from ally.campaign.page import CampaignPage
from ally.campaign.people import person
from ally.campaign.permissions import Permission, RestrictedWarning, describe_restriction, revoke
from ally.campaign.places import vectors_folder
from ally.campaign.record import AnswerRecord
from ally.campaign.settings import Settings, allow_permissions, allow_settings, current_settings, lists_settings
from ally.campaign.source import CampaignSource, SourceOptions, check_options
from ally.campaign.status import status_of
from ally.campaign.telling import Telling, texts_by_id
from ally.campaign.training.trainer import Trainer
from ally.campaign.values import CampaignQuery, Status, Suspect, Told, Undone
from ally.checks import check_count
from ally.data import Samples, Shown
from ally.data.export.in_memory import read_answers_in_memory
from ally.data.fingerprint import WHOLE_IDS
from ally.data.ids import AnswersById, SampleId, as_text, as_whole, read_whole
from ally.errors import AnswerError
from ally.store import Store
from ally.store import open as open_store
from ally.types import SKIP, Progress

if TYPE_CHECKING:
    import pandas as pd


IMPORTED = "import"


class Campaign:
    """Use `Campaign.create` or `Campaign.open`; close it, or use it in a ``with`` block. It can be used from several
    threads.

    Besides its methods it has parts: `source` (the samples), `answers` (the record), `classes`, `training`, and `page`
    (what else a labelling page needs).
    """

    source: CampaignSource
    """The samples: where they are, how many there are, which are unreadable. It can be moved and rescanned."""
    answers: AnswerRecord
    """Every answer on record, the labels that count, and how well people agree."""
    classes: Classes
    """The classes, in order. You can add, rename, merge and remove them, and undo the last change:
    ``campaign.classes.rename("cta", "cat")``."""
    training: Trainer
    """Training in this process or another, and the newest model."""
    page: CampaignPage
    """What a labelling page shows and stores besides the answers."""
    task_note: str | None = None
    """When it was created: how the labels that came with the source decided the task."""

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
    @renamed_arguments(seed="random_state", validate="validation")
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
        """Create a campaign, completely or not at all.

        Args:
            place: where to keep it: the name of a new file, or a postgresql:// URL.
            source: a folder of images, a table, a text file, an array of features, or a frame in memory.
            clock: returns the time, in seconds since 1970.
            progress: called while the samples are read.
            chosen: settings, and options of `ally.data.open_source`. The settings are
                listed by ``help(ally.Campaign.create)`` and in docs/campaign.md.
        """
        store, samples, options, note = create(place, source, chosen, clock=clock, progress=progress)
        campaign = cls(place, store, source, options, clock, samples)
        campaign.task_note = note
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
        trust: bool = False,
        **options: Unpack[SourceOptions],
    ) -> Campaign:
        """Open a campaign. Pass `source`, `encoder` and `options` only if they were in memory, or if the source has
        moved.

        A campaign that somebody else made opens restricted: what in it names code, an address or a place outside its
        folder is ignored, and a warning says so. With `trust` you allow what it asks for now, from now on.
        """
        check_options(options)
        store = open_store(place, check_foreign=check_record)
        try:
            if trust:
                allow_settings(store)
            ignored = current_settings(store).ignored
            if ignored:
                warnings.warn(describe_restriction(ignored, store.name), RestrictedWarning, stacklevel=2)
        except BaseException:
            store.close()
            raise
        return cls(place, store, source, options, clock, None, encoder)

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def id(self) -> str:
        """Drawn when the campaign was created. What its user decides about it is kept under it, outside the file."""
        return self._store.id

    @property
    def is_on_server(self) -> bool:
        """Whether it is on a database server, which several machines may share."""
        return "://" in self._store.name

    def _clock(self) -> float:
        """The time in whole microseconds, so that files store it exactly."""
        return round(self._given_clock(), 6)

    @property
    def settings(self) -> Settings:
        """The current settings; another process may change them."""
        return current_settings(self._store)

    def permissions(self) -> list[Permission]:
        """What the campaign asks for and its user on this machine has not allowed; it is ignored until `trust`."""
        return list(self.settings.ignored)

    def trust(self, shown: Iterable[Permission] | None = None) -> list[Permission]:
        """Allow what the campaign asks for, from now on; returns it. Read `permissions` first: it may run code, connect
        to another machine, or read files outside the campaign's folder. With `shown`, which you have read, exactly that
        is allowed, also if somebody changed the campaign since."""
        return allow_settings(self._store) if shown is None else allow_permissions(self._store, list(shown))

    def revoke_trust(self) -> None:
        """Take back all that was allowed to this campaign on this machine."""
        revoke(self._store.id)

    def change(self, *, source: Any = None, **chosen: Any) -> Settings:
        """Change settings, by the names in `ally.campaign.Settings`. Classes can be added but not removed. The task,
        the held-out samples and the seed cannot change. `source` says where the source is now, see
        `CampaignSource.move`."""
        changed = checked_change(self._store, chosen)
        if source is not None:
            self.source.move(source)
        if not chosen:
            return self.settings
        keep_change(self._store, self._clock(), changed, chosen)
        return changed

    @property
    def _has_whole_ids(self) -> bool:
        fingerprint = self.settings.fingerprint
        return bool(fingerprint.get("numbered") or fingerprint.get(WHOLE_IDS))

    def _show_id(self, id: str) -> SampleId:
        """An id of the store as it came."""
        return as_whole(id) if self._has_whole_ids else id

    # Asking and telling

    def ask(
        self, n: int | None = None, *, annotator: str | None = None, key: str | None = None, at_most: bool = False
    ) -> CampaignQuery:
        """The next `n` samples to label (default: a batch), reserved for this annotator for a while.

        The same `key` gives the same query again. A sample reserved for someone else is never returned. With
        `at_most`, fewer than n are returned if there are no more.
        """
        stored = asking.ask(self._store, person(annotator), n, self._clock(), key, at_most)
        return asking.describe_query(stored, self._show_id)

    def query(self, number: int) -> CampaignQuery:
        """A query on record, with all its samples."""
        return asking.describe_query(self._store.query(number), self._show_id)

    def release(self, query: int | CampaignQuery, only: Sequence[SampleId] | None = None) -> int:
        """Free the unanswered samples of a query, or some of them, for others; returns how many."""
        some = None if only is None else [as_text(id) for id in only]
        return self._store.release(query.id if isinstance(query, CampaignQuery) else query, some)

    def show(self, id: SampleId) -> Shown:
        """What a person sees to label a sample."""
        return self.source.samples.show(as_text(id))

    def tell(
        self,
        query: int | CampaignQuery,
        answers: AnswersById,
        *,
        annotator: str | None = None,
        key: str | None = None,
        add_classes: bool = False,
    ) -> Told:
        """Save labels, or `ally.SKIP`, by id, for all or part of a query: all of them or none. They are on disk when
        this returns. With `add_classes`, unknown labels become new classes."""
        number = query.id if isinstance(query, CampaignQuery) else query
        told = self._telling.tell(number, texts_by_id(answers), annotator, key, add_classes)
        return replace(told, waiting=tuple(map(self._show_id, map(str, told.waiting))))

    def relabel(
        self,
        answers: AnswersById,
        *,
        annotator: str | None = None,
        key: str | None = None,
        add_classes: bool = False,
        settle: bool = False,
    ) -> Told:
        """Label samples of your own choice, whether or not they were asked about or labelled before. Earlier answers
        stay on record. With `add_classes`, unknown labels become new classes. With `settle`, the samples are no longer
        listed as disagreements, unless someone answers again."""
        return self._telling.relabel(texts_by_id(answers), annotator, key, add=add_classes, settle=settle)

    def skip(self, ids: Iterable[SampleId], *, annotator: str | None = None, key: str | None = None) -> Told:
        """Skip samples: they are not asked about again."""
        if isinstance(ids, str):
            raise AnswerError(f"ids is the text {ids!r}; pass a list of ids, such as [{ids!r}]")
        return self.relabel(dict.fromkeys(ids, SKIP), annotator=annotator, key=key)

    def undo(self, *, annotator: str | None = None, number: int | None = None, key: str | None = None) -> Undone:
        """Undo the annotator's last answer, or the one with this number. The sample can be asked about again."""
        _, taken = self._store.undo(person(annotator), self._clock(), number, key)
        return Undone(self._show_id(taken.sample), taken.kind, said(taken), taken.number)

    # Labels

    def labels(self) -> dict[SampleId, Any]:
        """The label that counts, for each labelled sample."""
        return {self._show_id(answer.id): answer.label for answer in self.answers.current(skips=False)}

    @renamed_arguments(label_column="label")
    def import_labels(
        self,
        labels: Any,
        *,
        annotator: str | None = None,
        add_classes: bool = False,
        id_column: str | None = None,
        label: str | None = None,
        encoding: str = "utf-8",
        header: bool = True,
    ) -> Told:
        """Import labels from a .csv, .tsv, .jsonl or .parquet file with the columns id and label, or from a folder
        with one folder of images per class: all of them or none, in file order. Annotators and times come from the
        file, if it has them. Without a `header`, the first two columns hold ids and labels. Or from memory: pairs
        ``[(id, label)]``, a dictionary, a series with ids as its index, or a frame; what has no label is left out."""
        importer = person(annotator or IMPORTED)
        if isinstance(labels, (str, Path)):
            found = self.answers.read(labels, id_column=id_column, label=label, encoding=encoding, header=header)
        else:
            found = read_answers_in_memory(labels, id_column=id_column, label=label)
        if not found:
            if not isinstance(labels, (str, Path)):
                raise AnswerError("there is no label in what you pass; give at least one")
            raise AnswerError(f"{labels} holds no answers; fill in its column label, or write yes into a column skip")
        passed_on = [answer._replace(annotator=answer.annotator or importer) for answer in found]
        return self._telling.relabel(passed_on, importer, add=add_classes)

    def export(self, path: str | Path, *, skips: bool = True, link: bool = False) -> int:
        """Write the labels that count to a .csv, .jsonl or .parquet file, or as Label Studio tasks to a .json file,
        all of which `import_labels` reads back. Without an extension, copy the images to a new folder with one folder
        per class. Returns how many. `link` uses hard links there to save space. Missing images are left out;
        `problems` of `self.source.samples` lists them."""
        return self.answers.export(path, skips=skips, link=link)

    # Learning

    def retrain(self, *, wait: bool = True, progress: Progress | None = None) -> int | None:
        """Train on all labels now; returns the model's number. With ``wait=False`` another process trains, and this
        returns None."""
        if wait:
            return self.training.train(progress)
        self.training.start()
        return None

    def review(self, n: int = 20, *, by: Literal["duals", "loss"] = "duals") -> list[Suspect]:
        """Labels that may be wrong according to the newest model, most suspicious first: by their duals (how hard they
        were to fit), or by their loss under a model that did not see them. Labels changed since then are left out."""
        suspects = self.training.suspects(check_count("n", n), by)
        return [replace(suspect, id=self._show_id(str(suspect.id))) for suspect in suspects]

    @renamed_arguments(every_class="probabilities")
    def predict(
        self, source: Any = None, *, probabilities: bool = False, **options: Unpack[SourceOptions]
    ) -> pd.DataFrame:
        """A table of ids, predicted labels and how probable they are (with `probabilities`, the probability of every
        class), for other data of the same kind or for the unlabelled pool. Numbers outside the range of the labels are
        marked."""
        table = self.training.predict(source, probabilities=probabilities, **options)
        return table.assign(id=read_whole(table["id"].tolist())) if self._has_whole_ids else table

    # The campaign as a whole

    def status(self) -> Status:
        found = status_of(self._store, self.settings, self._clock(), vectors_folder(self.source.cache))
        return replace(found, problems=self.source.problems())

    def check(self) -> list[str]:
        """Problems with the store or its source, as sentences; empty if there are none."""
        found = self._store.check()
        try:
            _ = self.source.samples
        except Exception as error:
            found.append(f"the source cannot be opened: {error}")
        return found

    def backup(self, path: str | Path | None = None) -> Path:
        """Copy the campaign to a new file, by default a numbered one next to it."""
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
