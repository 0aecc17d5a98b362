"""The labels that come with a source: each in the form in which it counts, and the task that they tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from ally.data.export import Answer, check_answers
from ally.data.export.answers import reads
from ally.data.given_labels import ensure_single, refuse_words_for_none
from ally.data.samples import Sample
from ally.data.task_rule import Verdict, decide_task
from ally.errors import AnswerError
from ally.types import SKIP, Task, find_text_fault

LONGEST_CLASS = 1000


class LabelReader:
    """Reads the labels of the samples of `place`, one by one, and then asks the rule for the task."""

    def __init__(self, task: Task | Literal["auto"], classes: Sequence[Any] | None, place: object) -> None:
        """With the task ``"auto"`` labels are read as classes until `decide` says otherwise."""
        self.task: Task = "classification" if task == "auto" else task
        self.counts: Counter[Any] = Counter()
        self._automatic = task == "auto" and classes is None
        self._classes = classes
        self._place = place
        self._first: dict[str, Any] = {}

    def read(self, sample: Sample) -> Any:
        """The label of a sample, in the spelling of the first equal one; None if it has none."""
        if sample.label is None:
            return None
        label = normalize_answer(Answer(sample.id, sample.label), self.task, self._classes, self._first).label
        if self._automatic:
            self.counts[label] += 1
        return label

    def decide(self) -> Verdict | None:
        """The task that the labels tell; None if there are none, or the task was said. Labels that join others are
        refused, and numbers beside words for nothing are asked about. If the verdict is not `task`, the labels are to
        be read again."""
        if self.task == "classification" and self._classes is None:
            ensure_single(self._first.values(), self._place)
        if not self.counts:
            return None
        refuse_words_for_none(self.counts)
        return decide_task(self.counts)


def normalize_answer(answer: Answer, task: Task, classes: Sequence[Any] | None, first: dict[str, Any]) -> Answer:
    """The answer with a valid label, in the spelling of the equal one in `first`, which it joins if new."""
    ensure_storable(answer)
    (answer,) = check_answers([answer], classes=classes, task=task)
    return spell_like_first(answer, task, classes, first)


def ensure_storable(answer: Answer) -> None:
    if isinstance(answer.label, str) and not answer.label.strip():
        raise AnswerError(f"the label of {answer.id!r} is empty; give a class, or ally.SKIP to leave the sample out")
    fault = find_text_fault(answer.label, LONGEST_CLASS) if isinstance(answer.label, str) else None
    if fault is not None:
        raise AnswerError(f"the label {answer.label!r:.80} of {answer.id!r} {fault}")


def spell_like_first(answer: Answer, task: Task, classes: Sequence[Any] | None, first: dict[str, Any]) -> Answer:
    """Where any label is a class, equal ones get one spelling."""
    label = answer.label
    if label is SKIP or task == "regression" or classes is not None:
        return answer
    # Spaces around a label are typos, and a table with gaps stores 3 as 3.0: neither makes a new class.
    if isinstance(label, str):
        label = label.strip()
    elif isinstance(label, float) and label.is_integer():
        label = int(label)
    return answer._replace(label=first.setdefault(reads(label), label))
