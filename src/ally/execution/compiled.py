"""Loops compiled on their first call, and cached on disk where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*freedoms: str, **options: Any) -> Callable[[F], F]:
    """A decorator for loops that release the interpreter's lock; `freedoms` are LLVM's fast-math flags, such as
    "reassoc"."""

    def decorate(function: F) -> F:
        settings: dict[str, Any] = {"nogil": True, "fastmath": set(freedoms), **options}
        try:
            return cast(F, numba.njit(cache=True, **settings)(function))
        except RuntimeError:
            return cast(F, numba.njit(**settings)(function))

    return decorate
