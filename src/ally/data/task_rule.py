"""The rule of ``task="auto"``: whether labels are classes or numbers. Everything that takes labels asks here."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from ally.errors import LabelError
from ally.types import Task

MOST_CLASSES = 100
"""More different whole numbers than this are numbers."""
MANY = 10
"""A whole number stands for many samples if at least this many labels are equal to it."""
MOST_TEXTS = 1000
"""More different texts than this, most of them given once, are no classes."""
HIGHEST, FEW = 20, 10
"""Whole numbers up to the first are numbered like classes, if they repeat or are no more than the second."""
CHOICE = "say task='classification' or task='regression' (--task), or list all classes (classes=, --classes)"


class Verdict(NamedTuple):
    """The task, and a sentence that says why and which option decides otherwise."""

    task: Task
    note: str


def decide_task(counts: Mapping[Any, int]) -> Verdict:
    """The task that labels tell, from how often each occurs.

    Texts and booleans are classes, unless there are thousands that hardly repeat; numbers with a fraction are numbers.
    More than `MOST_CLASSES` different whole
    numbers are numbers. Fewer are classes if at least half of them stand for `MANY` samples or more each, or if they
    are numbered like classes: none above `HIGHEST`, and repeated or few. Otherwise the labels do not tell, and a
    `LabelError` asks.
    """
    odd = next((value for value in counts if not isinstance(value, (str, bool, np.bool_, Real))), None)
    if odd is not None:
        kind = type(odd).__name__
        raise LabelError(f"Unknown label type: {kind} (such as {odd!r:.60}); pass one class or one number per sample")
    if any(isinstance(value, (str, bool, np.bool_)) for value in counts):
        if len(counts) > MOST_TEXTS and sum(counts.values()) < 2 * len(counts):
            raise LabelError(
                f"the labels are {len(counts)} different texts in {sum(counts.values())} labels, such as "
                f"{next(iter(counts))!r:.60}: ids or free texts, not classes; name the column of labels (label=, "
                "--label), or list all classes (classes=, --classes) if they are"
            )
        return Verdict("classification", f"task: classification, as the labels are {len(counts)} distinct classes")
    values, times = sorted(map(float, counts)), sorted(counts.values())
    if not all(value.is_integer() for value in values):
        note = "task: regression, as the labels are numbers with fractions; task='classification' (--task) if they are"
        return Verdict("regression", f"{note} classes")
    different, labels = len(values), sum(times)
    if different > MOST_CLASSES:
        note = f"task: regression, as the labels are {different} different whole numbers; task='classification'"
        return Verdict("regression", f"{note} (--task) if they are classes")
    numbered = values[0] >= -1 and values[-1] <= HIGHEST and (different <= FEW or labels >= 2 * different)
    if numbered or times[different // 2] >= MANY:
        note = f"task: classification, as the labels are {different} distinct classes; task='regression' (--task)"
        return Verdict("classification", f"{note} if these whole numbers are measurements")
    lowest, highest = (f"{value:.15g}" for value in (values[0], values[-1]))
    held = f"{different} different whole numbers from {lowest} to {highest}" if different > 1 else lowest
    raise LabelError(
        f"the labels do not tell whether they are classes or numbers ({labels} labels: {held}, most of them fewer than "
        f"{MANY} times); {CHOICE}"
    )
