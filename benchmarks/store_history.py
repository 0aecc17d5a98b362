"""What annotators' programs saw, and whether a store that kept its promises could have shown it to them."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ally.store import StoredAnswer


@dataclass(frozen=True)
class Line:
    """One line of a program's own log. op: "asked" (a query came), "sending" (answers are on their way) or "done" (acknowledged)."""

    op: str
    client: str
    key: str
    at: float
    query: int
    samples: tuple[str, ...]
    until: float = 0.0
    value: str = ""
    numbers: tuple[int, ...] = ()
    seconds: float = 0.0


def read(path: Path) -> list[Line]:
    """The whole lines of a log; its writer may have been killed in the middle of the last one."""
    return parse(path.read_bytes()) if path.exists() else []


def parse(data: bytes) -> list[Line]:
    return [_line(json.loads(text)) for text in data[: data.rfind(b"\n") + 1].splitlines()]


def _line(fields: dict[str, Any]) -> Line:
    return Line(**{**fields, "samples": tuple(fields["samples"]), "numbers": tuple(fields.get("numbers", ()))})


def violations(history: Sequence[Line], record: Sequence[StoredAnswer]) -> list[str]:
    """Every broken promise in words; empty if there is none."""
    return [*_numbering(record), *_acknowledged(history, record), *_recorded(history, record), *_handed_out(history)]


def _numbering(record: Sequence[StoredAnswer]) -> Iterable[str]:
    if [answer.number for answer in record] != list(range(1, len(record) + 1)):
        yield "the numbers of the record are not 1, 2, 3 …"


def _acknowledged(history: Sequence[Line], record: Sequence[StoredAnswer]) -> Iterable[str]:
    """Each acknowledged answer is on record under the number in its receipt."""
    known = {answer.number: answer for answer in record}
    for line in history:
        if line.op != "done":
            continue
        for sample, number in itertools.zip_longest(line.samples, line.numbers):
            found = known.get(number)
            if found is None or (found.annotator, found.sample, found.value, found.query) != (line.client, sample, line.value, line.query):
                yield f"lost: the answer of {line.client} to {sample}, acknowledged as number {number}; on record is {found}"


def _recorded(history: Sequence[Line], record: Sequence[StoredAnswer]) -> Iterable[str]:
    """Each answer on record was sent, and is there once."""
    sent = {(line.client, line.query, sample, line.value) for line in history if line.op == "sending" for sample in line.samples}
    seen: set[tuple[str, int | None, str]] = set()
    for answer in record:
        where = (answer.annotator, answer.query, answer.sample)
        if where in seen:
            yield f"twice: the answer of {answer.annotator} to {answer.sample} of query {answer.query}, again as number {answer.number}"
        seen.add(where)
        if (*where, answer.value) not in sent:
            yield f"invented: answer {answer.number} of {answer.annotator} to {answer.sample}, which was never sent"


def _handed_out(history: Sequence[Line]) -> Iterable[str]:
    """No sample is given to a second query while a lease lives, nor after an acknowledged answer."""
    grants: dict[str, list[Line]] = defaultdict(list)
    answered: dict[str, float] = {}
    for line in history:
        for sample in line.samples:
            if line.op == "asked":
                grants[sample].append(line)
            elif line.op == "done":
                answered[sample] = min(answered.get(sample, float("inf")), line.at + line.seconds)
    for sample, lines in grants.items():
        for first, second in itertools.combinations(lines, 2):
            if first.query != second.query and max(first.at, second.at) < min(first.until, second.until):
                yield f"handed out twice: {sample} to {first.client} at {first.at} and to {second.client} at {second.at}"
        for line in lines:
            if answered.get(sample, float("inf")) < line.at:
                yield f"asked again: {sample} of {line.client} at {line.at}, after its answer was acknowledged at {answered[sample]}"
