"""Samples: ids to rows and back, new ones, roles, and those whose data is gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from sqlalchemy import Connection, and_, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ally.errors import IdError, InputError, PoolExhausted
from ally.store.numbers import in_pieces, pieces
from ally.store.opinions import answered, leased
from ally.store.schema import asked, campaign, samples
from ally.store.texts import check_id, check_text, draw_of
from ally.store.values import NewSample, Role, StoredSample

PIECE = 5000


def checked(sample: NewSample) -> NewSample:
    check_id(sample.id)
    if sample.hash is not None:
        check_text("hash", sample.hash)
    if sample.role not in ("pool", "evaluate", "validate"):
        raise InputError(f"role={sample.role!r} of sample {sample.id!r} must be 'pool', 'evaluate' or 'validate'")
    return sample


def _insert(connection: Connection, new: Sequence[NewSample], first: int, seed: int) -> None:
    values = [
        {"row": row, "id": sample.id, "hash": sample.hash, "role": sample.role, "gone": False, "draw": draw_of(seed, sample.id)}
        for row, sample in enumerate(new, first)
    ]
    connection.execute(insert(samples), values)


def fill(connection: Connection, new: Iterable[NewSample], seed: int) -> int:
    """The samples of a new campaign, streamed; an id that comes twice is refused by name."""
    first = 0
    for piece in pieces(map(checked, new), PIECE):
        try:
            with connection.begin_nested():
                _insert(connection, piece, first, seed)
        except IntegrityError as error:
            ids = [sample.id for sample in piece]
            twice = sorted({id for id in ids if ids.count(id) > 1} | set(known_rows(connection, ids)))
            raise IdError(
                f"the sample id {twice[0]!r} comes more than once, the second time near row {first}; make ids distinct"
            ) from error
        first += len(piece)
    return first


def add(connection: Connection, new: Sequence[NewSample]) -> int:
    """Adds those whose id is not known yet; how many."""
    first = {sample.id: sample for sample in reversed(new)}
    known = known_rows(connection, list(first))
    fresh = [first[id] for id in dict.fromkeys(sample.id for sample in new) if id not in known]
    if fresh:
        seed = int(connection.execute(select(campaign.c.seed)).scalar_one())
        _insert(connection, fresh, count_rows(connection), seed)
    return len(fresh)


def count_rows(connection: Connection) -> int:
    return int(connection.execute(select(func.coalesce(func.max(samples.c.row) + 1, 0))).scalar_one())


def known_rows(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Rows of the ids that are known."""
    found: dict[str, int] = {}
    for piece in in_pieces(ids):
        found |= {line.id: line.row for line in connection.execute(select(samples.c.id, samples.c.row).where(samples.c.id.in_(piece)))}
    return found


def rows(connection: Connection, ids: Sequence[str]) -> list[int]:
    found = known_rows(connection, [check_id(id) for id in ids])
    unknown = [id for id in ids if id not in found]
    if unknown:
        raise IdError(f"{len(unknown)} of {len(ids)} sample ids are unknown, the first is {unknown[0]!r}; add the samples first")
    return [found[id] for id in ids]


def ids(connection: Connection, rows: Sequence[int]) -> list[str]:
    found: dict[int, str] = {}
    for piece in in_pieces([int(row) for row in rows]):
        found |= {line.row: line.id for line in connection.execute(select(samples.c.row, samples.c.id).where(samples.c.row.in_(piece)))}
    unknown = [row for row in rows if int(row) not in found]
    if unknown:
        raise IdError(f"there is no sample in row {unknown[0]}; rows go from 0 to {count_rows(connection) - 1}")
    return [found[int(row)] for row in rows]


def page(connection: Connection, after: int, limit: int, role: Role | None) -> list[StoredSample]:
    columns = select(samples.c.row, samples.c.id, samples.c.hash, samples.c.role, samples.c.gone)
    wanted = columns.where(samples.c.row > after).order_by(samples.c.row).limit(limit)
    if role is not None:
        wanted = wanted.where(samples.c.role == role)
    return [StoredSample(row, id, hash, cast(Role, found), bool(gone)) for row, id, hash, found, gone in connection.execute(wanted)]


def mark(connection: Connection, ids: Sequence[str], gone: bool) -> int:
    """Sets whether the data of samples is gone; how many changed."""
    changed = 0
    for piece in in_pieces(rows(connection, ids)):
        changed += connection.execute(update(samples).where(samples.c.row.in_(piece), samples.c.gone != gone).values(gone=gone)).rowcount
    return changed


def reserve(connection: Connection, role: Role, n: int, now: float) -> list[str]:
    """Moves the next `n` of the random order that were never asked about or answered from the pool to `role`."""
    row = samples.c.row
    untouched = and_(row.not_in(select(asked.c.sample)), ~answered(row), ~leased(row, now))
    wanted = select(samples.c.row, samples.c.id).where(samples.c.role == "pool", samples.c.gone.is_(False), untouched)
    found = connection.execute(wanted.order_by(samples.c.draw, samples.c.row).limit(n)).all()
    if len(found) < n:
        raise PoolExhausted(len(found), n)
    for piece in in_pieces([row for row, _ in found]):
        connection.execute(update(samples).where(samples.c.row.in_(piece)).values(role=role))
    return [id for _, id in found]
