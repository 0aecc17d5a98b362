"""Which answers count: labels and skips that were not undone. Conditions for SQL, used by everything that derives
from answers."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, func, select

from ally.store.schema import answers, leases, samples
from ally.store.values import Role

_undo = answers.alias("undo")


def counts(table: Any = answers) -> ColumnElement[bool]:
    """The answer is a label or a skip, and no undo names it."""
    return and_(table.c.kind != "undo", ~select(_undo.c.number).where(_undo.c.undoes == table.c.number).exists())


def _given(sample: ColumnElement[Any]) -> Select[tuple[int]]:
    return select(answers.c.number).where(answers.c.sample == sample, counts())


def answered(sample: ColumnElement[Any]) -> ColumnElement[bool]:
    """Somebody labelled or skipped the sample."""
    return _given(sample).exists()


def wanted(sample: ColumnElement[Any], annotator: str | BindParameter[str], opinions: int) -> ColumnElement[bool]:
    """The sample needs an answer of this annotator: fewer than `opinions` people answered, none of them is this one,
    nobody skipped."""
    if opinions == 1:
        return ~answered(sample)
    people = (
        select(func.count(answers.c.annotator.distinct())).where(answers.c.sample == sample, counts()).scalar_subquery()
    )
    closed = _given(sample).where((answers.c.annotator == annotator) | (answers.c.kind == "skip")).exists()
    return and_(people < opinions, ~closed)


def leased(
    sample: ColumnElement[Any], now: float | BindParameter[float], besides: int | None = None
) -> ColumnElement[bool]:
    """The sample is with an annotator, for a query other than `besides`."""
    found = select(leases.c.sample).where(leases.c.sample == sample, leases.c.until > now)
    return (found if besides is None else found.where(leases.c.query != besides)).exists()


def free(role: Role, opinions: int) -> ColumnElement[bool]:
    """The sample may be handed out. The statement is told to whom (`who`) and when (`now`)."""
    row = samples.c.row
    here = and_(samples.c.role == role, samples.c.gone.is_(False))
    return and_(here, wanted(row, bindparam("who"), opinions), ~leased(row, bindparam("now")))
