"""Answers: appended, never changed. A call takes every answer or none, and the same call again changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import BindParameter, Connection, Row, bindparam, delete, func, insert, or_, select

from ally.errors import AnswerConflict, AnswerError, InputError
from ally.store.conditions import counts
from ally.store.numbers import in_pieces, last_number
from ally.store.recorded import read_receipt, read_value
from ally.store.samples import rows as rows_of
from ally.store.schema import answers, asked, calls, leases, queries, samples
from ally.store.validation import check_annotator, check_key, check_now, digest, write_json, write_label
from ally.store.values import ANYTHING, AnswerCall, AnswerKind, NewAnswer, Receipt, Recorded, StoredAnswer

# Built once: putting a statement together takes longer than running it, and every answer of a page runs these.
_ROWS: BindParameter[Any] = bindparam("rows", expanding=True)
_CALL = select(calls).where(calls.c.annotator == bindparam("who"), calls.c.key == bindparam("named"))
_ASKED = select(asked.c.sample).where(asked.c.query == bindparam("asked_in"))
_STANDING = select(answers).where(answers.c.sample.in_(_ROWS), counts()).order_by(answers.c.number)
_MY_LEASES = delete(leases).where(leases.c.sample.in_(_ROWS), leases.c.annotator == bindparam("who"))
_ENDED_LEASES = delete(leases).where(
    leases.c.sample.in_(_ROWS), or_(leases.c.annotator == bindparam("who"), leases.c.query == bindparam("asked_in"))
)


def answer(
    connection: Connection,
    annotator: str,
    now: float,
    given: Sequence[NewAnswer],
    query: int | None = None,
    key: str | None = None,
    look: Callable[[dict[str, Mapping[str, Any]]], None] = lambda standing: None,
) -> Receipt:
    """`look` is called with the answers that stand for each sample, by annotator, before anything is written: it may
    refuse."""
    values = checked(given, annotator)
    # Times are not in it: a call that is repeated later is the same call, wherever its times come from.
    mark = digest(["answer", query, [[*_mark(new), value] for new, value in zip(given, values, strict=True)]])
    known = _same_call(connection, annotator, key, mark)
    if known is not None:
        return known
    rows = rows_of(connection, [new.sample for new in given])
    if query is not None:
        _check_asked(connection, query, rows, given)
    before = _standing(connection, rows)
    for row in rows:
        look(before.get(row, {}))
    numbers: list[int] = []
    fresh: list[dict[str, Any]] = []
    number = last_number(connection, answers.c.number)
    for row, new, value in zip(rows, given, values, strict=True):
        who = new.annotator or annotator
        said = {"sample": row, "annotator": who, "kind": new.kind, "value": value, "query": query}
        people = before.get(row, {})
        # Repeating an answer after someone else's makes it count again. Answers passed on were given before, in any
        # query.
        passed_on = new.annotator is not None
        standing = people.get(who) if passed_on else next(reversed(people.values()), None)
        if (
            standing is not None
            and not new.again
            and (said | ({"query": standing["query"]} if passed_on else {})).items() <= standing.items()
        ):
            numbers.append(standing["number"])
            continue
        number += 1
        numbers.append(number)
        fresh.append({**said, "number": number, "at": now if new.at is None else new.at})
    if fresh or key is not None:
        call = _record(connection, annotator, now, key, mark, numbers)
        if fresh:
            connection.execute(insert(answers), [{**line, "call": call} for line in fresh])
    for person in {new.annotator or annotator for new in given}:
        _end_leases(
            connection,
            person,
            query,
            [row for row, new in zip(rows, given, strict=True) if (new.annotator or annotator) == person],
        )
    return Receipt(tuple(numbers), repeated=not fresh)


def answer_together(
    connection: Connection, calls: Sequence[AnswerCall], now: float, opinions: int
) -> list[Recorded | InputError]:
    """Each call by itself, in one transaction. A call is refused before it writes anything, and leaves the others
    untouched."""
    done: list[Recorded | InputError] = []
    for call in calls:
        try:
            check_call(call.annotator, now, call.key)
            done.append(_answer_one(connection, call, now, opinions))
        except InputError as error:
            done.append(error)
    return done


def _answer_one(connection: Connection, call: AnswerCall, now: float, opinions: int) -> Recorded:
    stood: list[Mapping[str, Any]] = []

    def look(standing: dict[str, Mapping[str, Any]]) -> None:
        if call.expects != ANYTHING:
            _check_expected(call, standing, opinions)
        stood.extend(list(standing.values())[-1:])

    receipt = answer(connection, call.annotator, now, [call.answer], call.query, call.key, look)
    before = None if receipt.repeated or not stood else one(connection, stood[0]["number"])
    return Recorded(receipt.numbers[0], receipt.repeated, before)


def _check_expected(call: AnswerCall, people: dict[str, Mapping[str, Any]], opinions: int) -> None:
    mine = people.get(call.annotator)
    if mine is not None and mine["number"] == call.expects:
        return
    other = mine or next(reversed(people.values()), None)
    closed = mine is not None or len(people) >= opinions or any(said["kind"] == "skip" for said in people.values())
    if call.expects is None and (other is None or not closed):
        return
    if other is None:
        raise AnswerConflict(f"your answer to {call.answer.sample!r} was undone in the meantime; answer it again")
    label = None if other["kind"] == "skip" else read_value(other["value"])
    said = "skipped" if label is None else f"labelled {label!r}"
    raise AnswerConflict(
        f"{call.answer.sample!r} was {said} by {other['annotator']!r} in the meantime; look at it again, and answer "
        "again to replace that",
        other["number"],
        other["annotator"],
        label,
    )


def _mark(new: NewAnswer) -> list[Any]:
    plain = [new.sample, new.kind] if new.annotator is None else [new.sample, new.kind, new.annotator]
    return [*plain, "again"] if new.again else plain


def undo(
    connection: Connection, annotator: str, now: float, number: int | None = None, key: str | None = None
) -> tuple[Receipt, StoredAnswer]:
    """Undo an answer of the annotator, by default the last that counts. Returns the receipt and the undone answer."""
    mark = digest(["undo", number])
    known = _same_call(connection, annotator, key, mark)
    if known is not None:
        return known, one(connection, one(connection, known.numbers[0]).undoes or 0)
    if number is None:
        mine = (
            select(answers.c.number)
            .where(answers.c.annotator == annotator, counts())
            .order_by(answers.c.number.desc())
            .limit(1)
        )
        number = connection.execute(mine).scalar_one_or_none()
        if number is None:
            raise AnswerError(f"{annotator!r} has no answer to undo")
    target = one(connection, number)
    if target.annotator != annotator:
        raise AnswerError(
            f"answer {number} was given by {target.annotator!r}, not {annotator!r}; answer again instead: the last "
            "answer counts"
        )
    if target.kind == "undo":
        raise AnswerError(f"answer {number} is itself an undo; give the answer again instead")
    done = connection.execute(select(answers.c.number).where(answers.c.undoes == number)).scalar_one_or_none()
    if done is None:
        done = last_number(connection, answers.c.number) + 1
        call = _record(connection, annotator, now, key, mark, [done])
        line = {
            "number": done,
            "call": call,
            "sample": target.row,
            "annotator": annotator,
            "at": now,
            "kind": "undo",
            "query": target.query,
        }
        connection.execute(insert(answers), {**line, "value": None, "undoes": number})
        return Receipt((done,)), target
    return Receipt((done,), repeated=True), target


def checked(given: Sequence[NewAnswer], annotator: str) -> list[str | None]:
    """The values as JSON text, None for a skip."""
    if not given:
        raise AnswerError("there are no answers; pass at least one")
    (name, _), times = Counter((new.sample, new.annotator or annotator) for new in given).most_common(1)[0]
    if times > 1:
        raise AnswerError(f"the sample {name!r} is answered {times} times in one call; keep one answer")
    values: list[str | None] = []
    for new in given:
        if new.kind not in ("label", "skip"):
            raise AnswerError.about("kind", new.kind, f"of the answer to {new.sample!r} must be 'label' or 'skip'")
        if new.kind == "skip" and new.value is not None:
            raise AnswerError(
                f"the answer to {new.sample!r} is a skip and has the value {new.value!r}; leave one of them out"
            )
        if new.annotator is not None:
            check_annotator(new.annotator)
        if new.at is not None:
            check_now(new.at, f"at of the answer to {new.sample!r}", AnswerError)
        values.append(None if new.kind == "skip" else write_label(new.sample, new.value))
    return values


def check_call(annotator: str, now: float, key: str | None) -> None:
    check_annotator(annotator)
    check_now(now)
    check_key(key)


def _same_call(connection: Connection, annotator: str, key: str | None, mark: str) -> Receipt | None:
    known = _known_call(connection, annotator, key)
    if known is None:
        return None
    if known.digest != mark:
        raise AnswerError.about("key", key, f"was used by {annotator!r} for other answers; use a new key for each call")
    return Receipt(read_receipt(known.receipt), repeated=True)


def _known_call(connection: Connection, annotator: str, key: str | None) -> Row[Any] | None:
    return None if key is None else connection.execute(_CALL, {"who": annotator, "named": key}).one_or_none()


def _record(connection: Connection, annotator: str, now: float, key: str | None, mark: str, numbers: list[int]) -> int:
    call = last_number(connection, calls.c.number) + 1
    values = {
        "number": call,
        "annotator": annotator,
        "key": key,
        "at": now,
        "digest": mark,
        "receipt": write_json("receipt", numbers),
    }
    connection.execute(insert(calls), values)
    return call


def _check_asked(connection: Connection, query: int, rows: list[int], given: Sequence[NewAnswer]) -> None:
    inside = set(connection.execute(_ASKED, {"asked_in": query}).scalars())
    if not inside and connection.execute(select(queries).where(queries.c.number == query)).one_or_none() is None:
        raise AnswerError(f"there is no query {query}; the last one is {last_number(connection, queries.c.number)}")
    others = [new.sample for row, new in zip(rows, given, strict=True) if row not in inside]
    if others:
        raise AnswerError(
            f"{len(others)} of {len(rows)} answers are not for query {query}, the first is for {others[0]!r}; answer "
            "them without a query"
        )


def _standing(connection: Connection, rows: list[int]) -> dict[int, dict[str, Mapping[str, Any]]]:
    """By row and annotator, the last answer that counts; the last of all comes last."""
    found: dict[int, dict[str, Mapping[str, Any]]] = {}
    for piece in in_pieces(list(dict.fromkeys(rows))):
        for line in connection.execute(_STANDING, {"rows": piece}).mappings():
            people = found.setdefault(line["sample"], {})
            people.pop(line["annotator"], None)
            people[line["annotator"]] = dict(line)
    return found


def _end_leases(connection: Connection, annotator: str, query: int | None, rows: list[int]) -> None:
    """The leases of this annotator and of this query. Leases that someone else holds by now stay with them."""
    for piece in in_pieces(rows):
        mine = {"rows": piece, "who": annotator}
        if query is None:
            connection.execute(_MY_LEASES, mine)
        else:
            connection.execute(_ENDED_LEASES, {**mine, "asked_in": query})


def by_annotator(connection: Connection) -> dict[str, int]:
    """How many samples have an answer of each annotator that counts, the most first."""
    tally = (
        select(answers.c.annotator, func.count(answers.c.sample.distinct()))
        .where(counts())
        .group_by(answers.c.annotator)
    )
    found = {annotator: int(n) for annotator, n in connection.execute(tally)}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


_LINES = select(answers, samples.c.id).select_from(answers.join(samples, samples.c.row == answers.c.sample))


def page(connection: Connection, since: int, limit: int, until: int | None = None) -> list[StoredAnswer]:
    """Answers above the number `since`, in order."""
    wanted = _LINES.where(answers.c.number > since).order_by(answers.c.number).limit(limit)
    lines = connection.execute(wanted if until is None else wanted.where(answers.c.number <= until))
    return [_stored(line) for line in lines]


def about(connection: Connection, rows: Sequence[int], until: int | None = None) -> list[StoredAnswer]:
    """The record of some samples, up to the answer `until`; of each, in order."""
    found: list[StoredAnswer] = []
    lines = _LINES if until is None else _LINES.where(answers.c.number <= until)
    for piece in in_pieces([int(row) for row in dict.fromkeys(rows)]):
        found += map(_stored, connection.execute(lines.where(answers.c.sample.in_(piece)).order_by(answers.c.number)))
    return found


def last_of(connection: Connection, annotator: str, n: int) -> list[StoredAnswer]:
    """The newest answers of an annotator that count, the last first; an answer that was replaced is left out."""
    found: dict[int, StoredAnswer] = {}
    before: int | None = None
    while len(found) < n:
        mine = _LINES.where(answers.c.annotator == annotator, counts()).order_by(answers.c.number.desc()).limit(2 * n)
        lines = connection.execute(mine if before is None else mine.where(answers.c.number < before)).all()
        for line in lines:
            found.setdefault(line.sample, _stored(line))
            before = line.number
        if len(lines) < 2 * n:
            break
    return list(found.values())[:n]


def one(connection: Connection, number: int) -> StoredAnswer:
    line = connection.execute(_LINES.where(answers.c.number == number)).one_or_none()
    if line is None:
        raise AnswerError(f"there is no answer {number}; the last one is {last_number(connection, answers.c.number)}")
    return _stored(line)


def _stored(line: Row[Any]) -> StoredAnswer:
    kind = cast(AnswerKind, line.kind)
    return StoredAnswer(
        line.number,
        line.sample,
        line.id,
        line.annotator,
        line.at,
        kind,
        read_value(line.value),
        line.query,
        line.undoes,
    )
