"""Turns what a user passes as ``model=`` into a learner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn

from ally.catalogue_names import KEPT_MODEL, built_by, ensure_model
from ally.data.containers import holds_texts
from ally.errors import ModelError
from ally.learning.auto import AutoLearner
from ally.learning.candidates import (
    extra_trees,
    gaussian_process,
    gradient_boosting,
    hist_gradient_boosting,
    random_forest,
)
from ally.learning.graph import GraphLearner
from ally.learning.learner import Learner
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.training import Training
from ally.models import model_builder, model_name, own_network
from ally.registry import Registry

LEARNERS: Registry[Callable[[Training], Learner]] = Registry(
    "model",
    {
        "auto": AutoLearner,
        "linear": lambda training: LinearLearner(),
        "graph": lambda training: GraphLearner(keep_in=training.graphs),
        "extra-trees": lambda training: extra_trees(),
        "random-forest": lambda training: random_forest(),
        "gradient-boosting": lambda training: gradient_boosting(),
        "hist-gradient-boosting": lambda training: hist_gradient_boosting(),
        "gaussian-process": lambda training: gaussian_process(),
    },
)
"""Learners that are not networks, by name; `training` is for the networks an automatic choice may pick."""


def resolve_learner(model: Any, shape: tuple[int, ...], training: Training = Training()) -> Learner:
    """A learner from None (which is ``"auto"``), a name, an import path ``module:builder``, a scikit-learn estimator or
    pipeline, a torch module or builder, or a learner.

    `shape` is that of a sample; networks are trained by `training`. Features are standardised, except for modules and
    builders of the user's own, and for estimators.
    """
    _refuse_class(model)
    if isinstance(model, Learner) and not isinstance(model, type):
        return model
    if is_estimator(model):
        return _estimator(model)
    if isinstance(model, str) and model.startswith(KEPT_MODEL):
        from ally.learning.stored_estimator import from_text

        return _estimator(from_text(model))
    if isinstance(model, str) and ":" in model:
        return _own_learner(model, training)
    if model is None:
        model = "auto"
    if isinstance(model, str):
        ensure_model(model)
        if model in LEARNERS:
            return LEARNERS[model](training)
    name = model_name(model, shape)
    if name is not None:
        return Network.named(name, training)
    return Network(model_builder(model, shape), training, standardized=False)


def _own_learner(path: str, training: Training) -> Learner:
    """A learner from the result of the user's own function, named as ``module:builder``."""
    made = built_by(path)
    if isinstance(made, Learner) and not isinstance(made, type):
        return made
    if is_estimator(made) and not isinstance(made, type):
        return _estimator(made, own=path)
    return Network(own_network(path), training, standardized=False, name=path)


def _estimator(model: Any, own: str | None = None) -> Learner:
    """scikit-learn takes a second to import, so it is imported only for estimators."""
    from ally.learning.estimator import Estimator

    return Estimator(model, own=own)


def learner_of(
    model: Any, shape: tuple[int, ...], training: Training | None, default: Training
) -> tuple[Learner, tuple[str, ...]]:
    """The learner that a user means by ``model=``, and notes about what of it is not used.

    A network is trained by `training`, else by the settings of the estimator that stands for it (one with
    `as_learner`), else by `default`.
    """
    _refuse_class(model)
    if hasattr(model, "as_learner"):
        learner, notes = model.as_learner(training, default.device)
        return learner, notes
    return resolve_learner(model, shape, training or default), ()


def suit_method(
    learner: Learner, shape: tuple[int, ...], needs_network: bool, patience: int | None
) -> tuple[Learner, tuple[str, ...]]:
    """The learner as a method wants it, and notes: a network where the method is defined for one and the choice is
    open; stopped early with the method's patience, unless its own settings say otherwise."""
    notes: tuple[str, ...] = ()
    if needs_network and isinstance(learner, AutoLearner):
        name = model_name(None, shape)
        assert name is not None
        learner, notes = Network.named(name, learner.training), (f"{name}: the strategy is defined for a network",)
    elif needs_network and not isinstance(learner, Network):
        notes = (
            f"the strategy is defined for a network, and {type(learner).__name__} is none: its duals come from "
            "another solver and its training is not stopped early; use model='auto' or 'mlp' for the method itself",
        )
    if isinstance(learner, (Network, AutoLearner)):
        learner = replace(learner, training=learner.training.stop_early(patience))
    return learner, notes


def takes_objects(model: Any) -> bool:
    """Whether ``model=`` may be given samples that are not numbers: scikit-learn estimators and pipelines."""
    if isinstance(model, type) or hasattr(model, "as_learner"):
        return False
    return is_estimator(model) or bool(getattr(model, "objects", False))


def is_own_network(model: Any) -> bool:
    """Whether ``model=`` is a torch module or builder of the user's own, which sees features as they are."""
    if isinstance(model, str):
        return ":" in model
    return model is not None and not (isinstance(model, Learner) or is_estimator(model) or hasattr(model, "as_learner"))


def ensure_reads(model: Any, X: Any) -> None:
    """Refuses texts for a torch module, which reads tokens and has no tokenizer."""
    if isinstance(model, nn.Module) and holds_texts(X):
        raise ModelError(
            f"X holds texts, and {type(model).__name__} has no tokenizer to read them by; pass "
            "ally.learning.network.Network.of_texts(model, tokenizer), or the vectors of an encoder as X"
        )


def _refuse_class(model: Any) -> None:
    if isinstance(model, type) and is_estimator(model):
        raise ModelError(f"model is the class {model.__name__}; pass an instance, {model.__name__}()")


def is_estimator(model: Any) -> bool:
    """Whether it has the interface of a scikit-learn estimator."""
    return all(callable(getattr(model, name, None)) for name in ("fit", "predict", "get_params", "set_params"))
