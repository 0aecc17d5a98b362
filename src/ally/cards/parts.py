"""What the parts of a strategy say of themselves: their summary, their parameters, and how to write them down."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """A setting of a part. `about` is what the docstring says of it, "" if nothing."""

    name: str
    value: str
    default: str
    about: str


def summary_of(part: Any) -> str:
    """The first paragraph of the docstring of a part."""
    return _plain((inspect.getdoc(type(part)) or "").split("\n\n")[0])


def parameters_of(part: Any) -> tuple[Parameter, ...]:
    """Every field of a part, with its value here and the default of its class."""
    return tuple(
        Parameter(
            item.name, source_of(getattr(part, item.name)), source_of(_default(item)), _about(type(part), item.name)
        )
        for item in fields(part)
    )


def source_of(part: Any) -> str:
    """An expression that makes the part, without what is the default anyway."""
    if isinstance(part, str):
        return json.dumps(part, ensure_ascii=False)
    if not is_dataclass(part) or isinstance(part, type):
        return repr(part)
    given = [
        (item.name, getattr(part, item.name)) for item in fields(part) if getattr(part, item.name) != _default(item)
    ]
    return f"{type(part).__name__}({', '.join(f'{name}={source_of(value)}' for name, value in given)})"


def imports_of(*parts: Any) -> list[str]:
    """Import lines for what `source_of` names, from the package that exports it where one does."""
    found: dict[str, set[str]] = {}
    for kind in {kind for part in parts for kind in _kinds(part)}:
        package = kind.__module__.rpartition(".")[0]
        home = package if getattr(importlib.import_module(package), kind.__name__, None) is kind else kind.__module__
        found.setdefault(home, set()).add(kind.__name__)
    return [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(found.items())]


def _kinds(part: Any) -> set[type]:
    """Classes that appear in the source of a part."""
    if not is_dataclass(part) or isinstance(part, type):
        return set()
    inner = (getattr(part, item.name) for item in fields(part) if getattr(part, item.name) != _default(item))
    return {type(part)}.union(*(_kinds(value) for value in inner))


def _default(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _about(kind: type, name: str) -> str:
    """What the docstring of the class, or of the class it inherits the field from, says under ``Attributes:``."""
    for owner in kind.__mro__:
        found = _attributes(owner).get(name)
        if found:
            return found
    return ""


def _attributes(kind: type) -> dict[str, str]:
    """``name: text`` or ``name, other: text``, with indented lines that continue it."""
    _, _, section = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \S)", section.split("\n\n")[0]):
        names, colon, text = entry.partition(":")
        if colon:
            found |= {name.strip(): _plain(text) for name in names.split(",")}
    return found


def _plain(text: str) -> str:
    """One line, with the backticks and formulas of Markdown."""
    return re.sub(r":math:`([^`]*)`", r"$`\1`$", " ".join(text.split()).replace("``", "`"))
