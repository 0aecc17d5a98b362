"""What the header of a model file may say. It is checked as a whole, before anything is built from it.

Each kind of learner compares the sizes that it says with the tensors that are there, so a size takes no memory that the
file does not have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias

import torch

from ally.data import Scaler
from ally.errors import DataError
from ally.json_form import find_misfit
from ally.registry import Registry

VERSION = 2
"""Version 1 files contain only networks and have no kind."""
LONGEST_HEADER = 16 * 2**20
MOST_LEARNERS, DEEPEST = 64, 3
MOST_NUMBERS = 2**31
"""In one sample."""
MOST_DIMENSIONS = 8
MOST_CLASSES, LONGEST_CLASS = 20_000, 10_000
Shape: TypeAlias = tuple[int, ...]

HEAD: Mapping[str, Any] = {
    "version": Literal[1, 2],
    "task": Literal["classification", "regression"],
    "classes": list[str | int | bool | float] | None,
    "about": NotRequired[dict[str, Any]],
}
FORMS: Registry[Mapping[str, Any]] = Registry(
    "kind of learner",
    {
        "network": {
            "kind": NotRequired[str],
            "own": NotRequired[str | None],
            "model": str,
            "shape": list[int],
            "target": list[float],
            "head": NotRequired[str],
        },
        "linear": {"kind": str, "shape": list[int], "target": list[float], "C": Any},
        "estimator": {
            "kind": str,
            "own": str | None,
            "columns": list[int],
            "target": list[float],
            "shape": list[int] | None,
            "geometry": Literal["inputs", "transformed", "leaves", "nowhere"],
            "projected": NotRequired[int | None],
            "signature": NotRequired[str],
        },
        "graph": {
            "kind": str,
            "shape": list[int],
            "target": list[float],
            "k": int,
            "temperature": float,
            "width": float,
        },
        "average": {"kind": str, "weights": list[float], "learners": list[Any]},
        "words": {"kind": str, "learners": list[Any]},
    },
)
"""The entries of each kind of learner."""


def check_header(facts: Any, name: str) -> None:
    """Raises `DataError` unless every entry is one there may be, of the type it must have."""
    if isinstance(facts, dict) and facts.get("version") not in (1, VERSION):
        raise DataError(
            f"{name} has version {facts.get('version')!r:.60} and {VERSION} is needed; update ally, or train again"
        )
    classes = facts.get("classes") if isinstance(facts, dict) else None
    if isinstance(classes, list) and len(classes) > MOST_CLASSES:
        raise DataError(f"{name} is inconsistent ({len(classes)} classes, and {MOST_CLASSES} is the most); train again")
    head = {key: value for key, value in facts.items() if key in HEAD} if isinstance(facts, dict) else facts
    misfit = find_misfit(head, HEAD, "its header") or _find_misfit_of_classes(facts)
    if misfit is None:
        learner = {key: value for key, value in facts.items() if key not in HEAD}
        misfit = _find_misfit_of_learner(learner, "its header", MOST_LEARNERS, DEEPEST)[0]
    if misfit is not None:
        raise DataError(f"{name} is inconsistent ({misfit}); train again")


def _find_misfit_of_classes(facts: Mapping[str, Any]) -> str | None:
    classes = facts["classes"]
    if (classes is None) != (facts["task"] == "regression"):
        return f"the task is {facts['task']} and there are {'no' if classes is None else len(classes)} classes"
    if classes is None:
        return None
    if not classes or len({(type(one), one) for one in classes}) < len(classes):
        return f"{len(classes)} classes are not all different"
    odd = next((one for one in classes if isinstance(one, str) and len(one) > LONGEST_CLASS), None)
    return None if odd is None else f"the class {odd!r:.60} has {len(odd)} characters"


def _find_misfit_of_learner(facts: Any, name: str, most: int, deepest: int) -> tuple[str | None, int]:
    """What is wrong with the entries of a learner and of those it holds, and how many more there may be."""
    if not isinstance(facts, dict):
        return f"{name} holds a learner that is a {type(facts).__name__}", most
    kind = facts.get("kind", "network")
    if not isinstance(kind, str) or kind not in FORMS:
        return _name_unknown(kind), most
    if not most or not deepest:
        return "it holds too many learners", most
    misfit = find_misfit(facts, FORMS[kind], name) or _find_misfit_of_sizes(facts)
    most -= 1
    for place, learner in enumerate(facts.get("learners", ()) if misfit is None else ()):
        misfit, most = _find_misfit_of_learner(learner, f"learner {place}", most, deepest - 1)
        if misfit is not None:
            break
    return misfit, most


def _name_unknown(kind: Any) -> str:
    try:
        FORMS[str(kind)[:60]]
    except KeyError as error:
        return str(error)
    return f"the kind of learner is a {type(kind).__name__}"


def _find_misfit_of_sizes(facts: Mapping[str, Any]) -> str | None:
    shape = facts.get("shape") or []
    if min(shape, default=1) < 1 or len(shape) > MOST_DIMENSIONS or math.prod(shape) > MOST_NUMBERS:
        return f"samples have {shape!r:.60} numbers"
    if len(facts.get("target", [0, 1])) != 2 or not facts.get("target", [0, 1])[1] > 0:
        return "the scale of targets is not a mean and a deviation"
    own = facts.get("own")
    if own is not None and facts.get("model", own) != own:
        return f"it was built by {own!r:.60} and by {facts['model']!r:.60}"
    weights, learners = facts.get("weights"), facts.get("learners")
    if weights is not None and (len(weights) != len(facts["learners"]) or min(weights, default=-1) < 0):
        return f"{len(weights)} weights of {len(facts['learners'])} learners"
    if learners is not None and weights is None and len(learners) != 1:
        return f"{len(learners)} learners of words"
    return None


def get_tensor(
    tensors: Mapping[str, torch.Tensor], name: str, shape: Shape, kind: torch.dtype, *, finite: bool = True
) -> torch.Tensor:
    """A tensor of this shape and type, of finite numbers."""
    tensor = tensors.get(name)
    if tensor is None or tuple(tensor.shape) != shape or tensor.dtype != kind:
        met = "missing" if tensor is None else f"{tensor.dtype} of shape {tuple(tensor.shape)}"
        raise DataError(f"the tensor {name!r:.60} is {met}, where {kind} of shape {shape} belongs; train again")
    if finite and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise DataError(f"the tensor {name!r:.60} has numbers that are not finite; train again")
    return tensor


def get_scaler(tensors: Mapping[str, torch.Tensor], shape: Shape) -> Scaler | None:
    """How features of samples of this shape are standardised; None if they are not. Of an image each channel may have
    one mean."""
    mean = tensors.get("input.mean")
    if mean is None:
        return None
    sides = tuple(mean.shape)
    if len(sides) > len(shape) or any(
        one not in (1, side) for one, side in zip(reversed(sides), reversed(shape), strict=False)
    ):
        raise DataError(f"the means have shape {sides} and samples {shape}; train again")
    kind = torch.float32 if mean.dtype == torch.float32 else torch.float64
    center, scale = (get_tensor(tensors, name, sides, kind).numpy() for name in ("input.mean", "input.scale"))
    if not (scale > 0).all():
        raise DataError("the scales of features are not all positive; train again")
    return Scaler(center, scale)
