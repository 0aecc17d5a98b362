"""Loops that are compiled when first called, and kept on disk where there is a place for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*freedoms: str, **options: Any) -> Callable[[F], F]:
    """A decorator for loops that do not hold the interpreter's lock; `freedoms` are those of LLVM with sums, such as
    "reassoc"."""

    def decorate(function: F) -> F:
        settings: dict[str, Any] = {"nogil": True, "fastmath": set(freedoms), **options}
        try:
            return cast(F, numba.njit(cache=True, **settings)(function))
        except RuntimeError:
            return cast(F, numba.njit(**settings)(function))

    return decorate
