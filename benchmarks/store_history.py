"""What annotators' programs saw, and whether a store that kept its promises could have shown it to them."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ally.store import StoredAnswer


@dataclass(frozen=True)
class Line:
    """One line of a program's own log.

    Attributes:
        op: "asked" (a query came), "sending" (a call is on its way) or "done" (it was acknowledged).
        call: "tell" answers a query, "skip" sets its samples aside without naming the query, "undo" takes back the
            answer `undoes`.
        value: the label of all `samples`; None is a skip.
        numbers: of the answers, as they were acknowledged.
    """

    op: str
    client: str
    key: str
    at: float
    query: int
    samples: tuple[str, ...]
    until: float = 0.0
    value: str | None = ""
    numbers: tuple[int, ...] = ()
    seconds: float = 0.0
    call: str = "tell"
    undoes: int = 0

    @property
    def on_record(self) -> int | None:
        """The query that an answer of this call names."""
        return self.query if self.call == "tell" else None


def read(path: Path) -> list[Line]:
    """The whole lines of a log; its writer may have been killed in the middle of the last one."""
    return parse(path.read_bytes()) if path.exists() else []


def parse(data: bytes) -> list[Line]:
    return [_line(json.loads(text)) for text in data[: data.rfind(b"\n") + 1].splitlines()]


def _line(fields: dict[str, Any]) -> Line:
    return Line(**{**fields, "samples": tuple(fields["samples"]), "numbers": tuple(fields.get("numbers", ()))})


class Record:
    """The answers of a store by number, and its undos by what they undo."""

    def __init__(self, answers: Iterable[StoredAnswer] = ()) -> None:
        self.answers: dict[int, StoredAnswer] = {}
        self.undos: dict[int, StoredAnswer] = {}
        self.add(answers)

    def __len__(self) -> int:
        return len(self.answers)

    def add(self, answers: Iterable[StoredAnswer]) -> None:
        for answer in answers:
            self.answers[answer.number] = answer
            if answer.undoes is not None:
                self.undos[answer.undoes] = answer

    def labels(self) -> dict[str, Any]:
        """The label that counts of each sample: the last answer that was not taken back."""
        last = {
            answer.sample: answer
            for number, answer in self.answers.items()
            if answer.kind != "undo" and number not in self.undos
        }
        return {sample: answer.value for sample, answer in last.items() if answer.kind == "label"}


def violations(history: Sequence[Line], record: Sequence[StoredAnswer]) -> list[str]:
    """Every broken promise in words; empty if there is none."""
    known = Record(record)
    lost = (words for line in history for words in missing(line, known))
    return [
        *_numbering(record),
        *lost,
        *_acknowledged_once(history),
        *_recorded(history, record),
        *_handed_out(history),
    ]


def missing(line: Line, record: Record) -> Iterator[str]:
    """What was acknowledged and is not on record as it was."""
    if line.op != "done":
        return
    if line.call == "undo":
        undo = record.undos.get(line.undoes)
        if undo is None or undo.annotator != line.client:
            yield f"lost: {line.client} took back answer {line.undoes}; on record is {undo}"
        return
    if len(line.numbers) != len(line.samples):
        yield (
            f"lost: {line.client} answered {len(line.samples)} samples in {line.key}, and "
            f"{len(line.numbers)} were acknowledged"
        )
    for sample, number in zip(line.samples, line.numbers, strict=False):
        found = record.answers.get(number)
        told = (line.client, sample, line.value, line.on_record)
        if found is None or (found.annotator, found.sample, found.value, found.query) != told:
            yield (
                f"lost: the answer of {line.client} to {sample}, acknowledged as number {number}; on record is {found}"
            )


def _numbering(record: Sequence[StoredAnswer]) -> Iterable[str]:
    if [answer.number for answer in record] != list(range(1, len(record) + 1)):
        yield "the numbers of the record are not 1, 2, 3 …"


def _acknowledged_once(history: Sequence[Line]) -> Iterable[str]:
    numbers = Counter(number for line in history if line.op == "done" for number in line.numbers)
    yield from (f"answer {number} was acknowledged to {times} calls" for number, times in numbers.items() if times > 1)


def _recorded(history: Sequence[Line], record: Sequence[StoredAnswer]) -> Iterable[str]:
    """Each answer on record was sent, and is there once."""
    sending = [line for line in history if line.op == "sending"]
    sent = Counter(
        (line.client, line.on_record, sample, line.value)
        for line in sending
        if line.call != "undo"
        for sample in line.samples
    )
    sent_undos = {(line.client, line.undoes) for line in sending if line.call == "undo"}
    seen: Counter[Any] = Counter()
    for answer in record:
        what = f"answer {answer.number} of {answer.annotator} to {answer.sample} of query {answer.query}"
        if answer.kind == "undo":
            where: tuple[Any, ...] = (answer.annotator, answer.undoes)
            allowed = where in sent_undos
        else:
            where = (answer.annotator, answer.query, answer.sample, answer.value)
            allowed = sent[where] > 0
        seen[where] += 1
        if not allowed:
            yield f"invented: {what}, which was never sent"
        elif seen[where] > (1 if answer.kind == "undo" else sent[where]):
            yield f"twice: {what}, which is on record before"


class _Grant(NamedTuple):
    """A sample is surely not free from `start` to `end`: it is leased, or its answer stands."""

    start: float
    end: float
    line: Line


def _handed_out(history: Sequence[Line]) -> Iterable[str]:
    """No sample is given to a second query while a lease lives, nor while an acknowledged answer stands."""
    number_of = {
        (line.query, sample): number
        for line in history
        if line.op == "done"
        for sample, number in zip(line.samples, line.numbers, strict=False)
    }
    undone = {line.undoes: line.at for line in history if line.op == "sending" and line.call == "undo"}
    grants: dict[str, list[_Grant]] = defaultdict(list)
    answered: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in history:
        for sample in line.samples if line.call != "undo" else ():
            until_undo = undone.get(number_of.get((line.query, sample), 0), float("inf"))
            if line.op == "asked":
                grants[sample].append(_Grant(line.at + line.seconds, min(line.until, until_undo), line))
            elif line.op == "done":
                answered[sample].append((line.at + line.seconds, until_undo))
    for sample, found in grants.items():
        yield from _shared(sample, found)
        yield from _asked_again(sample, found, answered)


def _shared(sample: str, grants: list[_Grant]) -> Iterable[str]:
    open_: list[_Grant] = []
    for grant in sorted(grants, key=lambda grant: grant.start):
        open_ = [other for other in open_ if other.end > grant.start]
        for other in open_:
            if other.line.query != grant.line.query and grant.start < grant.end:
                first, second = other.line, grant.line
                yield (
                    f"handed out twice: {sample} to {first.client} at {first.at} and to {second.client} at {second.at}"
                )
        open_.append(grant)


def _asked_again(sample: str, grants: list[_Grant], answered: Mapping[str, list[tuple[float, float]]]) -> Iterable[str]:
    for grant in grants:
        line = grant.line
        for since, until in answered.get(sample, ()):
            if since < line.at and line.at + line.seconds < until:
                yield (
                    f"asked again: {sample} of {line.client} at {line.at}, after its answer was acknowledged at {since}"
                )
