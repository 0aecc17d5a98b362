"""Checks on new or changed settings: do the strategy, objective and model exist, and how is the model stored?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ally.campaign.settings import Settings, allow_settings, changed_settings, current_settings, declared_classes
from ally.catalogue_names import ensure_model, ensure_objective, ensure_strategy
from ally.errors import ModelError
from ally.store import Store

NAMES = frozenset({"strategy", "objective", "model"})


def checked_change(store: Store, chosen: Mapping[str, Any]) -> Settings:
    """The settings after a change; raises if a value is invalid."""
    if "model" in chosen:
        chosen = {**chosen, "model": kept_model(chosen["model"])}
    changed = changed_settings(current_settings(store), chosen)
    if not NAMES.isdisjoint(chosen):
        check_names(changed)
    if changed.classes is not None and "classes" in chosen:
        changed = replace(changed, classes=declared_classes(changed.classes, store.answers.values(standing=True)[0]))
    return changed


def keep_change(store: Store, now: float, changed: Settings, names: Mapping[str, Any]) -> None:
    """Save only the settings that were passed; another process may change others at the same time."""
    final = {name: getattr(changed, name) for name in names}
    store.change_settings(lambda kept: changed_settings(Settings.from_json(kept), final).to_json())
    store.log(now, "settings", final)
    allow_settings(store, names, remember=False)


def kept_model(model: Any) -> str | None:
    """A model as text from which another process can rebuild it: a name, ``module:builder``, or an estimator.

    Functions and classes of a module become their import path; anything else is refused.
    """
    if model is None or isinstance(model, str):
        return model
    if isinstance(model, type) and hasattr(model, "get_params"):
        raise ModelError(f"model is the class {model.__name__}; pass an instance, {model.__name__}()")
    if hasattr(model, "get_params") and hasattr(model, "fit"):
        from ally.learning.stored_estimator import as_text

        return as_text(model)
    module, name = getattr(model, "__module__", None), getattr(model, "__qualname__", "")
    if callable(model) and module not in (None, "__main__") and name and "<" not in name:
        return f"{module}:{name}"
    what = f"the function {name}" if name else f"a {type(model).__name__}"
    raise ModelError(
        f"model is {what}, which another process cannot rebuild; name it as 'module:builder', a function in a module "
        "that returns an estimator or a network"
    )


def check_names(settings: Settings) -> None:
    """The strategy, the objective and the model exist and suit the task."""
    ensure_strategy(settings.strategy, settings.task)
    if settings.objective is not None:
        ensure_objective(settings.objective)
    if settings.model is not None:
        ensure_model(settings.model)
