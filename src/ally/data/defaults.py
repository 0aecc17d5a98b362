"""A default learner for a source: trains within seconds on a CPU for a few hundred labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ally.errors import InputError
from ally.types import BOTH_TASKS, Task

if TYPE_CHECKING:
    from ally.data.samples import Samples


class DefaultLearner(NamedTuple):
    """A model by name, and settings for ``ally.learning.training.Training(**training)``."""

    model: str
    training: dict[str, Any]


STEPS = 300
"""Steps of an image network's training at least; with fewer, a network with batch norm has learned nothing from some
ten labels."""


def default_learner(samples: Samples, task: Task, labels: int = 1000) -> DefaultLearner:
    """What the kind of these samples says for their shape and this many labels."""
    if task not in BOTH_TASKS:
        raise InputError.about("task", task, "is unknown; pass 'classification' or 'regression'")
    return samples.kind.learner(samples.features([]).shape, labels)


def learner_by_shape(shape: tuple[int, ...], labels: int) -> DefaultLearner:
    """Tables, texts and vectors: a perceptron with two hidden layers. Images: a slim ResNet-18, more epochs for fewer
    `labels`."""
    if len(shape) == 3 and min(shape[1:]) >= 8:
        size = min(64, max(8, labels // 16))
        epochs = min(100, max(20, STEPS // max(1, -(-labels // size))))
        return DefaultLearner(
            "resnet18-slim", {"epochs": epochs, "batch_size": size, "lr": 2e-3, "lr_decay": 0.2 ** (1 / epochs)}
        )
    return DefaultLearner("mlp", {"epochs": 40})
