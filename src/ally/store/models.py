"""Models on record: weights, figures, and the ranking that `ask` reads.

A ranking can be as long as the pool, so it is written in pieces, with a pause as long as the piece took: annotators get
their turn in between. The model is "writing" until the last piece is there and becomes "good" in one transaction;
nobody sees half a ranking.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, delete, func, insert, select, update

from ally.checks import check_count
from ally.errors import InputError, StoreError
from ally.store.database import Database
from ally.store.numbers import last_number, pieces
from ally.store.recorded import read_detail, read_report, read_why
from ally.store.schema import events, maps, measures, models, ranking, weights
from ally.store.validation import check_now, check_text, write_json, write_note
from ally.store.values import Event, Measure, ModelState, Ranked, StoredModel

PIECE = 2000


_NEWEST_GOOD = select(func.max(models.c.number)).where(models.c.state == "good")


def newest_good(connection: Connection) -> int | None:
    found = connection.execute(_NEWEST_GOOD).scalar_one()
    return None if found is None else int(found)


def put(
    database: Database,
    now: float,
    seen: int,
    labels: int,
    data: bytes | None,
    report: Mapping[str, Any],
    ranked: Iterable[Ranked],
    figures: Sequence[Measure],
    keep: int,
    chart: bytes | None = None,
) -> int:
    """Records a model that serves from the moment this returns; its number."""
    check_count("keep_weights", keep)
    lines = [_figure(figure) for figure in figures]
    number = database.write(_open, now, seen, labels, "writing", report)
    for place, piece in enumerate(pieces(ranked, PIECE)):
        began = time.monotonic()
        values = [_line(number, PIECE * place + offset, entry) for offset, entry in enumerate(piece)]
        database.write(_add_piece, number, values)
        time.sleep(time.monotonic() - began)

    def finish(connection: Connection) -> None:
        _check_writing(connection, number)
        if data is not None:
            connection.execute(insert(weights), {"model": number, "data": data})
        if chart is not None:
            connection.execute(insert(maps), {"model": number, "data": chart})
        _put_figures(connection, number, lines)
        connection.execute(update(models).where(models.c.number == number).values(state="good"))

    database.write(finish)
    sweep(database, keep)
    return number


def fail(connection: Connection, now: float, seen: int, labels: int, report: Mapping[str, Any]) -> int:
    """Puts a training that failed on record; the last good model goes on serving."""
    return _open(connection, now, seen, labels, "failed", report)


def _open(
    connection: Connection, now: float, seen: int, labels: int, state: ModelState, report: Mapping[str, Any]
) -> int:
    check_now(now)
    check_count("seen", seen, 0)
    check_count("labels", labels, 0)
    number = last_number(connection, models.c.number) + 1
    # Whoever was writing before was killed, or is too late.
    connection.execute(update(models).where(models.c.state == "writing").values(state="failed"))
    values = {
        "number": number,
        "at": now,
        "state": state,
        "seen": seen,
        "labels": labels,
        "report": write_json("report", dict(report)),
    }
    connection.execute(insert(models), values)
    return number


def _line(model: int, place: int, entry: Ranked) -> dict[str, Any]:
    if not math.isfinite(entry.score):
        raise InputError(f"the score of row {entry.row} in the ranking is {entry.score}; a ranking holds finite scores")
    why = write_note(f"why of row {entry.row}", entry.why)
    return {"model": model, "place": place, "sample": int(entry.row), "score": float(entry.score), "why": why}


def _check_writing(connection: Connection, number: int) -> None:
    state = connection.execute(select(models.c.state).where(models.c.number == number)).scalar_one()
    if state != "writing":
        raise StoreError(f"model {number} was dropped because a newer training started; train again")


def _add_piece(connection: Connection, number: int, values: list[dict[str, Any]]) -> None:
    _check_writing(connection, number)
    connection.execute(insert(ranking), values)


def sweep(database: Database, keep: int) -> None:
    """Removes rankings that serve no more and the weights of all but the newest `keep` good models, in pieces."""

    def stale(connection: Connection) -> list[int]:
        newest = newest_good(connection) or 0
        living = select(models.c.number).where((models.c.state == "writing") | (models.c.number == newest))
        return list(
            connection.execute(select(ranking.c.model).distinct().where(ranking.c.model.not_in(living))).scalars()
        )

    for model in database.read(stale):
        began = time.monotonic()
        while database.write(_remove_piece, model):
            time.sleep(time.monotonic() - began)
            began = time.monotonic()

    def thin(connection: Connection) -> None:
        good = select(models.c.number).where(models.c.state == "good").order_by(models.c.number.desc()).limit(keep)
        kept = list(connection.execute(good).scalars())
        connection.execute(delete(weights).where(weights.c.model.not_in(kept)))
        connection.execute(delete(maps).where(maps.c.model.not_in(kept[:1])))

    database.write(thin)


def _remove_piece(connection: Connection, model: int) -> int:
    """Takes the last places away; a ranking that is looked at meanwhile does not exist for anyone."""
    last = connection.execute(select(func.max(ranking.c.place)).where(ranking.c.model == model)).scalar_one()
    if last is None:
        return 0
    return connection.execute(delete(ranking).where(ranking.c.model == model, ranking.c.place > last - PIECE)).rowcount


def all_models(connection: Connection) -> list[StoredModel]:
    lines = connection.execute(select(models).order_by(models.c.number))
    return [_stored(line) for line in lines]


def newest(connection: Connection) -> StoredModel | None:
    number = newest_good(connection)
    if number is None:
        return None
    return _stored(connection.execute(select(models).where(models.c.number == number)).one())


def _stored(line: Any) -> StoredModel:
    return StoredModel(
        line.number, line.at, cast(ModelState, line.state), line.seen, line.labels, read_report(line.report)
    )


def weights_of(connection: Connection, model: int) -> bytes | None:
    data = connection.execute(select(weights.c.data).where(weights.c.model == model)).scalar_one_or_none()
    return None if data is None else bytes(data)


def map_of(connection: Connection, model: int) -> bytes | None:
    data = connection.execute(select(maps.c.data).where(maps.c.model == model)).scalar_one_or_none()
    return None if data is None else bytes(data)


def ranked(connection: Connection, model: int, after: int, limit: int) -> list[tuple[int, Ranked]]:
    wanted = (
        select(ranking).where(ranking.c.model == model, ranking.c.place > after).order_by(ranking.c.place).limit(limit)
    )
    return [(line.place, Ranked(line.sample, line.score, read_why(line.why))) for line in connection.execute(wanted)]


def _figure(figure: Measure) -> dict[str, Any]:
    check_text("the name of a measure", figure.name)
    for value in (figure.value, figure.low, figure.high):
        if value is not None and not math.isfinite(value):
            raise InputError(f"the measure {figure.name!r} holds {value}; leave out what is not a finite number")
    return {"name": figure.name, "value": figure.value, "low": figure.low, "high": figure.high, "n": figure.n}


def _put_figures(connection: Connection, model: int, lines: Sequence[dict[str, Any]]) -> None:
    for line in lines:
        connection.execute(delete(measures).where(measures.c.model == model, measures.c.name == line["name"]))
        connection.execute(insert(measures), {"model": model, **line})


def add_figures(connection: Connection, model: int, figures: Sequence[Measure]) -> None:
    if connection.execute(select(models.c.number).where(models.c.number == model)).one_or_none() is None:
        raise InputError(f"there is no model {model}; the last one is {last_number(connection, models.c.number)}")
    _put_figures(connection, model, [_figure(figure) for figure in figures])


def figures_of(connection: Connection, name: str | None) -> list[tuple[int, Measure]]:
    wanted = select(measures).order_by(measures.c.model, measures.c.name)
    lines = connection.execute(wanted if name is None else wanted.where(measures.c.name == name))
    return [(line.model, Measure(line.name, line.value, line.low, line.high, line.n)) for line in lines]


def log(connection: Connection, now: float, kind: str, detail: Mapping[str, Any]) -> int:
    check_now(now)
    number = last_number(connection, events.c.number) + 1
    values = {
        "number": number,
        "at": now,
        "kind": check_text("kind", kind),
        "detail": write_json("detail", dict(detail)),
    }
    connection.execute(insert(events), values)
    return number


def logged(connection: Connection, since: int, limit: int) -> list[Event]:
    wanted = select(events).where(events.c.number > since).order_by(events.c.number).limit(limit)
    return [
        Event(line.number, line.at, line.kind, read_detail(line.kind, line.detail))
        for line in connection.execute(wanted)
    ]
