"""The checker of histories: a good one passes, and each kind of bad one is caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ally.store import StoredAnswer
from store_history import Line, Record, parse, violations

ASKED = Line("asked", "ann", "k", 10.0, 1, ("a", "b"), until=20.0)
SENDING = Line("sending", "ann", "k", 11.0, 1, ("a", "b"), value="cat")
DONE = replace(SENDING, op="done", numbers=(1, 2), seconds=0.5)
RECORD = [
    StoredAnswer(number, row, id, "ann", 11.0, "label", "cat", 1, None)
    for number, row, id in ((1, 0, "a"), (2, 1, "b"))
]
GOOD = [ASKED, SENDING, DONE]


def test_a_good_history_passes() -> None:
    assert violations(GOOD, RECORD) == []
    assert violations([ASKED, SENDING], RECORD) == [], (
        "an answer may be on record although its sender died before it knew"
    )
    later = Line("asked", "bob", "k", 20.0, 2, ("c",), until=30.0)
    assert violations([*GOOD, replace(ASKED, samples=("c",)), later], RECORD) == []


@pytest.mark.parametrize(
    ("history", "record", "words"),
    [
        (GOOD, RECORD[:1], "lost"),
        (GOOD, [RECORD[0], replace(RECORD[1], value="dog")], "lost"),
        (GOOD, [RECORD[0], replace(RECORD[1], annotator="bob")], "lost"),
        ([ASKED, SENDING, replace(DONE, numbers=(1,))], RECORD, "lost"),
        (GOOD, [*RECORD, replace(RECORD[1], number=3)], "twice"),
        (GOOD, [*RECORD, replace(RECORD[1], number=3, sample="c")], "invented"),
        (GOOD, [RECORD[0], replace(RECORD[1], number=3)], "not 1, 2, 3"),
        ([*GOOD, Line("asked", "bob", "k", 19.0, 2, ("a",), until=29.0)], RECORD, "handed out twice"),
        ([Line("asked", "bob", "k", 5.0, 2, ("b",), until=10.1), *GOOD], RECORD, "handed out twice"),
        ([*GOOD, Line("asked", "bob", "k", 25.0, 2, ("a",), until=29.0)], RECORD, "asked again"),
    ],
)
def test_bad_histories_are_caught(history: list[Line], record: list[StoredAnswer], words: str) -> None:
    assert any(words in found for found in violations(history, record))


def test_a_line_that_was_being_written_is_left_out(tmp_path: Path) -> None:
    whole = (
        b'{"op": "asked", "client": "ann", "key": "k", "at": 10.0, "query": 1, "samples": ["a", "b"], "until": 20.0}\n'
    )
    assert parse(whole + b'{"op": "do') == [ASKED]


UNDOING = Line("sending", "ann", "u", 13.0, 0, (), call="undo", undoes=1)
UNDONE = replace(UNDOING, op="done", seconds=0.5)
UNDO = StoredAnswer(3, 0, "a", "ann", 13.0, "undo", None, 1, 1)
AGAIN = Line("asked", "bob", "k", 14.0, 2, ("a",), until=24.0)


def test_what_was_undone_may_be_asked_again() -> None:
    assert violations([*GOOD, UNDOING, UNDONE, AGAIN], [*RECORD, UNDO]) == []
    assert violations([*GOOD, UNDOING], [*RECORD, UNDO]) == [], (
        "an undo may be on record although its sender died before it knew"
    )
    assert Record([*RECORD, UNDO]).labels() == {"b": "cat"}


@pytest.mark.parametrize(
    ("history", "record", "words"),
    [
        ([*GOOD, UNDOING, UNDONE], RECORD, "lost"),
        ([*GOOD, UNDOING, UNDONE], [*RECORD, replace(UNDO, annotator="bob")], "lost"),
        (GOOD, [*RECORD, UNDO], "invented"),
        ([*GOOD, UNDOING, UNDONE], [*RECORD, UNDO, replace(UNDO, number=4)], "twice"),
        ([*GOOD, UNDOING, UNDONE, replace(AGAIN, at=12.0)], [*RECORD, UNDO], "asked again"),
        ([*GOOD, replace(DONE, key="l")], RECORD, "acknowledged to 2 calls"),
    ],
)
def test_bad_undos_are_caught(history: list[Line], record: list[StoredAnswer], words: str) -> None:
    assert any(words in found for found in violations(history, record))


def test_a_skip_without_its_query() -> None:
    sending = replace(SENDING, call="skip", value=None)
    record = [replace(answer, kind="skip", value=None, query=None) for answer in RECORD]
    assert violations([ASKED, sending, replace(sending, op="done", numbers=(1, 2))], record) == []
    assert any(
        "lost" in found for found in violations([ASKED, sending, replace(sending, op="done", numbers=(1, 2))], RECORD)
    )
