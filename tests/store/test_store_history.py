"""The checker of histories: a good one passes, and each kind of bad one is caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ally.store import StoredAnswer
from store_history import Line, parse, violations

ASKED = Line("asked", "ann", "k", 10.0, 1, ("a", "b"), until=20.0)
SENDING = Line("sending", "ann", "k", 11.0, 1, ("a", "b"), value="cat")
DONE = replace(SENDING, op="done", numbers=(1, 2), seconds=0.5)
RECORD = [StoredAnswer(number, row, id, "ann", 11.0, "label", "cat", 1, None) for number, row, id in ((1, 0, "a"), (2, 1, "b"))]
GOOD = [ASKED, SENDING, DONE]


def test_a_good_history_passes() -> None:
    assert violations(GOOD, RECORD) == []
    assert violations([ASKED, SENDING], RECORD) == [], "an answer may be on record although its sender died before it knew"
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
    whole = b'{"op": "asked", "client": "ann", "key": "k", "at": 10.0, "query": 1, "samples": ["a", "b"], "until": 20.0}\n'
    assert parse(whole + b'{"op": "do') == [ASKED]
