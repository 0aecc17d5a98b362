"""A learner for a source that needs no thought: trains within seconds on a CPU for some hundred labels."""

from __future__ import annotations

from typing import Any, NamedTuple

from ally.errors import InputError
from ally.sources.samples import Samples
from ally.types import BOTH_TASKS, Task


class DefaultLearner(NamedTuple):
    """A model by name, and settings for ``ally.learning.training.Training(**training)``."""

    model: str
    training: dict[str, Any]


def default_learner(samples: Samples, task: Task) -> DefaultLearner:
    """Tables, texts and vectors of any kind: a perceptron with two hidden layers. Images: a slim ResNet-18, fewer epochs."""
    if task not in BOTH_TASKS:
        raise InputError(f"task={task!r} is unknown; pass 'classification' or 'regression'")
    shape = samples.features([]).shape
    if len(shape) == 3 and min(shape[1:]) >= 8:
        return DefaultLearner("resnet18-slim", {"epochs": 12, "batch_size": 32, "lr": 3e-3, "lr_decay": 0.88})
    return DefaultLearner("mlp", {"epochs": 40})
