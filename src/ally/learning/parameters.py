"""Settings of a scikit-learn estimator out of a file: plain values that its own constraints allow, and nothing else.

No path, function, memory or random generator is taken over, and how many processes work is said here, not by a file.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError, Options, validate_parameter_constraints

from ally.errors import DataError
from ally.learning.archive import StoredObject, Stream

NEUTRAL = ("n_jobs", "verbose", "warm_start")
"""These are as usual, whatever a file says."""
CONTENT = {"input": "content"}
"""Texts are texts, never names of files."""
Rebuild = Callable[[StoredObject], Any]


def read_parameters(kind: type, state: Any, rebuild: Rebuild) -> dict[str, Any]:
    """The settings of `kind` in the state of a record; `rebuild` makes an estimator in a setting."""
    if not isinstance(state, dict):
        raise DataError(f"the settings of a {kind.__name__} are missing in the file; train it again")
    defaults = {
        name: one.default for name, one in inspect.signature(kind).parameters.items() if one.kind != one.VAR_KEYWORD
    }
    constraints: Mapping[str, Any] = getattr(kind, "_parameter_constraints", {})
    settings = {}
    for name in defaults.keys() & state.keys():
        value = defaults[name] if name in NEUTRAL else state[name]
        if name == "memory" and value is not None:
            raise DataError(f"a {kind.__name__} in the file has a memory, which loads pickles; choose the model again")
        settings[name] = rebuild_value(value, rebuild)
        if isinstance(value, str) and not _may_be(value, name, constraints.get(name), defaults[name]):
            raise DataError(f"a {kind.__name__} in the file has {name}={value!r:.60}, which is not allowed there")
    try:
        validate_parameter_constraints(constraints, settings, kind.__name__)
    except InvalidParameterError as error:
        raise DataError(f"{error!s:.300} The model in the file is refused; train it again") from error
    return settings


def _may_be(value: str, name: str, constraints: Any, default: Any) -> bool:
    """A text may be one of those that are listed, or what it is anyway: a pattern of another's could run for ever."""
    if name in CONTENT:
        return value == CONTENT[name]
    listed = constraints if isinstance(constraints, list) else []
    return value == default or any(isinstance(one, Options) and value in one.options for one in listed)


def rebuild_value(value: Any, rebuild: Rebuild) -> Any:
    """A plain value, with estimators in it made by `rebuild`; a random generator becomes None."""
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value)(rebuild_value(one, rebuild) for one in value)
    if isinstance(value, dict):
        return {name: rebuild_value(one, rebuild) for name, one in value.items()}
    if isinstance(value, np.ndarray):
        return value if value.dtype != object else _rebuild_objects(value, rebuild)
    if isinstance(value, type) and issubclass(value, np.generic):
        return value
    if isinstance(value, StoredObject):
        return rebuild(value)
    if isinstance(value, Stream):
        return None
    raise DataError(f"a setting in the file is a {type(value).__name__}; train the model again")


def _rebuild_objects(values: Any, rebuild: Rebuild) -> Any:
    filled = np.empty_like(values)
    for place, one in np.ndenumerate(values):
        filled[place] = rebuild_value(one, rebuild)
    return filled
