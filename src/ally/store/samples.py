"""Samples: ids to rows and back, roles, and those whose data is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select, true, update

from ally.checks import check_count
from ally.errors import IdError, InputError, PoolExhausted
from ally.store.conditions import answered, leased
from ally.store.numbers import in_pieces
from ally.store.schema import asked, samples
from ally.store.validation import check_id
from ally.store.values import Role, StoredSample

_BY_ID = select(samples.c.id, samples.c.row).where(samples.c.id.in_(bindparam("ids", expanding=True)))


def count_rows(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(samples.c.row) + 1, 0))).scalar_one())


def known_rows(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Rows of the ids that are known."""
    found: dict[str, int] = {}
    for piece in in_pieces(ids):
        found |= {line.id: line.row for line in connection.execute(_BY_ID, {"ids": piece})}
    return found


def rows(connection: Connection, ids: Sequence[str]) -> list[int]:
    found = known_rows(connection, [check_id(id) for id in ids])
    unknown = [id for id in ids if id not in found]
    if unknown:
        raise IdError(
            f"{len(unknown)} of {len(ids)} sample ids are unknown, the first is {unknown[0]!r}; check how it is "
            "written, or add it first"
        )
    return [found[id] for id in ids]


def ids(connection: Connection, rows: Sequence[int]) -> list[str]:
    found: dict[int, str] = {}
    for piece in in_pieces([int(row) for row in rows]):
        found |= {
            line.row: line.id
            for line in connection.execute(select(samples.c.row, samples.c.id).where(samples.c.row.in_(piece)))
        }
    unknown = [row for row in rows if int(row) not in found]
    if unknown:
        raise IdError(f"there is no sample in row {unknown[0]}; rows go from 0 to {count_rows(connection) - 1}")
    return [found[int(row)] for row in rows]


def page(connection: Connection, after: int, limit: int, role: Role | None) -> list[StoredSample]:
    columns = select(samples.c.row, samples.c.id, samples.c.hash, samples.c.role, samples.c.gone)
    wanted = columns.where(samples.c.row > after).order_by(samples.c.row).limit(limit)
    if role is not None:
        wanted = wanted.where(samples.c.role == role)
    return [
        StoredSample(row, id, hash, cast(Role, found), bool(gone))
        for row, id, hash, found, gone in connection.execute(wanted)
    ]


def mark(connection: Connection, ids: Sequence[str], gone: bool) -> int:
    """Sets whether the data of samples is gone; how many changed."""
    changed = 0
    for piece in in_pieces(rows(connection, ids)):
        changed += connection.execute(
            update(samples).where(samples.c.row.in_(piece), samples.c.gone != gone).values(gone=gone)
        ).rowcount
    return changed


def reserve(connection: Connection, role: Role, n: int, now: float) -> list[str]:
    """Moves the next `n` of the random order that were never asked about or answered from the pool to `role`."""
    row = samples.c.row
    return _move(connection, role, n, and_(row.not_in(select(asked.c.sample)), ~answered(row), ~leased(row, now)))


def reserve_of_all(connection: Connection, counts: Mapping[Role, int]) -> None:
    """At the creation of a campaign, where a label that the source knew keeps no sample from being drawn."""
    check_reserves(counts)
    for role, n in counts.items():
        _move(connection, role, n, true())


def check_reserves(counts: Mapping[Role, int]) -> None:
    for role, n in counts.items():
        check_reserve(role, n, 0)


def check_reserve(role: Role, n: int, least: int = 1) -> None:
    if role not in ("evaluate", "validate"):
        raise InputError.about("role", role, "must be 'evaluate' or 'validate'")
    check_count("n", n, least)


def _move(connection: Connection, role: Role, n: int, which: ColumnElement[bool]) -> list[str]:
    wanted = select(samples.c.row, samples.c.id).where(samples.c.role == "pool", samples.c.gone.is_(False), which)
    found = connection.execute(wanted.order_by(samples.c.draw, samples.c.row).limit(n)).all()
    if len(found) < n:
        raise PoolExhausted(len(found), n)
    for piece in in_pieces([row for row, _ in found]):
        connection.execute(update(samples).where(samples.c.row.in_(piece)).values(role=role))
    return [id for _, id in found]
