"""How answers are recorded: checked, screened for typos, written to disk, and followed by training if due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ally.campaign.answers import Vocabulary, compared_with, likely_slips, new_answers, said
from ally.campaign.classes import Classes
from ally.campaign.people import person
from ally.campaign.record import ADJUDICATED
from ally.campaign.settings import Settings, current_settings
from ally.campaign.training.trainer import Trainer
from ally.campaign.values import Told, Value
from ally.data import Answer
from ally.data.export.answers import reads
from ally.data.ids import as_text, as_whole
from ally.errors import AnswerError, InputError, StoreError, UnknownClasses
from ally.store import ANYTHING, AnswerCall, NewAnswer, Recorded, Store


@dataclass(frozen=True)
class PageAnswer:
    """An answer as a page sends it; a label, or `ally.SKIP`. `expects` is the number of the annotator's own answer that
    the page shows, None for none; by default it does not matter."""

    id: str
    label: Any
    annotator: str
    key: str | None = None
    query: int | None = None
    expects: int | None = ANYTHING


@dataclass(frozen=True)
class Taken(Value):
    """An answer on disk. `before` is the previous label, by `before_by`; `slip` describes a likely typo."""

    number: int
    repeated: bool
    before: Any = None
    before_by: str | None = None
    slip: str | None = None


@dataclass(frozen=True, eq=False)
class Telling:
    """Takes answers for one campaign."""

    store: Store
    clock: Callable[[], float]
    vocabulary: Vocabulary
    training: Trainer

    def tell(self, query: int, answers: Mapping[str, Any], annotator: str | None, key: str | None, add: bool) -> Told:
        """Answers to a query; with `add`, labels that are no class yet become classes."""
        who = person(annotator or self.store.query(query).annotator)
        new, settings, near = self._checked(answers, who, add)
        waiting = [id for id in self.store.waiting(query, settings.opinions) if id not in answers]
        told = self._record(who, new, query, key, near)
        with suppress(StoreError):  # the answers are on record, and the caller must hear that
            waiting = self.store.waiting(query, settings.opinions)
        return replace(told, query=query, waiting=tuple(waiting))

    def relabel(
        self,
        answers: Mapping[str, Any] | Sequence[Answer],
        annotator: str | None,
        key: str | None = None,
        *,
        add: bool = False,
        settle: bool = False,
    ) -> Told:
        """Answers to samples of the annotator's own choice; with `settle` they end disagreements."""
        who = person(annotator)
        new, _, near = self._checked(answers, who, add)
        told = self._record(who, new, None, key, near)
        if settle:
            settled = dict.fromkeys(answers, max(told.numbers))
            self.store.log(self.clock(), ADJUDICATED, {"samples": settled})
        return told

    def together(self, given: Sequence[PageAnswer]) -> list[Taken | InputError]:
        """Answers of several people with one flush, in the order given: for each, what is now on record, or why not."""
        settings = current_settings(self.store)
        known = self.vocabulary.of(settings)
        compared = compared_with(self.store, settings, self.vocabulary, self.store.answers.last_number())
        refused: list[InputError | None] = []
        calls: list[AnswerCall] = []
        for one in given:
            try:
                (new,) = new_answers({one.id: one.label}, settings, known)
            except InputError as error:
                refused.append(error)
            else:
                refused.append(None)
                calls.append(AnswerCall(one.annotator, new, one.query, one.key, one.expects))
        recorded = iter(self.store.answer_together(calls, self.clock(), settings.opinions))
        found: list[Taken | InputError] = []
        for one, problem in zip(given, refused, strict=True):
            outcome = problem if problem is not None else next(recorded)
            found.append(_taken(outcome, one, settings, compared) if isinstance(outcome, Recorded) else outcome)
        return found

    def _checked(
        self, answers: Mapping[str, Any] | Sequence[Answer], who: str, add: bool
    ) -> tuple[list[NewAnswer], Settings, tuple[str, ...]]:
        """The answers in the store's form, and what is said of new classes; with `add`, those are declared first."""
        settings = current_settings(self.store)
        try:
            return new_answers(answers, settings, self.vocabulary.of(settings)), settings, ()
        except UnknownClasses as error:
            if not add:
                raise
            given = answers if isinstance(answers, Mapping) else [answer.id for answer in answers]
            self.store.samples.rows(list(given))  # an unknown id is refused before a class is added
            new = list({reads(label): label for label in error.labels}.values())
            added = Classes(self.store, self.clock, who).add(new)
        settings = current_settings(self.store)
        return new_answers(answers, settings, self.vocabulary.of(settings)), settings, added.near

    def _record(
        self,
        annotator: str,
        answers: Sequence[NewAnswer],
        query: int | None,
        key: str | None,
        near: Sequence[str],
    ) -> Told:
        settings, before = current_settings(self.store), self.store.answers.last_number()
        compared = compared_with(self.store, settings, self.vocabulary, before)
        labels = {answer.sample: answer.value for answer in answers if answer.kind == "label"}
        slips = likely_slips(settings, compared, labels)
        receipt = self.store.answer(annotator, self.clock(), answers, query, key)
        self.offer_training()
        skipped = sum(answer.kind == "skip" for answer in answers)
        known = sum(number <= before for number in receipt.numbers)
        return Told(receipt.numbers, len(answers) - skipped, skipped, known=known, slips=(*near, *slips))

    def offer_training(self) -> None:
        """Called after answers were saved: if no training can start, that must not look like a failure to save."""
        with suppress(OSError, StoreError):
            self.training.start_if_due()


def texts_by_id(answers: Any) -> Any:
    """Answers by id as the store has it, from a mapping whose ids may be numbers; anything else as it is."""
    if not isinstance(answers, Mapping):
        return answers
    told = {as_text(id): label for id, label in answers.items()}
    if len(told) < len(answers):
        twice = next(id for id in answers if isinstance(id, str) and as_whole(id) != id and as_whole(id) in answers)
        raise AnswerError(f"the id {twice} is answered as a number and as a text; keep one answer")
    return told


def _taken(outcome: Recorded, one: PageAnswer, settings: Settings, compared: Mapping[str, Any]) -> Taken:
    slips = [] if outcome.repeated else likely_slips(settings, compared, {one.id: one.label})
    before = outcome.before
    return Taken(
        outcome.number,
        outcome.repeated,
        None if before is None else said(before),
        None if before is None else before.annotator,
        slips[0] if slips else None,
    )
