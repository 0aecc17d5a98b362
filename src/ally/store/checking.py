"""What must hold in every store, as questions in SQL whose answer is zero."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from sqlalchemy import Connection, text

from ally.errors import StoreDamaged
from ally.store.recorded import read_detail, read_receipt, read_report, read_value, read_why
from ally.store.schema import VERSION
from ally.store.versions import version_of

INVARIANTS = {
    "the campaign is not one line": "SELECT abs(count(*) - 1) FROM campaign",
    "samples have no role": "SELECT count(*) FROM samples WHERE role NOT IN ('pool', 'evaluate', 'validate')",
    "models are neither good nor failed": (
        "SELECT count(*) FROM models WHERE state NOT IN ('good', 'failed', 'writing')"
    ),
    "models have seen answers that do not exist": (
        "SELECT count(*) FROM models WHERE seen > (SELECT coalesce(max(number), 0) FROM answers)"
    ),
    "samples were asked for as nothing known": (
        "SELECT count(*) FROM asked WHERE kind NOT IN ('active', 'random', 'evaluate', 'validate')"
    ),
    "queries are of no known kind": (
        "SELECT count(*) FROM queries WHERE kind NOT IN ('active', 'random', 'evaluate', 'validate')"
    ),
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


def find_faults(connection: Connection) -> list[str]:
    """What does not hold, each with how often."""
    found = version_of(connection)
    problems = [] if found == VERSION else [f"the schema is {found}, not {VERSION}"]
    for words, question in INVARIANTS.items():
        times = int(connection.execute(text(question)).scalar_one())
        if times:
            problems.append(f"{words} ({times})")
    return problems + _find_unreadable(connection)


def _find_unreadable(connection: Connection) -> list[str]:
    """Values that do not have their form; of each kind the first."""
    lines = connection.execute(text("SELECT number, value FROM answers WHERE value IS NOT NULL ORDER BY number"))
    bad = [number for number, value in lines if _find_fault(read_value, value)]
    problems = [f"the values of {len(bad)} answers are not JSON, the first is number {bad[0]}"] if bad else []
    reports = connection.execute(text("SELECT report FROM models ORDER BY number"))
    details = connection.execute(text("SELECT kind, detail FROM events ORDER BY number"))
    whys = connection.execute(text("SELECT why FROM asked WHERE why IS NOT NULL"))
    receipts = connection.execute(text("SELECT receipt FROM calls ORDER BY number"))
    for found in (
        (fault for (receipt,) in receipts if (fault := _find_fault(read_receipt, receipt))),
        (fault for (report,) in reports if (fault := _find_fault(read_report, report))),
        (fault for kind, detail in details if (fault := _find_fault(read_detail, kind, detail))),
        (fault for (why,) in whys if (fault := _find_fault(read_why, why))),
    ):
        problems += islice(found, 1)
    return problems


def _find_fault(read: Callable[..., Any], *texts: str) -> str | None:
    try:
        read(*texts)
    except StoreDamaged as error:
        return str(error)
    return None
