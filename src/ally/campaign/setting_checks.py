"""What a setting of a campaign may be: each check is called with its name and its value, and raises if it is none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ally.catalogue_names import KEPT_MODEL
from ally.checks import check_count, check_number
from ally.data.source_labels import LONGEST_CLASS
from ally.errors import InputError, LabelError
from ally.types import Task, find_text_fault

Check: TypeAlias = Callable[[str, Any], object]
MOST_THREADS = 4096
LONGEST_SETTING, LONGEST_ESTIMATOR = 4000, 2**20
MOST_CLASSES = 20_000
"""They are checked whenever the settings are read, and shown to whoever labels."""
LONGEST_LEASE = 366 * 86400.0


def make_choice_check(*values: str) -> Check:
    def check(name: str, value: Any) -> None:
        if value not in values:
            raise InputError.about(name, value, f"is unknown; use {' or '.join(map(repr, values))}")

    return check


def allow_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def check_share(name: str, value: Any) -> None:
    if not 0 <= check_number(name, value) < 1:
        raise InputError.about(name, value, "is out of range; use a number from 0 to below 1")


def check_lease(name: str, value: Any) -> None:
    if check_number(name, value, positive=True) > LONGEST_LEASE:
        raise InputError.about(name, value, "is more than a year; use less")


def check_text(name: str, value: Any, longest: int = LONGEST_SETTING) -> None:
    if not isinstance(value, str) or not value:
        raise InputError.about(name, value, "is not a name; give a text")
    fault = find_text_fault(value, longest)
    if fault is not None:
        raise InputError.about(name, value, fault)


def check_model(name: str, value: Any) -> None:
    """A name, or an estimator kept as text."""
    kept = isinstance(value, str) and value.startswith(KEPT_MODEL)
    check_text(name, value, LONGEST_ESTIMATOR if kept else LONGEST_SETTING)


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise InputError.about(name, value, "must be True or False")


def check_later(name: str, value: Any) -> None:
    """For settings that are checked together with others."""


def check_count_or_cv(name: str, value: Any) -> None:
    if value != "cv":
        if isinstance(value, str):
            raise InputError.about(name, value, "is unknown; use a whole number or 'cv'")
        check_count(name, value, least=0)


def check_threads(name: str, value: Any) -> None:
    if check_count(name, value) > MOST_THREADS:
        raise InputError.about(name, value, f"is too many; use at most {MOST_THREADS}")


check_positive = partial(check_count, least=1)
check_natural = partial(check_count, least=0)


def check_classes(classes: Any, task: Task) -> tuple[Any, ...]:
    """At least two distinct texts or numbers."""
    if task == "regression":
        raise LabelError("classes are given and the task is regression; leave one out")
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise LabelError.about("classes", classes, "; pass a list of all classes, such as ['cat', 'dog']")
    values = tuple(value.item() if hasattr(value, "item") else value for value in classes)
    too_many = find_too_many(values)
    if too_many is not None:
        raise LabelError(f"{too_many}; leave classes out, and any label is one")
    odd = next((value for value in values if not isinstance(value, (str, bool, int)) or value == ""), None)
    if odd is not None or "" in values:
        raise LabelError(f"{odd!r} cannot be a class; use texts or whole numbers")
    for value in values:
        fault = find_text_fault(value, LONGEST_CLASS) if isinstance(value, str) else None
        if fault is not None:
            raise LabelError(f"the class {value!r:.80} {fault}")
    if len({str(value) for value in values}) != len(values):
        raise LabelError.about("classes", list(values), "holds two that read alike; list each once")
    if len(values) < 2:
        raise LabelError.about("classes", list(values), f"holds {len(values)}; a classifier needs at least two")
    return values


def find_too_many(classes: Any) -> str | None:
    """Before each is looked at."""
    if isinstance(classes, (list, tuple)) and len(classes) > MOST_CLASSES:
        return f"there are {len(classes)} classes, and at most {MOST_CLASSES} can be listed"
    return None
