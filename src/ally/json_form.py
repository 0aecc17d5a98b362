"""Checks plain JSON values against the types they must have, before anything relies on them."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from ally.types import find_text_fault

SHOWN = 60


def find_misfit(value: Any, form: Any, name: str = "it") -> str | None:
    """What is wrong with a value read from JSON, in words; None if it has the form.

    A form is a type, None, `Literal`, a union, ``list[...]``, ``dict[str, ...]``, or a `TypedDict` or mapping from keys
    to forms, which lists every key there may be. Numbers are finite, and a truth value is no number. A text is valid
    Unicode without NUL; `Path` stands for a text that names a file, which need not be valid Unicode on every system.
    """
    origin = get_origin(form)
    if form is Any:
        return None
    if origin in (Union, types.UnionType):
        return _find_misfit_of_union(value, get_args(form), name)
    if origin is Literal:
        fits = any(value == one and type(value) is type(one) for one in get_args(form))
    elif is_typeddict(form) or isinstance(form, Mapping):
        return _find_misfit_of_keys(value, form, name) if isinstance(value, dict) else _describe(value, name)
    elif origin is list and isinstance(value, list):
        (kind,) = get_args(form)
        return _first(find_misfit(one, kind, f"{name}[{place}]") for place, one in enumerate(value))
    elif origin is dict and isinstance(value, dict) and all(_fits_plainly(key, str) for key in value):
        kind = get_args(form)[1]
        return _first(find_misfit(one, kind, f"{name}[{key!r:.60}]") for key, one in value.items())
    else:
        fits = origin is None and _fits_plainly(value, form)
    return None if fits else _describe(value, name)


def _find_misfit_of_union(value: Any, forms: tuple[Any, ...], name: str) -> str | None:
    misfits = [find_misfit(value, form, name) for form in forms]
    if None in misfits:
        return None
    # What is wrong inside a list or dictionary says more than that none of the forms fits.
    inside = (one for form, one in zip(forms, misfits, strict=True) if get_origin(form) is type(value))
    return next(inside, _describe(value, name))


def _fits_plainly(value: Any, form: Any) -> bool:
    if form is None or form is types.NoneType:
        return value is None
    if form is bool or isinstance(value, bool):
        return form is bool and isinstance(value, bool)
    if form is float:
        return isinstance(value, (int, float)) and -(2**1023) < value < 2**1023 and math.isfinite(value)
    if form is int:
        return isinstance(value, int) and -(2**63) < value < 2**63
    if form is Path:
        return isinstance(value, str) and "\x00" not in value
    return isinstance(value, form) and (not isinstance(value, str) or find_text_fault(value) is None)


def _find_misfit_of_keys(value: dict[Any, Any], form: Any, name: str) -> str | None:
    kinds: Mapping[str, Any] = form if isinstance(form, Mapping) else get_type_hints(form, include_extras=True)
    unknown = next((key for key in value if key not in kinds), None)
    if unknown is not None:
        return f"{name} has the unknown entry {unknown!r:.60}"
    for key, kind in kinds.items():
        origin: Any = get_origin(kind)
        if key not in value:
            if origin is not NotRequired:
                return f"{name} has no {key!r}"
            continue
        misfit = find_misfit(value[key], get_args(kind)[0] if origin is NotRequired else kind, f"{name}[{key!r}]")
        if misfit is not None:
            return misfit
    return None


def _first(misfits: Any) -> str | None:
    return next((misfit for misfit in misfits if misfit is not None), None)


def _describe(value: Any, name: str) -> str:
    if isinstance(value, (list, dict)):
        return f"{name} is a {type(value).__name__} of {len(value)}"
    text = repr(value) if not isinstance(value, int) or abs(value) < 2**63 else "a number that is too large"
    return f"{name} is {text if len(text) <= SHOWN else text[:SHOWN] + '…'}"
