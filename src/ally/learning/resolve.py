"""From what a user passes as ``model=`` to a learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ally.learning.auto import AutoLearner
from ally.learning.learner import Learner
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.training import Training
from ally.models import model_builder, model_name
from ally.names import ensure_model
from ally.registry import Registry

LEARNERS: Registry[Callable[[Training], Learner]] = Registry(
    "model", {"auto": AutoLearner, "linear": lambda training: LinearLearner()}
)
"""What is not a network, by name; `training` is for the networks that it may choose."""


def resolve_learner(model: Any, shape: tuple[int, ...], training: Training = Training()) -> Learner:
    """A learner from None, a name, a torch module or builder, or a learner.

    `shape` is that of a sample; networks are trained by `training`. Features are standardised, except for modules and
    builders of the user's own.
    """
    if isinstance(model, Learner) and not isinstance(model, type):
        return model
    if isinstance(model, str):
        ensure_model(model)
        if model in LEARNERS:
            return LEARNERS[model](training)
    name = model_name(model, shape)
    if name is not None:
        return Network.named(name, training)
    return Network(model_builder(model, shape), training, standardized=False)
