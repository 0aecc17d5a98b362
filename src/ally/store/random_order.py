"""The campaign's random order: free samples in it, found without going through all that are answered.

Here and in rankings, the first look is at a few hundred places and every further one at four times as many: statements
stay small however many samples there are, and a planner that misjudges them cannot do harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Connection, Integer, Select, bindparam, func, select, tuple_

from ally.store.conditions import answered, free
from ally.store.database import Database
from ally.store.schema import answers, samples
from ally.store.values import Role

Place: TypeAlias = tuple[int, int]
"""A draw and a row."""

FIRST_LOOK = 200
FAR = 1000
"""Places to look at before it is worth finding out how many of them are answered."""
START: Place = (-1, -1)

_ORDER = (samples.c.draw, samples.c.row)
_AFTER = tuple_(*_ORDER) > tuple_(bindparam("draw", type_=BigInteger), bindparam("row", type_=BigInteger))
_UP_TO = tuple_(*_ORDER) <= tuple_(bindparam("end_draw", type_=BigInteger), bindparam("end_row", type_=BigInteger))
_RECORD = select(
    select(func.coalesce(func.max(samples.c.row), -1)).scalar_subquery().label("last_row"),
    select(func.coalesce(func.max(answers.c.number), 0)).scalar_subquery().label("last_answer"),
)
_UNANSWERED = (
    select(*_ORDER).where(samples.c.role == "pool", _AFTER, _UP_TO, ~answered(samples.c.row)).order_by(*_ORDER).limit(1)
)
_UNDONE = (
    select(*_ORDER)
    .select_from(answers.join(samples, samples.c.row == answers.c.sample))
    .where(answers.c.number > bindparam("since"), answers.c.kind == "undo")
    .order_by(*_ORDER)
    .limit(1)
)


@dataclass(frozen=True)
class _Known:
    """Every sample of the pool up to `place` had an answer when these were the last of the record."""

    place: Place = START
    last_row: int = -1
    last_answer: int = 0


class RandomOrder:
    """Remembers how far the pool is answered. Only an undo or a new sample opens a place again, and every use looks for
    those that came since; what a transaction finds is kept when it is on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known = _Known()
        self._far = True

    def __call__(self, connection: Connection, role: Role, opinions: int, given: Mapping[str, Any]) -> Iterator[int]:
        """Rows that are free for a request, in order; in a writing transaction. `given` is what the condition `free` is
        told, and `n`."""
        place = self._answered(connection) if role == "pool" and opinions == 1 else START
        size, looked_at = max(FIRST_LOOK, 2 * given["n"]), 0
        while end := _look_ahead(connection, role, place, size):
            looked_at += size
            self._far |= looked_at > FAR
            yield from connection.execute(_free(role, opinions), {**given, **_between(place, end)}).scalars().all()
            place, size = end, 4 * size

    def _answered(self, connection: Connection) -> Place:
        known, now = self._known, connection.execute(_RECORD).one()
        place = known.place if known.last_row == now.last_row else START
        undone = connection.execute(_UNDONE, {"since": known.last_answer}).one_or_none()
        if undone is not None:
            place = min(place, (undone.draw, undone.row - 1))
        place = _first_gap(connection, place) if self._far else place
        found, self._far = _Known(place, now.last_row, now.last_answer), False

        def keep() -> None:
            self._known = found

        self._database.when_recorded(keep)
        return place


def _first_gap(connection: Connection, place: Place) -> Place:
    """The place before the next sample of the pool without an answer."""
    size = FIRST_LOOK
    while end := _look_ahead(connection, "pool", place, size):
        gap = connection.execute(_UNANSWERED, _between(place, end)).one_or_none()
        if gap is not None:
            return gap.draw, gap.row - 1
        place, size = end, 4 * size
    return place


def _look_ahead(connection: Connection, role: Role, place: Place, size: int) -> Place | None:
    """The last of the next `size` places; None at the end."""
    end = connection.execute(_ahead(role), {**_between(place), "size": size}).one_or_none()
    return None if end is None else (end.draw, end.row)


def _between(place: Place, end: Place | None = None) -> dict[str, int]:
    after = {"draw": place[0], "row": place[1]}
    return after if end is None else {**after, "end_draw": end[0], "end_row": end[1]}


@cache
def _ahead(role: Role) -> Select[Any]:
    part = select(*_ORDER).where(samples.c.role == role, _AFTER).order_by(*_ORDER)
    found = part.limit(bindparam("size", type_=Integer)).subquery()
    return select(found.c.draw, found.c.row).order_by(found.c.draw.desc(), found.c.row.desc()).limit(1)


@cache
def _free(role: Role, opinions: int) -> Select[Any]:
    inside = select(samples.c.row).where(_AFTER, _UP_TO, free(role, opinions))
    return inside.order_by(*_ORDER).limit(bindparam("n", type_=Integer))
