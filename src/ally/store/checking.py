"""What must hold in every store, as questions in SQL whose answer is zero."""

from __future__ import annotations

import json

from sqlalchemy import Connection, text

from ally.store.schema import VERSION
from ally.store.versions import version_of

INVARIANTS = {
    "rows of samples are not 0 to n - 1": "SELECT coalesce(max(row) + 1 - count(*) + abs(min(row)), 0) FROM samples",
    "answers are missing from the record": "SELECT coalesce(max(number), 0) - count(*) FROM answers",
    "calls are missing from the record": "SELECT coalesce(max(number), 0) - count(*) FROM calls",
    "queries are missing from the record": "SELECT coalesce(max(number), 0) - count(*) FROM queries",
    "answers are to samples that do not exist": (
        "SELECT count(*) FROM answers WHERE sample NOT IN (SELECT row FROM samples)"
    ),
    (
        "answers name a query that did not ask about their sample"
    ): """SELECT count(*) FROM answers a WHERE a.query IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM asked s WHERE s.query = a.query AND s.sample = a.sample)""",
    "answers are neither label, skip nor undo": (
        "SELECT count(*) FROM answers WHERE kind NOT IN ('label', 'skip', 'undo')"
    ),
    "labels have no value, or skips and undos have one": (
        "SELECT count(*) FROM answers WHERE (kind = 'label') <> (value IS NOT NULL)"
    ),
    "undos do not name an earlier answer of the same annotator to the same sample": """SELECT count(*) FROM answers u
        WHERE (u.kind = 'undo') <> (u.undoes IS NOT NULL)
        OR (u.kind = 'undo' AND NOT EXISTS (SELECT 1 FROM answers a WHERE a.number = u.undoes AND a.number < u.number
        AND a.sample = u.sample AND a.annotator = u.annotator AND a.kind <> 'undo'))""",
    "leases are for samples their query did not ask about": """SELECT count(*) FROM leases l
        WHERE NOT EXISTS (SELECT 1 FROM asked s WHERE s.query = l.query AND s.sample = l.sample)""",
    "queries asked about nothing": (
        "SELECT count(*) FROM queries q WHERE NOT EXISTS (SELECT 1 FROM asked s WHERE s.query = q.number)"
    ),
    (
        "samples kept for evaluation were asked about for training"
    ): """SELECT count(*) FROM asked s JOIN samples p ON p.row = s.sample
        WHERE p.role <> CASE WHEN s.kind IN ('active', 'random') THEN 'pool' ELSE s.kind END""",
    "places of a ranking are missing": """SELECT count(*) FROM (SELECT r.model, count(*) n, max(place) m FROM ranking r
        JOIN models ON models.number = r.model WHERE models.state = 'good'
        AND r.model = (SELECT max(number) FROM models WHERE state = 'good') GROUP BY r.model) t WHERE m <> n - 1""",
}


def broken(connection: Connection) -> list[str]:
    """What does not hold, each with how often."""
    found = version_of(connection)
    problems = [] if found == VERSION else [f"the schema is {found}, not {VERSION}"]
    for words, question in INVARIANTS.items():
        times = int(connection.execute(text(question)).scalar_one())
        if times:
            problems.append(f"{words} ({times})")
    return problems + _unreadable(connection)


def _unreadable(connection: Connection) -> list[str]:
    lines = connection.execute(text("SELECT number, value FROM answers WHERE value IS NOT NULL ORDER BY number"))
    bad = [number for number, value in lines if not _is_json(value)]
    return [f"the values of {len(bad)} answers are not JSON, the first is number {bad[0]}"] if bad else []


def _is_json(value: str) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True
