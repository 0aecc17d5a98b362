"""New samples, and the labels that come with them: a sample and its label are recorded together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from ally.errors import IdError, InputError
from ally.store.answering import answer
from ally.store.conditions import answered
from ally.store.numbers import in_pieces, pieces
from ally.store.samples import count_rows, known_rows
from ally.store.schema import campaign, samples
from ally.store.validation import check_id, check_text, draw_of, write_label
from ally.store.values import Added, NewAnswer, NewSample

PIECE = 5000


def checked(sample: NewSample) -> NewSample:
    check_id(sample.id)
    if sample.hash is not None:
        check_text("hash", sample.hash)
    if sample.role not in ("pool", "evaluate", "validate"):
        raise InputError.about("role", sample.role, f"of sample {sample.id!r} must be 'pool', 'evaluate' or 'validate'")
    if sample.label is not None:
        write_label(sample.id, sample.label)
    return sample


def fill(connection: Connection, new: Iterable[NewSample], seed: int, now: float, labelled_by: str) -> None:
    """The samples of a new campaign, streamed; an error names an id that appears twice."""
    first = 0
    for piece in pieces(map(checked, new), PIECE):
        try:
            with connection.begin_nested():
                _insert(connection, piece, first, seed)
        except IntegrityError as error:
            ids = [sample.id for sample in piece]
            twice = sorted({id for id in ids if ids.count(id) > 1} | set(known_rows(connection, ids)))
            raise IdError(
                f"the sample id {twice[0]!r} appears twice, the second time near row {first}; make ids distinct"
            ) from error
        _label(connection, piece, now, labelled_by)
        first += len(piece)


def add(connection: Connection, new: Sequence[NewSample], now: float, labelled_by: str) -> Added:
    """Adds those whose id is not known yet, and the labels of those that nobody has answered."""
    first = {sample.id: sample for sample in reversed(new)}
    once = [first[id] for id in dict.fromkeys(sample.id for sample in new)]
    known = known_rows(connection, list(first))
    fresh = [sample for sample in once if sample.id not in known]
    if fresh:
        seed = int(connection.execute(select(campaign.c.seed)).scalar_one())
        _insert(connection, fresh, count_rows(connection), seed)
    before = _answered(
        connection, [known[sample.id] for sample in once if sample.id in known and sample.label is not None]
    )
    return Added(
        len(fresh),
        _label(connection, [sample for sample in once if known.get(sample.id) not in before], now, labelled_by),
    )


def _answered(connection: Connection, rows: Sequence[int]) -> set[int]:
    found: set[int] = set()
    for piece in in_pieces(rows):
        found.update(
            connection.execute(select(samples.c.row).where(samples.c.row.in_(piece), answered(samples.c.row))).scalars()
        )
    return found


def _insert(connection: Connection, new: Sequence[NewSample], first: int, seed: int) -> None:
    values = [
        {
            "row": row,
            "id": sample.id,
            "hash": sample.hash,
            "role": sample.role,
            "gone": False,
            "draw": draw_of(seed, sample.id),
        }
        for row, sample in enumerate(new, first)
    ]
    connection.execute(insert(samples), values)


def _label(connection: Connection, new: Sequence[NewSample], now: float, labelled_by: str) -> int:
    given = [NewAnswer(sample.id, sample.label) for sample in new if sample.label is not None]
    if given:
        answer(connection, labelled_by, now, given)
    return len(given)
