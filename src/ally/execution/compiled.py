"""Loops compiled on their first call, and cached on disk where possible."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
CONFIG = ".numba_config.yaml"
"""Settings that numba reads from the current folder when it is imported, and again before it compiles."""


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
    """Without the settings in the current folder, which may be somebody else's: a cache of code that they name could
    hold any code. The environment has its say."""
    with _hide_yaml() if Path(CONFIG).exists() else nullcontext():
        import numba
    settings: Any = numba.core.config
    if settings._config_fname != os.devnull:
        settings._config_fname = os.devnull
        settings.reload_config()  # takes back what was read before, where somebody else imported it
    return numba


@contextmanager
def _hide_yaml() -> Iterator[None]:
    """Numba reads no settings where it finds no reader of YAML."""
    reader = sys.modules.get("yaml")
    sys.modules["yaml"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        del sys.modules["yaml"]
        if reader is not None:
            sys.modules["yaml"] = reader
