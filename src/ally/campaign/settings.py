"""What was chosen when a campaign was created, kept in its store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ally.checks import check_count, check_number
from ally.errors import InputError, LabelError, StoreVersion
from ally.sources.export.answers import reads
from ally.store.values import Policy
from ally.types import BOTH_TASKS, Task

Vote: TypeAlias = Literal["last", "majority"]
"""What a campaign may choose; `Settings.store_policy` says what it means to the store."""

VERSION = 1
LONGEST_LEASE = 366 * 86400.0


@dataclass(frozen=True)
class Settings:
    """Settings of a campaign.

    Attributes:
        place: the folder or file of the source; None if it lives in memory and is passed at each opening.
        options: the other arguments of `ally.sources.open_source`.
        fingerprint: what the source learned of itself, so that features keep their meaning.
        task: what is learned.
        classes: all classes; None if any label is one.
        strategy, objective, model: how samples are chosen and the learner is trained, by name; None for the default.
        batch: samples of a query, unless it says how many, and new answers after which the learner is trained again.
        lease_seconds: for how long a sample is kept for the one who asked for it.
        policy: which label counts if annotators differ: the ``"last"``, or that of the ``"majority"`` (of equals the last). Of numbers
            to predict the majority is the median (of an even number the mean of the two in the middle).
        opinions: different annotators who are asked about each sample.
        evaluate: size of the random sample that the learning curve is measured on.
        validate: size of the random sample that early stopping looks at.
        held_out_share: share of a query that is spent on those two until they are labelled.
        random_share: share of a query that is chosen at random, to compare with.
        budget: labels to be bought in all, for the advice; None for no limit.
        look_at: at most so many unlabelled samples, drawn anew each time, are looked at when the learner is trained.
        automatic: whether new answers start the training by themselves.
        seed: of the random order of samples and of the training.
    """

    place: str | None
    options: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    task: Task = "classification"
    classes: tuple[Any, ...] | None = None
    strategy: str = "ally"
    objective: str | None = None
    model: str | None = None
    batch: int = 20
    lease_seconds: float = 3600.0
    policy: Vote = "last"
    opinions: int = 1
    evaluate: int = 0
    validate: int = 0
    held_out_share: float = 0.25
    random_share: float = 0.0
    budget: int | None = None
    look_at: int = 100_000
    automatic: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in BOTH_TASKS:
            raise InputError(f"task={self.task!r} is unknown; pass 'classification' or 'regression'")
        if self.classes is not None:
            object.__setattr__(self, "classes", check_classes(self.classes, self.task))
        for name in ("batch", "opinions", "look_at"):
            check_count(name, getattr(self, name))
        for name in ("evaluate", "validate", "seed"):
            check_count(name, getattr(self, name), least=0)
        if check_number("lease_seconds", self.lease_seconds, positive=True) > LONGEST_LEASE:
            raise InputError(f"lease_seconds={self.lease_seconds!r} is more than a year; give back what is asked for sooner")
        if self.policy not in get_args(Vote):
            raise InputError(f"policy={self.policy!r} must be 'last' or 'majority'")
        for name in ("held_out_share", "random_share"):
            if not 0 <= check_number(name, getattr(self, name)) < 1:
                raise InputError(f"{name}={getattr(self, name)!r} is not a share; pass a number from 0 to below 1")
        if self.held_out_share + self.random_share >= 1:
            total = self.held_out_share + self.random_share
            raise InputError(f"held_out_share and random_share add up to {total:g}; leave something for active queries")
        if (self.evaluate or self.validate) and not self.held_out_share:
            raise InputError("samples are held out but held_out_share=0 never asks about them; give a share such as 0.25")
        if self.budget is not None:
            check_count("budget", self.budget)

    @property
    def store_policy(self) -> Policy:
        """How the store decides: of numbers to predict the majority is the median."""
        return "median" if (self.policy, self.task) == ("majority", "regression") else self.policy

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"version": VERSION, **values, "classes": None if self.classes is None else list(self.classes)}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Settings:
        if kept.get("version") != VERSION:
            raise StoreVersion(f"the campaign's settings have version {kept.get('version')!r} and {VERSION} is needed; update ally")
        values = {name: value for name, value in kept.items() if name != "version"}
        if values.get("classes") is not None:
            values["classes"] = tuple(values["classes"])
        return cls(**values)


FIXED = ("place", "options", "fingerprint", "task", "evaluate", "validate", "seed")
"""What samples, their features and their roles rest on."""


def changed_settings(settings: Settings, chosen: Mapping[str, Any]) -> Settings:
    """The settings with some of them changed."""
    names = [field.name for field in dataclasses.fields(Settings) if field.name not in FIXED]
    odd = next((name for name in chosen if name not in names), None)
    if odd is not None:
        raise InputError(f"{odd} cannot be changed; what can be: {', '.join(names)}")
    changed = dataclasses.replace(settings, **chosen)
    if changed.classes is not None and settings.classes is not None:
        lost = next((label for label in settings.classes if label not in changed.classes), None)
        if lost is not None:
            raise LabelError(f"the class {lost!r} is missing and may have labels; list it too")
    return changed


def declared(classes: Iterable[Any], labels: Sequence[Any]) -> tuple[Any, ...]:
    """The classes, each as the label on record that reads like it. Raises if a label is none of them."""
    known = {reads(label): label for label in reversed(labels)}
    found = {reads(label): known.get(reads(label), label) for label in classes}
    lost = next((label for text, label in known.items() if text not in found), None)
    if lost is not None:
        raise LabelError(f"samples are labelled {lost!r}, which is not among the classes; list it too")
    return tuple(found.values())


def check_classes(classes: Any, task: Task) -> tuple[Any, ...]:
    """Distinct texts or numbers, two at least."""
    if task == "regression":
        raise LabelError("classes are given and task='regression'; leave out one of the two")
    if isinstance(classes, str) or not hasattr(classes, "__iter__"):
        raise LabelError(f"classes={classes!r}; pass a list of all classes, such as ['cat', 'dog']")
    values = tuple(value.item() if hasattr(value, "item") else value for value in classes)
    odd = next((value for value in values if not isinstance(value, (str, bool, int)) or value == ""), None)
    if odd is not None or "" in values:
        raise LabelError(f"{odd!r} cannot be a class; use texts or whole numbers")
    if len({str(value) for value in values}) != len(values):
        raise LabelError(f"classes={list(values)!r} holds two that read alike; list each once")
    if len(values) < 2:
        raise LabelError(f"classes={list(values)!r} holds {len(values)}; a classifier needs at least two")
    return values
