"""Changing classes during labelling: add, rename, merge, remove unused ones, undo the last change.

Answers are append-only, so a class is renamed by repeating its labels under the new name, with the same annotators and
times. All current answers of a sample are repeated with it, so their order is kept. The change itself is an event in
the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ally.campaign.people import person
from ally.campaign.setting_checks import check_classes
from ally.campaign.settings import Settings, current_settings
from ally.campaign.values import ClassChange
from ally.data.export.answers import plain_label, reads
from ally.data.export.reading import nearest_class
from ally.errors import LabelError
from ally.store import Event, NewAnswer, Store, StoredAnswer
from ally.store.deriving import opinions

ALIKE = 0.8
"""How similar in spelling a new class and another are, from 0 to 1, for a hint."""
CHANGED = "classes"
"""The kind of event that records a change."""


@dataclass(frozen=True)
class Classes:
    """``campaign.classes``: iterates over the declared classes, or else over those in use, in the order of first
    use."""

    store: Store
    clock: Callable[[], float]
    annotator: str | None = None
    """Who makes the changes; by default the user of this account."""

    def __iter__(self) -> Iterator[Any]:
        declared = self._settings.classes
        return iter(self.store.answers.values(standing=True)[0] if declared is None else declared)

    def by(self, annotator: str | None) -> Classes:
        """The classes, changed by somebody else: ``campaign.classes.by("ann").rename("cta", "cat")``."""
        return replace(self, annotator=annotator)

    def add(self, labels: Sequence[Any]) -> ClassChange:
        """Add classes. If none were declared, this declares those in use and the new ones, and other labels are
        refused from then on."""
        labels = [plain_label(label, "the new class") for label in labels]
        labels = [label.strip() if isinstance(label, str) else label for label in labels]
        known = {reads(label) for label in self._all()}
        double = next((label for label in labels if reads(label) in known), None)
        if double is not None:
            raise LabelError(f"there is a class {double!r} already; nothing was added")
        before = self._all()
        near = tuple(
            f"{label!r} is a new class and looks like {alike!r}; if it is a typo: `ally classes NAME merge`"
            for place, label in enumerate(labels)
            if isinstance(label, str) and (alike := nearest_class(label, [*before, *labels[:place]], ALIKE)) is not None
        )
        return replace(self._settle("add", labels, None, [*before, *labels], []), near=near)

    def rename(self, old: Any, new: Any) -> ClassChange:
        """Rename a class, with all its labels."""
        new = plain_label(new, "the new name")
        if any(reads(label) == reads(new) for label in self._all()):
            raise LabelError(f"there is a class {new!r} already; to make {old!r} and {new!r} one class, merge them")
        return self._move("rename", [self._known(old)], new)

    def merge(self, old: Sequence[Any], into: Any) -> ClassChange:
        """Merge classes into an existing one."""
        target = self._known(into)
        others = [label for label in map(self._known, old) if label != target]
        if not others:
            raise LabelError(f"no classes to merge into {target!r}; name at least one other class")
        return self._move("merge", others, target)

    def remove(self, label: Any) -> ClassChange:
        """Remove a class that has no labels."""
        gone = self._known(label)
        used = sum(answer.value == gone for people in self.store.answers.opinions().values() for answer in people)
        if used:
            raise LabelError(f"{used} labels are {gone!r}; rename the class, or merge it into another, instead")
        return self._settle("remove", [gone], None, [one for one in self._all() if one != gone], [])

    def undo(self) -> ClassChange:
        """Undo the last change that has not been undone. Labels given since then stay."""
        event = self._last()
        if event is None:
            raise LabelError("no change of the classes left to undo")
        detail = event.detail
        numbers = set(detail["numbers"])
        first = min(numbers, default=1)
        then = {
            (one.row, one.annotator): one.value for one in self.store.answers.all(first - 1) if one.number in numbers
        }
        before = _said_before(self.store.answers.all(), first)
        said = [
            # Later changes that were undone have repeated it, so it has another number now.
            _again(answer, before.get(key, answer.value), key in then and answer.value == then[key])
            for people in self.store.answers.opinions(sorted({row for row, _ in then})).values()
            for answer in people
            for key in [(answer.row, answer.annotator)]
        ]
        wanted = None if detail["before"] is None else tuple(detail["before"])
        self._ensure_none_lost(wanted, said)
        return self._log("undo", detail["old"], detail["new"], self._apply(wanted, said), undoes=event.number)

    def _ensure_none_lost(self, classes: tuple[Any, ...] | None, said: Sequence[NewAnswer]) -> None:
        """Check that no label given since then is in a class that would disappear."""
        if classes is None:
            return
        left = {reads(label) for label in classes}
        moved = {(new.sample, new.annotator) for new in said}
        standing = [answer for people in self.store.answers.opinions().values() for answer in people]
        now = [new.value for new in said if new.kind == "label"]
        now += [one.value for one in standing if one.kind == "label" and (one.sample, one.annotator) not in moved]
        lost = next((value for value in now if reads(value) not in left), None)
        if lost is not None:
            raise LabelError(f"samples were labelled {lost!r} since, which would be no class; merge it into another")

    def _move(self, change: str, old: Sequence[Any], new: Any) -> ClassChange:
        gone = {reads(label) for label in old}
        touched = [
            people
            for people in self.store.answers.opinions().values()
            if any(answer.kind == "label" and reads(answer.value) in gone for answer in people)
        ]
        said = [
            _again(answer, new, answer.kind == "label" and reads(answer.value) in gone)
            for people in touched
            for answer in people
        ]
        every = [label for label in self._all() if reads(label) not in gone or change == "rename"]
        every = [new if reads(label) in gone else label for label in every]
        return self._settle(change, old, new, every, said)

    def _settle(
        self, change: str, old: Sequence[Any], new: Any, every: Sequence[Any], said: Sequence[NewAnswer]
    ) -> ClassChange:
        settings = self._settings
        wanted = None if settings.classes is None and change != "add" else check_classes(every, settings.task)
        before = None if settings.classes is None else list(settings.classes)
        return self._log(change, list(old), new, self._apply(wanted, said), before=before)

    def _apply(self, classes: tuple[Any, ...] | None, said: Sequence[NewAnswer]) -> tuple[int, ...]:
        """Old and new classes are both valid while labels move, so an interruption leaves a usable campaign."""
        settings = self._settings
        if settings.classes is not None and classes is not None and said:
            both = dict.fromkeys([*settings.classes, *classes])
            self.store.change_settings(lambda kept: _with_classes(kept, tuple(both)))
        numbers = self.store.answer(person(self.annotator), self.clock(), said).numbers if said else ()
        if classes != settings.classes:
            self.store.change_settings(lambda kept: _with_classes(kept, classes))
        return numbers

    def _log(self, change: str, old: Sequence[Any], new: Any, numbers: Sequence[int], **more: Any) -> ClassChange:
        who = person(self.annotator)
        detail = {"change": change, "old": list(old), "new": new, "numbers": list(numbers), "by": who, **more}
        self.store.log(self.clock(), CHANGED, detail)
        classes = self._settings.classes
        return ClassChange(change, tuple(old), new, len(numbers), None if classes is None else tuple(classes))

    def _last(self) -> Event | None:
        events = [event for event in self.store.events() if event.kind == CHANGED]
        undone = {event.detail.get("undoes") for event in events}
        left = [event for event in events if event.detail["change"] != "undo" and event.number not in undone]
        return left[-1] if left else None

    @property
    def _settings(self) -> Settings:
        return current_settings(self.store)

    def _all(self) -> list[Any]:
        if self._settings.task == "regression":
            raise LabelError("the campaign predicts numbers and has no classes")
        return list({reads(value): value for value in reversed(list(self))}.values())[::-1]

    def _known(self, label: Any) -> Any:
        found = next((one for one in self._all() if reads(one) == reads(label)), None)
        if found is None:
            some = ", ".join(map(repr, self._all()[:20]))
            raise LabelError(f"there is no class {label!r}; the classes are {some}")
        return found


def _again(answer: StoredAnswer, value: Any, moved: bool) -> NewAnswer:
    if answer.kind == "skip":
        return NewAnswer(answer.sample, kind="skip", at=answer.at, annotator=answer.annotator, again=True)
    value = value if moved else answer.value
    return NewAnswer(answer.sample, value, at=answer.at, annotator=answer.annotator, again=True)


def _said_before(record: Any, number: int) -> dict[tuple[int, str], Any]:
    """By row and annotator, the label before answer `number`."""
    earlier = (answer for answer in record if answer.number < number)
    return {
        (row, answer.annotator): answer.value
        for row, people in opinions(earlier).items()
        for answer in people
        if answer.kind == "label"
    }


def _with_classes(kept: dict[str, Any], classes: tuple[Any, ...] | None) -> dict[str, Any]:
    return replace(Settings.from_json(kept), classes=classes).to_json()
