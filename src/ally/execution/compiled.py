"""Loops compiled on their first call, and cached on disk where possible."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
NAMES_CODE = ("NUMBA_CACHE_DIR", "NUMBA_CACHE_LOCATOR_CLASSES")
"""Settings of numba that decide which compiled code is loaded."""


def compiled(*freedoms: str, **options: Any) -> Callable[[F], F]:
    """A decorator for loops that release the interpreter's lock; `freedoms` are LLVM's fast-math flags, such as
    "reassoc"."""

    def decorate(function: F) -> F:
        numba = _import_numba()
        settings: dict[str, Any] = {"nogil": True, "fastmath": set(freedoms), **options}
        try:
            return cast(F, numba.njit(cache=True, **settings)(function))
        except RuntimeError:
            return cast(F, numba.njit(**settings)(function))

    return decorate


def _import_numba() -> ModuleType:
    """Numba reads ``.numba_config.yaml`` in the current folder, which may be somebody else's, and a cache that it names
    could hold any code. What the environment says goes before that file."""
    for name in NAMES_CODE:
        os.environ.setdefault(name, "")
    import numba

    return numba
