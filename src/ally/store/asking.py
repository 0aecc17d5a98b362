"""Asking: the next samples of the newest good model's ranking, then of the campaign's random order, leased to one
annotator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    BindParameter,
    Connection,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
)

from ally.checks import check_count, check_number
from ally.errors import AnswerError, InputError, PoolExhausted
from ally.store.conditions import answered, free, leased, wanted
from ally.store.models import newest_good
from ally.store.numbers import in_pieces, last_number
from ally.store.random_order import FIRST_LOOK, RandomOrder
from ally.store.recorded import read_why
from ally.store.samples import rows as rows_of
from ally.store.schema import asked, leases, queries, ranking, samples
from ally.store.validation import check_annotator, check_key, check_now
from ally.store.values import ROLE_OF, Asked, AskKind, First, StoredQuery

# Statements are built once: putting one together takes longer than running it, and everybody waits for whoever asks.
_ROWS: BindParameter[Any] = bindparam("rows", expanding=True)
_MY_QUERY = select(queries).where(queries.c.annotator == bindparam("who"), queries.c.key == bindparam("named"))
_QUERY = select(queries).where(queries.c.number == bindparam("asked_in"))
_ITS_SAMPLES = (
    select(asked, samples.c.id)
    .select_from(asked.join(samples, samples.c.row == asked.c.sample))
    .where(asked.c.query == bindparam("asked_in"))
    .order_by(asked.c.place)
)
_LEASES_OF = delete(leases).where(leases.c.sample.in_(_ROWS))
_LAST_PLACE = select(func.coalesce(func.max(ranking.c.place), -1)).where(ranking.c.model == bindparam("by"))


@dataclass(frozen=True)
class Request:
    """What an annotator asks for. See `Store.ask`."""

    annotator: str
    n: int
    now: float
    lease_seconds: float
    key: str | None = None
    kind: AskKind = "active"
    first: First = field(default_factory=dict)
    at_most: bool = False
    opinions: int = 1

    def __post_init__(self) -> None:
        check_annotator(self.annotator)
        check_count("n", self.n)
        check_now(self.now)
        check_number("lease_seconds", self.lease_seconds, positive=True)
        check_key(self.key)
        check_count("opinions", self.opinions)
        first = {} if callable(self.first) else self.first
        for kind in (self.kind, *first):
            if kind not in ROLE_OF:
                raise InputError.about("kind", kind, f"must be one of {', '.join(ROLE_OF)}")
        for kind, n in first.items():
            check_count(f"first[{kind!r}]", n, 0)

    @property
    def until(self) -> float:
        return self.now + self.lease_seconds

    @property
    def parts(self) -> list[tuple[AskKind, int]]:
        """How many samples of which kind, in order; the last part takes what the others leave."""
        first = {} if callable(self.first) else self.first
        return [*((kind, n) for kind, n in first.items() if n), (self.kind, self.n)]

    @property
    def given(self) -> dict[str, Any]:
        """What the condition `free` is told."""
        return {"who": self.annotator, "now": self.now, "n": self.n}


def ask(connection: Connection, request: Request, order: RandomOrder) -> StoredQuery:
    if request.key is not None:
        known = connection.execute(_MY_QUERY, {"who": request.annotator, "named": request.key}).one_or_none()
        if known is not None:
            return _again(connection, request, known)
    number = last_number(connection, queries.c.number) + 1
    if callable(request.first):
        request = replace(request, first=request.first(number))
    model = newest_good(connection) if any(kind == "active" for kind, _ in request.parts) else None
    found = _choose(connection, request, model, order)
    if not found or (len(found) < request.n and not request.at_most):
        raise PoolExhausted(len(found), request.n, _pending(connection, request))
    values = {
        "number": number,
        "annotator": request.annotator,
        "key": request.key,
        "at": request.now,
        "kind": request.kind,
        "model": model,
    }
    connection.execute(insert(queries), values)
    places = [{"query": number, "place": place, **sample} for place, sample in enumerate(found)]
    connection.execute(insert(asked), places)
    _lease(connection, request, number, [sample["sample"] for sample in found])
    return stored(connection, number, until=request.until)


def _choose(connection: Connection, request: Request, model: int | None, order: RandomOrder) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for kind, n in request.parts:
        enough = min(len(found) + n, request.n)
        offers = _offers(connection, request, kind, model, order)
        while len(found) < enough and (offer := next(offers, None)):
            row, score, why = offer
            found.setdefault(row, {"sample": row, "kind": kind, "score": score, "why": why})
    return list(found.values())


def _offers(
    connection: Connection, request: Request, kind: AskKind, model: int | None, order: RandomOrder
) -> Iterator[tuple[int, float | None, str | None]]:
    """Row, score and why of free samples, the most wanted first; a sample may come twice."""
    if kind == "active" and model is not None:
        yield from _by_rank(connection, request, model)
    drawn = order(connection, ROLE_OF[kind], request.opinions, request.given)
    yield from ((row, None, None) for row in drawn)


def _by_rank(connection: Connection, request: Request, model: int) -> Iterator[tuple[int, float, str | None]]:
    start, size = 0, max(FIRST_LOOK, 2 * request.n)
    last = int(connection.execute(_LAST_PLACE, {"by": model}).scalar_one())
    offers = _ranked(request.opinions)
    while start <= last:
        part = {"by": model, "start": start, "end": start + size}
        for line in connection.execute(offers, {**request.given, **part}).all():
            yield line.sample, line.score, line.why
        start, size = start + size, 4 * size


@cache
def _ranked(opinions: int) -> Select[tuple[int, float, str | None]]:
    """Free samples among the places of a ranking from `start` to before `end`, in order."""
    within = and_(ranking.c.place >= bindparam("start"), ranking.c.place < bindparam("end"))
    part = select(ranking).where(ranking.c.model == bindparam("by"), within).subquery()
    offers = select(part.c.sample, part.c.score, part.c.why).select_from(
        part.join(samples, samples.c.row == part.c.sample)
    )
    return offers.where(free("pool", opinions)).order_by(part.c.place).limit(bindparam("n", type_=Integer))


def _lease(connection: Connection, request: Request, query: int, rows: list[int]) -> None:
    for piece in in_pieces(rows):
        connection.execute(_LEASES_OF, {"rows": piece})
    values = [{"sample": row, "query": query, "annotator": request.annotator, "until": request.until} for row in rows]
    if values:
        connection.execute(insert(leases), values)


def _pending(connection: Connection, request: Request) -> int:
    joined = leases.join(samples, samples.c.row == leases.c.sample)
    roles = {ROLE_OF[kind] for kind, _ in request.parts}
    open_ones = and_(leases.c.until > request.now, samples.c.role.in_(roles), ~answered(samples.c.row))
    live = select(func.count()).select_from(joined).where(open_ones)
    return int(connection.execute(live).scalar_one())


def _again(connection: Connection, request: Request, known: Row[Any]) -> StoredQuery:
    """The query made with this key: its open samples, leased again."""
    if known.kind != request.kind:
        raise AnswerError.about(
            "key",
            request.key,
            f"was used for a query of kind {known.kind!r}, not {request.kind!r}; use a new key",
        )
    row = samples.c.row
    still = and_(
        samples.c.gone.is_(False),
        wanted(row, request.annotator, request.opinions),
        ~leased(row, request.now, known.number),
    )
    joined = asked.join(samples, row == asked.c.sample)
    rows = connection.execute(
        select(row).select_from(joined).where(asked.c.query == known.number, still).order_by(asked.c.place)
    )
    left = list(rows.scalars().all())
    _lease(connection, request, known.number, left)
    return stored(connection, known.number, until=request.until, only=set(left))


def stored(
    connection: Connection, number: int, *, until: float | None = None, only: set[int] | None = None
) -> StoredQuery:
    """A query on record with its samples, or with those of the rows `only`."""
    found = _line(connection, number)
    every = [
        Asked(line.sample, line.id, line.place, cast(AskKind, line.kind), line.score, read_why(line.why))
        for line in connection.execute(_ITS_SAMPLES, {"asked_in": number})
    ]
    shown = tuple(sample for sample in every if only is None or sample.row in only)
    if until is None:
        until = (
            connection.execute(select(func.max(leases.c.until)).where(leases.c.query == number)).scalar_one()
            or found.at
        )
    return StoredQuery(
        found.number,
        found.annotator,
        found.at,
        cast(AskKind, found.kind),
        found.key,
        found.model,
        until,
        shown,
        len(every),
    )


def _line(connection: Connection, number: int) -> Row[Any]:
    found = connection.execute(_QUERY, {"asked_in": number}).one_or_none()
    if found is None:
        raise AnswerError(f"there is no query {number}; the last one is {last_number(connection, queries.c.number)}")
    return found


def waiting(connection: Connection, query: int, opinions: int) -> list[str]:
    """Ids of a query that want an answer of its annotator and whose data is there, in its order."""
    annotator = _line(connection, query).annotator
    joined = asked.join(samples, samples.c.row == asked.c.sample)
    still = and_(asked.c.query == query, samples.c.gone.is_(False), wanted(samples.c.row, annotator, opinions))
    return list(
        connection.execute(select(samples.c.id).select_from(joined).where(still).order_by(asked.c.place)).scalars()
    )


def asked_as(connection: Connection) -> dict[int, tuple[AskKind, int, int | None]]:
    """By row: kind, number and model of the first query that asked about it."""
    first = select(asked.c.sample, func.min(asked.c.query).label("query")).group_by(asked.c.sample).subquery()
    joined = first.join(asked, and_(asked.c.query == first.c.query, asked.c.sample == first.c.sample))
    joined = joined.join(queries, queries.c.number == first.c.query)
    lines = select(asked.c.sample, asked.c.kind, asked.c.query, queries.c.model).select_from(joined)
    return {row: (cast(AskKind, kind), query, model) for row, kind, query, model in connection.execute(lines)}


def release(connection: Connection, query: int, only: Sequence[str] | None = None) -> int:
    """End the leases of a query, for all its samples or the given ones; returns how many."""
    _line(connection, query)
    mine = delete(leases).where(leases.c.query == query)
    if only is None:
        return connection.execute(mine).rowcount
    pieces = in_pieces(rows_of(connection, only))
    return sum(connection.execute(mine.where(leases.c.sample.in_(piece))).rowcount for piece in pieces)
