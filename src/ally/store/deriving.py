"""The current labels and counts, derived from the answers; nothing here is ever stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, FromClause, Numeric, Subquery, case, func, select
from sqlalchemy import cast as sql_cast

from ally.store.conditions import answered, counts
from ally.store.numbers import in_pieces, last_number
from ally.store.recorded import read_value
from ally.store.schema import answers, leases, queries, samples
from ally.store.validation import write_json
from ally.store.values import Counts, Label, Policy, Role, RoleCounts, StoredAnswer


def opinions(record: Iterable[StoredAnswer]) -> dict[int, list[StoredAnswer]]:
    """From answers in order: by row, of each annotator the last that was not taken back, in the order given; rows
    without any are left out."""
    by_row: dict[int, dict[int, StoredAnswer]] = {}
    for answer in record:
        if answer.kind == "undo":
            by_row[answer.row].pop(cast(int, answer.undoes))
        else:
            by_row.setdefault(answer.row, {})[answer.number] = answer
    latest = {row: {answer.annotator: answer for answer in found.values()} for row, found in by_row.items()}
    return {row: sorted(people.values(), key=lambda answer: answer.number) for row, people in latest.items() if people}


def decided(connection: Connection, policy: Policy) -> dict[int, Label]:
    """By row, the answer that counts."""
    (joined, beside), shared = _said(policy), _shared(connection)
    lines = select(answers.c.sample, answers.c.value, beside, answers.c.annotator, answers.c.at, answers.c.kind)
    found: dict[int, Label] = {}
    for row, value, other, annotator, at, kind in connection.execute(
        lines.select_from(joined).order_by(answers.c.sample)
    ):
        voters, differ = shared.get(row, (int(kind == "label"), False))
        found[row] = Label(read_value(_middle(value, other)), annotator, at, voters, differ, kind)
    return found


def count(connection: Connection, now: float, policy: Policy) -> Counts:
    """Counts by the answer that counts of each sample."""
    said, beside = _said(policy)
    joined = said.join(samples, samples.c.row == answers.c.sample)
    columns = (samples.c.role, answers.c.kind, answers.c.value, beside, answers.c.annotator)
    classes: Counter[str] = Counter()
    deciders: Counter[str] = Counter()
    parts: dict[str, Counter[str]] = {role: Counter() for role in ("pool", "evaluate", "validate")}
    lines = connection.execute(select(*columns, func.count()).select_from(joined).group_by(*columns))
    for role, kind, value, other, annotator, n in lines:
        parts[role]["labelled" if kind == "label" else "skipped"] += n
        if kind == "label":
            classes[cast(str, _middle(value, other))] += n
            deciders[annotator] += n
    row = samples.c.row
    for role, n in connection.execute(select(samples.c.role, func.count()).group_by(samples.c.role)):
        parts[role]["samples"] = n
    # Counted here: for a GROUP BY, SQLite would walk the index of roles and fetch a million samples in random order.
    for role in connection.execute(select(samples.c.role).where(samples.c.gone.is_(True), ~answered(row))).scalars():
        parts[role]["gone"] += 1
    held = select(samples.c.role).select_from(leases.join(samples, row == leases.c.sample))
    for role in connection.execute(
        held.where(leases.c.until > now, ~answered(row), samples.c.gone.is_(False))
    ).scalars():
        parts[role]["leased"] += 1
    roles: Mapping[Role, RoleCounts] = {cast(Role, role): RoleCounts(**found) for role, found in parts.items()}
    total, asked = last_number(connection, answers.c.number), last_number(connection, queries.c.number)
    differ = _disagreements(connection, policy)
    people = _opinions()
    standing = select(people.c.annotator, func.count()).where(people.c.kind == "label")
    by_person = {who: int(n) for who, n in connection.execute(standing.group_by(people.c.annotator))}
    return Counts(roles, dict(classes.most_common()), dict(deciders.most_common()), differ, total, asked, by_person)


def _said(policy: Policy) -> tuple[FromClause, ColumnElement[Any]]:
    """The answers that count, one for each sample that has any, and the value that stands beside theirs: the same,
    unless a median lies between the two."""
    deciding = _deciding(policy)
    said = deciding.join(answers, answers.c.number == deciding.c.number)
    if policy != "median":
        return said, answers.c.value
    beside = answers.alias("beside")
    return said.join(beside, beside.c.number == deciding.c.beside), beside.c.value


def _middle(value: str | None, beside: str | None) -> str | None:
    """JSON text of the mean of two numbers, in JSON text too; equal texts stay as they are."""
    if value == beside:
        return value
    return write_json("median", read_value(value) / 2 + read_value(beside) / 2)


def _deciding(policy: Policy) -> Subquery:
    """Numbers of the answers that count, one for each sample that has any; for a median also of the one `beside` it.

    last: the last answer, a skip too. majority: the most frequent label, of equals the one given last; skips do not
        vote. median: the
    number in the middle.
    """
    if policy == "median":
        return _medians()
    if policy == "last":
        return select(func.max(answers.c.number).label("number")).where(counts()).group_by(answers.c.sample).subquery()
    said = _opinions()
    votes = select(said.c.sample, said.c.kind, func.count().label("n"), func.max(said.c.number).label("number"))
    tally = votes.group_by(said.c.sample, said.c.kind, said.c.value).subquery()
    order = (case((tally.c.kind == "label", 0), else_=1), tally.c.n.desc(), tally.c.number.desc())
    place = func.row_number().over(partition_by=tally.c.sample, order_by=order).label("place")
    ranked = select(tally.c.number, place).subquery()
    return select(ranked.c.number).where(ranked.c.place == 1).subquery()


def _medians() -> Subquery:
    """The answer in the middle by value, equal ones as they were given: of two in the middle the later, with the other
    `beside` it. Where no label is a number, the last label; where there is none, the last skip."""
    said = _opinions()
    is_number = func.substr(said.c.value, 1, 1).in_([*"-0123456789"])
    vote = case((is_number, sql_cast(said.c.value, Numeric)))
    given = case((is_number, said.c.number), else_=-said.c.number)
    order = (case((said.c.kind == "label", 0), else_=1), case((is_number, 0), else_=1), vote, given)
    place = func.row_number().over(partition_by=said.c.sample, order_by=order).label("place")
    voters = func.count(vote).over(partition_by=said.c.sample).label("voters")
    ranked = select(said.c.sample, said.c.number, place, voters).subquery()
    middle = ranked.c.place.in_([(ranked.c.voters + 1) // 2, (ranked.c.voters + 2) // 2])
    pair = func.max(ranked.c.number).label("number"), func.min(ranked.c.number).label("beside")
    return select(*pair).where(middle).group_by(ranked.c.sample).subquery()


def _opinions(*where: ColumnElement[bool]) -> Subquery:
    """The last answer that counts, for each sample and annotator."""
    latest = (
        select(func.max(answers.c.number).label("number"))
        .where(counts(), *where)
        .group_by(answers.c.sample, answers.c.annotator)
    )
    joined = latest.subquery()
    return select(answers).select_from(joined.join(answers, answers.c.number == joined.c.number)).subquery()


def _shared(connection: Connection) -> dict[int, tuple[int, bool]]:
    """For samples that several annotators answered: how many labels stand, and whether they differ. Other samples need
    no check."""
    several = (
        select(answers.c.sample)
        .group_by(answers.c.sample)
        .having(func.min(answers.c.annotator) != func.max(answers.c.annotator))
    )
    rows = connection.execute(several).scalars().all()
    found = dict.fromkeys(rows, (0, False))
    for piece in in_pieces(rows):
        said = _opinions(answers.c.sample.in_(piece))
        columns = said.c.sample, func.count(), func.min(said.c.value) != func.max(said.c.value)
        lines = connection.execute(select(*columns).where(said.c.kind == "label").group_by(said.c.sample))
        found |= {row: (voters, bool(differ)) for row, voters, differ in lines}
    return found


def _disagreements(connection: Connection, policy: Policy) -> int:
    """Samples with a label that counts whose annotators gave different ones."""
    differ = [row for row, (_, differs) in _shared(connection).items() if differs]
    if policy != "last":
        return len(differ)
    skipped = 0
    for piece in in_pieces(differ):
        last = (
            select(func.max(answers.c.number)).where(counts(), answers.c.sample.in_(piece)).group_by(answers.c.sample)
        )
        skips = select(func.count()).where(answers.c.number.in_(last), answers.c.kind == "skip")
        skipped += int(connection.execute(skips).scalar_one())
    return len(differ) - skipped


def values(connection: Connection, since: int, standing: bool) -> tuple[list[Any], int]:
    """Different values of labels above the number `since`, as they came first, and the number of the last answer."""
    table = _opinions() if standing else answers
    said = select(table.c.value).where(table.c.kind == "label", table.c.number > since).group_by(table.c.value)
    found = connection.execute(said.order_by(func.min(table.c.number))).scalars()
    return [read_value(text) for text in found], last_number(connection, answers.c.number)
