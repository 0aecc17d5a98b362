"""The current labels and counts, derived from the answers; nothing here is ever stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import cast

from sqlalchemy import Connection, func, select

from ally.store.numbers import last_number
from ally.store.opinions import answered, counts
from ally.store.schema import answers, leases, queries, samples
from ally.store.texts import write_json
from ally.store.values import Counts, Label, Policy, Role, RoleCounts, StoredAnswer


class Standing:
    """Replays answers in order and knows which count: per sample and annotator the last that was not taken back."""

    def __init__(self, record: Iterable[StoredAnswer]) -> None:
        self._by_row: dict[int, dict[int, StoredAnswer]] = {}
        for answer in record:
            if answer.kind == "undo":
                self._by_row[answer.row].pop(cast(int, answer.undoes))
            else:
                self._by_row.setdefault(answer.row, {})[answer.number] = answer

    def opinions(self) -> dict[int, list[StoredAnswer]]:
        """By row, one answer per annotator, in the order given; rows without any are left out."""
        latest = {row: {answer.annotator: answer for answer in sorted(found.values(), key=_number)} for row, found in self._by_row.items()}
        return {row: sorted(people.values(), key=_number) for row, people in latest.items() if people}

    def labels(self, policy: Policy) -> dict[int, Label]:
        decided = {row: _decide(people, policy) for row, people in self.opinions().items()}
        return {row: label for row, label in decided.items() if label is not None}

    def skips(self, policy: Policy) -> set[int]:
        """Rows whose current answer is a skip."""
        return {row for row, people in self.opinions().items() if _decide(people, policy) is None}


def _number(answer: StoredAnswer) -> int:
    return answer.number


def _decide(people: list[StoredAnswer], policy: Policy) -> Label | None:
    """last: the last answer, a skip too. majority: the most frequent label, of equals the one given last; skips do not vote."""
    voters = [answer for answer in people if answer.kind == "label"]
    texts = [write_json("label", answer.value) for answer in voters]
    if not voters or (policy == "last" and people[-1].kind == "skip"):
        return None
    chosen = voters[-1]
    if policy == "majority":
        votes = Counter(texts)
        last = dict(zip(texts, voters, strict=True))
        chosen = last[max(votes, key=lambda text: (votes[text], last[text].number))]
    return Label(chosen.value, chosen.annotator, chosen.at, len(voters), len(set(texts)) > 1)


def count(connection: Connection, now: float) -> Counts:
    """Counts by the last answer that counts of each sample."""
    latest = select(func.max(answers.c.number).label("number")).where(counts()).group_by(answers.c.sample).subquery()
    joined = latest.join(answers, answers.c.number == latest.c.number).join(samples, samples.c.row == answers.c.sample)
    tally = select(samples.c.role, answers.c.kind, answers.c.value, func.count()).select_from(joined)
    classes: Counter[str] = Counter()
    parts: dict[str, Counter[str]] = {role: Counter() for role in ("pool", "evaluate", "validate")}
    for role, kind, value, n in connection.execute(tally.group_by(samples.c.role, answers.c.kind, answers.c.value)):
        parts[role]["labelled" if kind == "label" else "skipped"] += n
        if kind == "label":
            classes[value] += n
    row = samples.c.row
    for role, n in connection.execute(select(samples.c.role, func.count()).group_by(samples.c.role)):
        parts[role]["samples"] = n
    # Counted here: for a GROUP BY, SQLite would walk the index of roles and fetch a million samples in random order.
    for role in connection.execute(select(samples.c.role).where(samples.c.gone.is_(True), ~answered(row))).scalars():
        parts[role]["gone"] += 1
    held = select(samples.c.role).select_from(leases.join(samples, row == leases.c.sample))
    for role in connection.execute(held.where(leases.c.until > now, ~answered(row), samples.c.gone.is_(False))).scalars():
        parts[role]["leased"] += 1
    roles: Mapping[Role, RoleCounts] = {cast(Role, role): RoleCounts(**found) for role, found in parts.items()}
    total, asked = last_number(connection, answers.c.number), last_number(connection, queries.c.number)
    return Counts(roles, dict(classes.most_common()), total, asked)
