"""A labelling campaign: ask, tell, and everything around them. All state is in the store.

Nothing here imports torch before it trains or predicts: asking and telling stay fast.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from ally.campaign import answers as given_answers
from ally.campaign import source as sources
from ally.campaign.agreement import agreement_of
from ally.campaign.answers import Vocabulary, likely_slips, recent_values
from ally.campaign.classes import Classes
from ally.campaign.composition import composition
from ally.campaign.create import check_names, create, kept_model
from ally.campaign.page import CampaignPage
from ally.campaign.people import person
from ally.campaign.settings import Settings, changed_settings, declarations, declared_classes
from ally.campaign.source import (
    SourceOptions,
    absolute,
    beside,
    cache,
    check_options,
    encoded_folder,
    found_source,
    kept_place,
    moved_settings,
    on_disk,
)
from ally.campaign.status import status_of
from ally.campaign.together import Given, Taken, tell_together
from ally.campaign.training.suspects import review
from ally.campaign.training.trainer import Trainer
from ally.campaign.values import Agreement, AskedSample, CampaignQuery, Scanned, Status, Suspect, Told, Undone
from ally.checks import check_count
from ally.encoders.samples import ENCODED
from ally.errors import AnswerError, InputError, PoolExhausted, StoreError, UnknownClasses
from ally.sources import Answer, Samples, Shown, read_answers
from ally.sources.export.answers import reads
from ally.store import Measure, NewAnswer, Store, StoredAnswer, StoredQuery
from ally.store import open as open_store
from ally.types import SKIP, Progress

if TYPE_CHECKING:
    import pandas as pd


IMPORTED = "import"
NAMES = frozenset({"strategy", "objective", "model"})


class Campaign:
    """Use `Campaign.create` or `Campaign.open`; close it, or use it in a ``with`` block. It can be used from several
    threads."""

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
        self._place = absolute(place)
        self._store = store
        self._source = source
        self._options = options
        self._given_clock = clock
        self._samples = samples
        self._encoder = encoder
        self._opening = threading.Lock()
        self._vocabulary = Vocabulary(store)
        self._page = CampaignPage(store, lambda: self.samples, lambda: self.settings, self._clock, cache(self._place))

    @classmethod
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
        names = {declared.name for declared in declarations()}
        options = {name: value for name, value in chosen.items() if name not in names}
        check_options(options, names)
        settings = {declared.name: chosen.get(declared.name, declared.default) for declared in declarations()}
        settings["model"] = kept_model(settings["model"])
        evaluate = settings.pop("evaluate")
        store, samples = create(place, source, options, settings, evaluate=evaluate, clock=clock, progress=progress)
        campaign = cls(place, store, source, options, clock, samples)
        sources.note_problems(store, samples, campaign._clock())
        campaign._offer_training()
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
            Settings.from_json(store.settings)
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
        return Settings.from_json(self._store.settings)

    def change(self, *, source: Any = None, **chosen: Any) -> Settings:
        """Changes settings, by the names of `ally.campaign.Settings`. Classes can be added but not removed. What fixes
        the samples and their roles (the task, the held-out samples, the seed) cannot change. `source` says
        where the source is now, see `move`."""
        changed = self._changed(chosen)
        if source is not None:
            self.move(source)
        if not chosen:
            return self.settings
        final = {name: getattr(changed, name) for name in chosen}
        self._store.change_settings(lambda kept: changed_settings(Settings.from_json(kept), final).to_json())
        self._store.log(self._clock(), "settings", final)
        return changed

    def _changed(self, chosen: Mapping[str, Any]) -> Settings:
        """The settings after `change`; raises if one is not possible."""
        if "model" in chosen:
            chosen = {**chosen, "model": kept_model(chosen["model"])}
        changed = changed_settings(self.settings, chosen)
        if not NAMES.isdisjoint(chosen):
            check_names(changed)
        if changed.classes is not None and "classes" in chosen:
            changed = replace(changed, classes=declared_classes(changed.classes, self._store.values(standing=True)[0]))
        return changed

    def hold_out(self, n: int) -> int:
        """Makes the evaluation sample n samples large, which it is not yet: the others are drawn at random from those
        that nobody was asked about; how many were added."""
        settings = self.settings
        more = check_count("evaluate", n) - settings.held_out
        if more <= 0:
            raise InputError.about(
                "evaluate", n, f"is not more than the {settings.held_out} samples held out already; none is given back"
            )
        if not settings.held_out_share:
            raise InputError("the share of queries for held-out samples is 0; change held_out_share first, to 0.25 say")
        added = self._store.reserve("evaluate", more, self._clock())
        self._store.change_settings(
            lambda kept: replace(Settings.from_json(kept), evaluate=settings.held_out + more).to_json()
        )
        self._store.log(self._clock(), "settings", {"evaluate": settings.held_out + more})
        return len(added)

    @property
    def kept_in(self) -> Path | None:
        """The folder for what can be recreated, such as the positions of rows in a long table; None if the campaign is
        not a file."""
        return cache(self._place)

    @property
    def size(self) -> int:
        """How many samples there are, missing ones included."""
        return self._store.size()

    @property
    def samples(self) -> Samples:
        """The source, opened on first use."""
        with self._opening:
            if self._samples is None:
                self._samples = found_source(self.settings, self._place, self._source, self._options, self._encoder)
            return self._samples

    # Asking and telling

    def ask(
        self, n: int | None = None, *, annotator: str | None = None, key: str | None = None, at_most: bool = False
    ) -> CampaignQuery:
        """The next `n` samples to label (default: a batch), reserved for this annotator for a while.

        The same `key` gives the same query again. A sample reserved for someone else is never given. With `at_most`,
        fewer than n are given if there are no more.
        """
        settings = self.settings
        count = settings.batch if n is None else check_count("n", n)
        parts = partial(composition, settings, count)
        who, now, lease, opinions = person(annotator), self._clock(), settings.lease_seconds, settings.opinions
        try:
            stored = self._store.ask(who, count, now, lease, key, first=parts, opinions=opinions)
        except PoolExhausted:
            # The pool is used up: what is left are samples held out.
            stored = self._store.ask(
                who,
                count,
                now,
                lease,
                key,
                first=lambda number: {**parts(number), "evaluate": count, "validate": count},
                at_most=at_most,
                opinions=opinions,
            )
        return _given_query(stored)

    @property
    def page(self) -> CampaignPage:
        """What a labelling page shows and keeps besides the answers."""
        return self._page

    def show(self, id: str) -> Shown:
        """What a person sees to label a sample."""
        return self.samples.show(id)

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
        who = person(annotator or self._store.query(number).annotator)
        new, settings = self._checked(answers, who, add_classes)
        waiting = [id for id in self._store.waiting(number, settings.opinions) if id not in answers]
        told = self._answer(who, new, number, key)
        with suppress(StoreError):  # the answers are on record, and that is to be said
            waiting = self._store.waiting(number, settings.opinions)
        return replace(told, query=number, waiting=tuple(waiting))

    def relabel(
        self,
        answers: Mapping[str, Any],
        *,
        annotator: str | None = None,
        key: str | None = None,
        add_classes: bool = False,
    ) -> Told:
        """Labels samples of one's own choice, asked about or not, labelled already or not. Earlier answers stay on
        record. With `add_classes`, labels that are no class yet become classes."""
        who = person(annotator)
        return self._answer(who, self._checked(answers, who, add_classes)[0], None, key)

    def _checked(
        self, answers: Mapping[str, Any] | Sequence[Answer], who: str, add_classes: bool
    ) -> tuple[list[NewAnswer], Settings]:
        """The answers as the store takes them; with `add_classes` their new classes are declared first."""
        settings = self.settings
        try:
            return given_answers.new_answers(answers, settings, self._known(settings)), settings
        except UnknownClasses as error:
            if not add_classes:
                raise
            given = answers if isinstance(answers, Mapping) else [answer.id for answer in answers]
            self._store.rows(list(given))  # an unknown id is refused before a class is added
            self.edit_classes(who).add(list({reads(label): label for label in error.labels}.values()))
        settings = self.settings
        return given_answers.new_answers(answers, settings, self._known(settings)), settings

    def untold(self, answers: Mapping[str, Any]) -> list[str]:
        """Ids of answers that are not on record as what somebody says now, and would be lost with the file that holds
        them."""
        return given_answers.untold(self._store, answers)

    def skip(self, ids: Iterable[str], *, annotator: str | None = None, key: str | None = None) -> Told:
        """Skips samples: they are not asked about again."""
        if isinstance(ids, str):
            raise AnswerError(f"ids is the text {ids!r}; pass a list of ids, such as [{ids!r}]")
        return self.relabel(dict.fromkeys(ids, SKIP), annotator=annotator, key=key)

    def undo(self, *, annotator: str | None = None, number: int | None = None, key: str | None = None) -> Undone:
        """Undoes the annotator's last answer, or the one with this number. The sample can be asked about again."""
        _, taken = self._store.undo(person(annotator), self._clock(), number, key)
        return Undone(taken.sample, taken.kind, SKIP if taken.kind == "skip" else taken.value, taken.number)

    def release(self, query: int | CampaignQuery, only: Sequence[str] | None = None) -> int:
        """Gives up on a query, or on those samples of it: what is unanswered can be asked about by others at once; how
        many."""
        return self._store.release(query.id if isinstance(query, CampaignQuery) else query, only)

    def query(self, number: int) -> CampaignQuery:
        """A query on record, with all its samples."""
        return _given_query(self._store.query(number))

    def tell_together(self, given: Sequence[Given]) -> list[Taken | InputError]:
        """Answers of one or several people with one flush, each taken or refused by itself, in their order. Training is
        not offered: call `training.start_if_due` when nobody waits."""
        settings = self.settings
        known = self._known(settings)
        compared = known if settings.task == "classification" else recent_values(self._store, self._store.last_answer())
        return tell_together(self._store, settings, given, self._clock(), known, compared)

    def _answer(self, annotator: str, answers: Sequence[NewAnswer], query: int | None, key: str | None) -> Told:
        before = self._store.last_answer()
        likely = self._slips({answer.sample: answer.value for answer in answers if answer.kind == "label"}, before)
        receipt = self._store.answer(annotator, self._clock(), answers, query, key)
        self._offer_training()
        skipped = sum(answer.kind == "skip" for answer in answers)
        known = sum(number <= before for number in receipt.numbers)
        return Told(receipt.numbers, len(answers) - skipped, skipped, known=known, slips=tuple(likely))

    def _slips(self, labels: Mapping[str, Any], last: int) -> list[str]:
        """What looks like a slip among labels about to be recorded after answer `last`."""
        settings = self.settings
        if settings.task == "classification":
            return likely_slips(settings, self._known(settings), labels)
        return likely_slips(settings, recent_values(self._store, last), labels)

    def _known(self, settings: Settings) -> Mapping[str, Any]:
        """Labels by how they read, where any label is a class."""
        return self._vocabulary.known() if settings.task == "classification" and settings.classes is None else {}

    def _offer_training(self) -> None:
        """Called after answers were saved: if no training can start, that must not look like a failure to save."""
        with suppress(OSError, StoreError):
            self.training.start_if_due()

    # Labels in files

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
        found = self.read_answers(path, id_column=id_column, label_column=label_column)
        if not found:
            raise AnswerError(f"{path} holds no answers; fill in its column label, or write yes into a column skip")
        passed_on = [answer._replace(annotator=answer.annotator or importer) for answer in found]
        return self._answer(importer, self._checked(passed_on, importer, add_classes)[0], None, None)

    def read_answers(
        self, path: str | Path, *, id_column: str | None = None, label_column: str | None = None
    ) -> list[Answer]:
        """The answers of a file, whose columns are ``id`` and ``label``, those of the campaign's source, or those
        named."""
        layout = self.settings.fingerprint.get("layout", {})
        own = {"id": layout.get("id"), "label": layout.get("label")}
        known = {sample.id for sample in self._store.samples()} if Path(path).suffix.lower() == ".json" else None
        found = read_answers(path, id_column=id_column, label_column=label_column, own=own, known=known)
        return found

    def export(self, path: str | Path, *, skips: bool = True, link: bool = False) -> int:
        """Writes the labels that count to a .csv, .jsonl or .parquet file, or as tasks of Label Studio to a .json file,
        which `import_labels` reads back; without an ending, the images to a new folder with one folder per class; how
        many. `link` saves space in that folder by hard links. Images that are gone are left out; `problems` of
        `self.samples` says which."""
        kind = Path(path).suffix.lower()
        samples = self.samples if kind in ("", ".json") else None
        return given_answers.export(self._store, self.settings, samples, path, skips=skips, link=link)

    def current(self, *, skips: bool = True) -> list[Answer]:
        """The labels that count, and the skips, with who gave them and when."""
        return given_answers.current(self._store, self.settings, skips=skips)

    def predictions(self, ids: Sequence[str]) -> pd.DataFrame:
        """What the newest model of the curve says of samples of the campaign, labelled or not, with the probability of
        every class; it saw no held-out label. Samples that cannot be read are left out."""
        from ally.campaign.training.predict import predict_samples

        gone = set(self.samples.missing(ids))
        return predict_samples(
            self.training.measured()[0], self.samples, [id for id in ids if id not in gone], every_class=True
        )

    def labels(self) -> dict[str, Any]:
        """The label that counts of each labelled sample."""
        return {answer.id: answer.label for answer in given_answers.current(self._store, self.settings, skips=False)}

    def edit_classes(self, annotator: str | None = None) -> Classes:
        """Adds, renames, merges and removes classes, on record, and takes the last change back:
        ``campaign.edit_classes().rename("cta", "cat")``."""
        return Classes(self._store, person(annotator), self._clock)

    def classes(self) -> list[Any]:
        """Those that were declared; otherwise those that annotators say now, in the order in which they came."""
        settings = self.settings
        return list(self._store.values(standing=True)[0] if settings.classes is None else settings.classes)

    def record(self) -> Iterator[StoredAnswer]:
        """Every answer ever given, in order: who, when, what, for which query. Includes undone answers and undos."""
        return self._store.answers()

    def disagreements(self) -> dict[str, dict[str, Any]]:
        """By id, the label of each annotator, for samples they label differently that nobody has settled since."""
        return given_answers.disagreements(self._store, self.settings)

    def adjudicate(self, answers: Mapping[str, Any], *, annotator: str | None = None, key: str | None = None) -> Told:
        """Settles samples that annotators differ about: as `relabel`, and they are not listed any more, unless somebody
        answers after that."""
        told = self.relabel(answers, annotator=annotator, key=key)
        self._store.log(
            self._clock(), given_answers.ADJUDICATED, {"samples": dict.fromkeys(answers, max(told.numbers))}
        )
        return told

    # Training

    @property
    def training(self) -> Trainer:
        """Training in this process or another, and the newest model."""
        return Trainer(self._store, lambda: self.settings, lambda: self.samples, self._clock, self._elsewhere)

    def retrain(self, *, wait: bool = True, progress: Progress | None = None) -> int | None:
        """Trains on all labels now; returns the number of the model. With ``wait=False`` another process does it, and
        None is returned."""
        if wait:
            return self.training.train(progress)
        self.training.start()
        return None

    def _elsewhere(self) -> str | None:
        """Where another process can open the campaign with its source; None if it cannot."""
        kept = self.settings
        same = self._source is None or kept_place(self._source, beside(self._place)) == kept.place
        encoded = not kept.fingerprint.get(ENCODED, {}).get("in memory")
        found = on_disk(self._place) and kept.place is not None and None not in kept.options.values()
        return str(self._place) if found and same and encoded else None

    # Looking

    def status(self) -> Status:
        found = status_of(self._store, self.settings, self._clock(), encoded_folder(self._place))
        return replace(found, problems=self.problems())

    def agreement(self) -> Agreement | None:
        """Krippendorff's alpha of the annotators, over all and for each class; None before two of them labelled two
        samples both."""
        return agreement_of(self._store, self.settings.task)

    def review(self, n: int = 20) -> list[Suspect]:
        """Labels that may be wrong, the most likely first, as the newest model sees them. Labels changed since then are
        left out."""
        return review(self._store, self.settings, check_count("n", n))

    def evaluate(self) -> Measure:
        """The newest model on the evaluation sample as it is labelled now; recorded."""
        from ally.campaign.training.data import gather
        from ally.campaign.training.measures import evaluation

        if self.settings.evaluate == "cv":
            raise InputError("no samples are held out, as evaluate='cv'; each training measures by cross-validation")
        trained, number = self.training.measured()
        material = gather(self._store, self.samples, self.settings, 0)
        if not len(material.evaluate):
            raise InputError(
                "no sample of the evaluation sample is labelled yet; answer queries, some of them are about it"
            )
        found = evaluation(trained, self.samples, material.evaluate, material.training, self.settings)
        self._store.models.put_measures(number, found)
        return found[0]

    def predict(
        self, source: Any = None, *, every_class: bool = False, **options: Unpack[SourceOptions]
    ) -> pd.DataFrame:
        """A table of ids, labels and their probabilities (with `every_class` those of all classes) for other data of
        the same kind, or for the unlabelled pool. Numbers beyond all labels seen are marked."""
        from ally.campaign.training.predict import predict, predict_samples

        trained = self.training.model()
        if source is None:
            labelled = self._store.labels(self.settings.store_policy)
            ids = [sample.id for sample in self._store.samples() if not sample.gone and sample.row not in labelled]
            gone = set(self.samples.missing(ids))
            return predict_samples(trained, self.samples, [id for id in ids if id not in gone], every_class=every_class)
        return predict(trained, source, options, self._place, self._encoder, every_class=every_class)

    # The source and the store

    def move(self, source: Any, **options: Unpack[SourceOptions]) -> None:
        """Says where the source is now. It must be the same kind of source and hold samples that the campaign knows."""
        check_options(options)
        settings = self.settings
        samples = found_source(settings, self._place, source, options, self._encoder)
        moved = moved_settings(settings, source, options, samples, self._store, beside(self._place))
        self._store.change_settings(
            lambda kept: replace(Settings.from_json(kept), place=moved.place, options=moved.options).to_json()
        )
        with self._opening:
            self._source, self._options, self._samples = source, options, samples

    def rescan(self, progress: Progress | None = None) -> Scanned:
        """Reads the source again: adds new samples, sets missing ones aside, and takes back those that reappeared."""
        settings = self.settings
        return sources.rescan(self._store, self.samples, settings, self._known(settings), self._clock(), progress)

    def problems(self) -> tuple[str, ...]:
        """Problems with single samples when the source was last read, in sentences; at most twenty."""
        return sources.problems(self._store)

    def check(self) -> list[str]:
        """Problems with the store or its source, in words; empty if there are none."""
        found = self._store.check()
        try:
            _ = self.samples
        except Exception as error:
            found.append(f"the source cannot be opened: {error}")
        return found

    def backup(self, path: str | Path | None = None) -> Path:
        """Copies the campaign to a new file, by default a numbered one beside it."""
        return self._store.backup(path)

    def close(self) -> None:
        self._store.close()
        self._page.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<campaign {self.name}>"


def _listed(method: Any) -> None:
    """Shows the settings in the signature and the documentation of `Campaign.create`."""
    function = method.__func__
    shown = inspect.signature(function)
    parameters = [item for item in shown.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    settings = [
        inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=item.kind)
        for item in declarations()
    ]
    function.__signature__ = shown.replace(parameters=[*parameters, *settings, shown.parameters["chosen"]])
    function.__doc__ += "\n        Settings:\n" + "\n".join(
        f"            {item.name}: {item.meaning}" for item in declarations()
    )


_listed(Campaign.__dict__["create"])


def _given_query(stored: StoredQuery) -> CampaignQuery:
    samples = tuple(AskedSample(asked.id, asked.kind, asked.score, asked.why or {}) for asked in stored.samples)
    return CampaignQuery(stored.number, stored.annotator, samples, stored.until, stored.model, stored.total)
