"""Arguments under the names they had in 0.1: a call by one of them warns and sets the argument of today. Goes with
0.3."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ally.errors import InputError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def renamed_arguments(**names: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Lets a function be called by former names of its arguments: ``@renamed_arguments(target="label")``."""

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def call(*args: Arguments.args, **arguments: Arguments.kwargs) -> Result:
            for old in names.keys() & arguments.keys():
                new = names[old]
                if new in arguments:
                    raise InputError(f"{old}= is {new}= now, and both are passed; leave {old}= out")
                warnings.warn(f"{old}= is {new}= now; the old name goes with 0.3", DeprecationWarning, stacklevel=2)
                arguments[new] = arguments.pop(old)
            return function(*args, **arguments)

        return call

    return decorate
