"""The store over a database: each method is one transaction, or a series of them where the contract says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select, update

from ally.checks import check_count
from ally.errors import InputError, StoreDamaged, StoreError
from ally.store import adding, answering, asking, checking, deriving, models, samples
from ally.store.backups import next_backup
from ally.store.base import Models, Store, StoreAnswers, StoreSamples
from ally.store.database import Database, T
from ally.store.known_files import ID
from ally.store.numbers import last_number, pieces
from ally.store.random_order import RandomOrder
from ally.store.recorded import read_entries
from ally.store.schema import answers, campaign
from ally.store.sqlite import SQLite, copy_out
from ally.store.validation import check_annotator, check_now, check_policy, write_json
from ally.store.values import (
    Added,
    AnswerCall,
    AskKind,
    Counts,
    Event,
    First,
    Label,
    Measure,
    NewAnswer,
    NewSample,
    Policy,
    Ranked,
    Receipt,
    Recorded,
    Role,
    StoredAnswer,
    StoredModel,
    StoredQuery,
    StoredSample,
)

PAGE = 5000


class SQLSamples(StoreSamples):
    """See `ally.store.base` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, new: Iterable[NewSample], now: float, labelled_by: str = "source") -> Added:
        check_now(now)
        check_annotator(labelled_by)
        parts = pieces(map(adding.checked, new), adding.PIECE)
        return sum((self._database.write(adding.add, part, now, labelled_by) for part in parts), Added(0, 0))

    def mark_gone(self, ids: Sequence[str], gone: bool = True) -> int:
        return self._database.write(samples.mark, ids, gone)

    def reserve(self, role: Role, n: int, now: float) -> list[str]:
        samples.check_reserve(role, n)
        check_now(now)
        return self._database.write(samples.reserve, role, n, now)

    def ids(self, rows: Sequence[int]) -> list[str]:
        return self._database.read(samples.ids, rows)

    def rows(self, ids: Sequence[str]) -> list[int]:
        return self._database.read(samples.rows, ids)

    def all(self, role: Role | None = None, after_row: int = -1) -> Iterator[StoredSample]:
        while page := self._database.read(samples.page, after_row, PAGE, role):
            yield from page
            after_row = page[-1].row

    def size(self) -> int:
        return self._database.read(samples.count_rows)


class SQLAnswers(StoreAnswers):
    """See `ally.store.base` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, since: int = 0) -> Iterator[StoredAnswer]:
        return self._pages(since)

    def last_of(self, annotator: str, n: int) -> list[StoredAnswer]:
        return self._database.read(answering.last_of, check_annotator(annotator), check_count("n", n))

    def last_number(self) -> int:
        return self._database.read(last_number, answers.c.number)

    def annotators(self) -> dict[str, int]:
        return self._database.read(answering.by_annotator)

    def opinions(self, rows: Sequence[int] | None = None, until: int | None = None) -> dict[int, list[StoredAnswer]]:
        if rows is None:
            return deriving.opinions(self._pages(0, self.last_number() if until is None else until))
        return deriving.opinions(self._database.read(answering.about, rows, until))

    def decided(self, policy: Policy = "last") -> dict[int, Label]:
        return self._database.read(deriving.decided, check_policy(policy))

    def labels(self, policy: Policy = "last") -> dict[int, Label]:
        return {row: label for row, label in self.decided(policy).items() if label.kind == "label"}

    def values(self, since: int = 0, *, standing: bool = False) -> tuple[list[Any], int]:
        return self._database.read(deriving.values, since, standing)

    def _pages(self, since: int, last: int | None = None) -> Iterator[StoredAnswer]:
        while page := self._database.read(answering.page, since, PAGE, last):
            yield from page
            since = page[-1].number


class SQLModels(Models):
    """See `ally.store.base` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        now: float,
        *,
        seen: int,
        labels: int,
        weights: bytes | None = None,
        report: Mapping[str, Any] | None = None,
        ranking: Iterable[Ranked] = (),
        measures: Sequence[Measure] = (),
        keep_weights: int = 3,
        map: bytes | None = None,
    ) -> int:
        kept = keep_weights
        return models.put(self._database, now, seen, labels, weights, report or {}, ranking, measures, kept, map)

    def put_failure(self, now: float, *, seen: int, labels: int, report: Mapping[str, Any]) -> int:
        return self._database.write(models.fail, now, seen, labels, report)

    def newest(self) -> StoredModel | None:
        return self._database.read(models.newest)

    def all(self) -> list[StoredModel]:
        return self._database.read(models.all_models)

    def weights(self, model: int) -> bytes | None:
        return self._database.read(models.weights_of, model)

    def map(self, model: int) -> bytes | None:
        return self._database.read(models.map_of, model)

    def ranking(self, model: int) -> Iterator[Ranked]:
        after = -1
        while page := self._database.read(models.ranked, model, after, PAGE):
            yield from (entry for _, entry in page)
            after = page[-1][0]

    def put_measures(self, model: int, measures: Sequence[Measure]) -> None:
        self._database.write(models.add_figures, model, measures)

    def measures(self, name: str | None = None) -> list[tuple[int, Measure]]:
        return self._database.read(models.figures_of, name)


class SQLStore(Store):
    """See `ally.store.base` for the contract."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._order = RandomOrder(database)
        self._samples, self._answers, self._models = SQLSamples(database), SQLAnswers(database), SQLModels(database)

    @property
    def samples(self) -> StoreSamples:
        return self._samples

    @property
    def answers(self) -> StoreAnswers:
        return self._answers

    @property
    def models(self) -> Models:
        return self._models

    def __repr__(self) -> str:
        return f"<store {self.name}>"

    @property
    def name(self) -> str:
        return self._database.name

    @cached_property
    def id(self) -> str:
        found = self._database.read(lambda connection: connection.execute(select(campaign.c.id)).scalar_one())
        if not isinstance(found, str) or not ID.fullmatch(found):
            raise StoreDamaged(
                f"{self.name} has the id {found!r:.60}, not 32 hexadecimal digits; the campaign is damaged: restore a "
                "backup"
            )
        return found

    @property
    def settings(self) -> dict[str, Any]:
        return self._database.read(_settings)

    def change_settings(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        self._database.write(_change_settings, change)

    def count(self, now: float, policy: Policy = "last") -> Counts:
        check_now(now)
        return self._database.read(deriving.count, now, check_policy(policy))

    def ask(
        self,
        annotator: str,
        n: int,
        now: float,
        lease_seconds: float,
        key: str | None = None,
        kind: AskKind = "active",
        *,
        first: First | None = None,
        at_most: bool = False,
        opinions: int = 1,
    ) -> StoredQuery:
        request = asking.Request(annotator, n, now, lease_seconds, key, kind, first or {}, at_most, opinions)
        return self._database.write(asking.ask, request, self._order)

    def query(self, number: int) -> StoredQuery:
        return self._database.read(asking.stored, number)

    def waiting(self, query: int, opinions: int = 1) -> list[str]:
        return self._database.read(asking.waiting, query, check_count("opinions", opinions))

    def asked_as(self) -> dict[int, tuple[AskKind, int, int | None]]:
        return self._database.read(asking.asked_as)

    def release(self, query: int, only: Sequence[str] | None = None) -> int:
        return self._database.write(asking.release, query, only)

    def answer(
        self, annotator: str, now: float, answers: Sequence[NewAnswer], query: int | None = None, key: str | None = None
    ) -> Receipt:
        answering.check_call(annotator, now, key)
        return self._database.write(answering.answer, annotator, now, answers, query, key)

    def answer_together(
        self, calls: Sequence[AnswerCall], now: float, opinions: int = 1
    ) -> list[Recorded | InputError]:
        check_now(now)
        check_count("opinions", opinions)
        return self._database.write(answering.answer_together, calls, now, opinions) if calls else []

    def undo(
        self, annotator: str, now: float, number: int | None = None, key: str | None = None
    ) -> tuple[Receipt, StoredAnswer]:
        answering.check_call(annotator, now, key)
        return self._database.write(answering.undo, annotator, now, number, key)

    def together(self, work: Callable[[], T]) -> T:
        return self._database.together(work)

    def log(self, now: float, kind: str, detail: Mapping[str, Any] | None = None) -> int:
        return self._database.write(models.log, now, kind, detail or {})

    def events(self, since: int = 0) -> Iterator[Event]:
        while page := self._database.read(models.logged, since, PAGE):
            yield from page
            since = page[-1].number

    def check(self) -> list[str]:
        found = self._database.problems()
        # Questions about a file that is torn would only fail on the damage that was found already.
        return found or [*self._database.read(checking.find_faults), *self._find_write_fault()]

    def _find_write_fault(self) -> list[str]:
        """Whether an answer could be recorded: something is written, and taken back."""
        try:
            self._database.write(_write_and_fail)
        except _TakenBack:
            return []
        except StoreError as error:
            return [f"no answer can be recorded: {error}"]
        raise AssertionError("what was written only as a trial is on record")

    def backup(self, path: str | Path | None = None) -> Path:
        database = self._database
        beside = database.path if isinstance(database, SQLite) else None
        if path is None and beside is None:
            raise StoreError(f"{self.name} is not a file, so a backup of it needs a path")
        target = Path(path) if path is not None else next_backup(beside or Path())
        if isinstance(database, SQLite):
            return database.backup(target)
        return copy_out(database, target)

    def exclusive(self, name: str, seconds: float = 0.0) -> AbstractContextManager[bool]:
        return self._database.exclusive(name, seconds)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> SQLStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _TakenBack(Exception):
    """Ends a transaction that was a trial."""


def _write_and_fail(connection: Connection) -> None:
    connection.execute(update(campaign).values(number=campaign.c.number))
    raise _TakenBack


def _settings(connection: Connection) -> dict[str, Any]:
    return read_entries(connection.execute(select(campaign.c.settings)).scalar_one(), {}, "the settings")


def _change_settings(connection: Connection, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
    changed = write_json("settings", dict(change(_settings(connection))))
    connection.execute(update(campaign).values(settings=changed))
