"""Names of strategies, objectives and models, to check them without importing torch.

A test keeps these equal to the catalogues themselves (`ally.strategies.CATALOGUE`,
`ally.learning.objectives.OBJECTIVES`, `ally.models.MODELS`, `ally.learning.resolve.LEARNERS`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ally.errors import ModelError, UnsupportedTask
from ally.importing import ensure_importable, import_named
from ally.registry import Registry
from ally.types import BOTH_TASKS, CLASSIFICATION, Task


class HasTasks(Protocol):
    @property
    def tasks(self) -> frozenset[Task]: ...


@dataclass(frozen=True)
class Name:
    tasks: frozenset[Task] = BOTH_TASKS


CLASSIFIER = Name(CLASSIFICATION)
STRATEGIES: Registry[Name] = Registry(
    "strategy",
    {
        "ally": Name(),
        "ally-paper": Name(),
        "random": Name(),
        "entropy": CLASSIFIER,
        "margin": CLASSIFIER,
        "badge": CLASSIFIER,
        "coreset": Name(),
        "bait": Name(),
        "kmeanspp": Name(),
        "ally-clusters": Name(),
        "ally-herding": Name(),
        "ally-feasibility": Name(),
        "ally-unlabelled": Name(),
        "accumulated-loss": Name(),
        "bald": Name(),
        "powerbald": Name(),
        "batchbald": CLASSIFIER,
        "learning-loss": Name(),
        "vaal": Name(),
        "waal": CLASSIFIER,
        "dal": Name(),
        "lcmd": Name(),
        "typiclust": Name(),
        "probcover": Name(),
        "maxherding": Name(),
        "uherding": CLASSIFIER,
        "dropquery": Name(),
        "cluster-margin": CLASSIFIER,
    },
)
OBJECTIVES: Registry[Name] = Registry(
    "objective",
    dict.fromkeys(
        (
            "erm",
            "pdcl",
            "smooth-unlabelled",
            "pdcl-unlabelled",
            "feasibility",
            "resilient",
            "accumulated-loss",
            "learning-loss",
            "vaal",
            "waal",
        ),
        Name(),
    ),
)
MODELS: Registry[Name] = Registry(
    "model",
    dict.fromkeys(("mlp", "linear", "linear-network", "resnet18-slim", "resnet18", "resnet18-stl", "cnn"), Name()),
)

LEARNERS: Registry[Name] = Registry(
    "model",
    dict.fromkeys(
        (
            "auto",
            "linear",
            "graph",
            "extra-trees",
            "random-forest",
            "gradient-boosting",
            "hist-gradient-boosting",
            "gaussian-process",
        ),
        Name(),
    ),
)
"""What is not a network, or chooses one."""

KEPT_MODEL = "skops,"
"""What the text of a scikit-learn estimator begins with, where settings keep one."""
ANY_SHAPE = ("mlp", "linear", "linear-network")
"""Networks that take samples of any shape."""


def ensure_strategy(name: str, task: Task) -> None:
    """The strategy exists and suits the task."""
    catalogue = _loaded("ally.strategies", "CATALOGUE", STRATEGIES)
    ensure_task(task, catalogue[name].tasks, f"strategy {name!r}", catalogue)


def ensure_objective(name: str) -> None:
    if name != "auto":
        _loaded("ally.learning.objectives", "OBJECTIVES", OBJECTIVES)[name]


def ensure_model(name: str) -> None:
    """The model is one of the catalogue, or a ``module:builder`` that can be imported in any process."""
    if name.startswith(KEPT_MODEL):
        return
    if ":" in name:
        built_by(name)
        ensure_importable(name, "model", ModelError)
        return
    learners, networks = (
        _loaded("ally.learning.resolve", "LEARNERS", LEARNERS),
        _loaded("ally.models", "MODELS", MODELS),
    )
    Registry("model", {**learners, **networks})[name]


def built_by(path: str) -> Any:
    """What the function at an import path ``module:builder`` gives; the function itself if it takes the shape of
    samples and the number of outputs, as a builder of networks does."""
    function = import_named(path, "model", "module:builder", ModelError)
    if not callable(function):
        raise ModelError.about("model", path, f"is a {type(function).__name__}; name a function that builds the model")
    required = [
        one
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return function if len(required) >= 2 else function()


def ensure_task(task: Task, tasks: frozenset[Task], name: str, catalogue: Mapping[str, HasTasks]) -> None:
    """Raises unless a strategy of these `tasks` is defined for `task`; lists those of the catalogue that are."""
    if task not in tasks:
        others = ", ".join(key for key, entry in catalogue.items() if task in entry.tasks)
        raise UnsupportedTask(f"{name} is not defined for {task}; use one of {others}")


def _loaded(module: str, catalogue: str, names: Registry[Name]) -> Registry[Any]:
    """The catalogue if its module is loaded, since a program may have added entries to it; else the names."""
    return getattr(sys.modules.get(module), catalogue, names)
