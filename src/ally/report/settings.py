"""What a grid says about itself: ``settings.json`` beside its results."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ally.errors import InputError


@dataclass(frozen=True)
class Settings:
    """All parts may be left out."""

    title: str = "Which strategy needs the fewest labels?"
    question: str = ""
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    """Name of the strategy (or of one series) that others are compared with; None for random, where it was run."""
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    substitute: str | None = None
    """What was used in place of what: told at the top of the page."""


def read_settings(folder: Path) -> Settings:
    """``folder/settings.json``; defaults where the file or a key is missing, an error where a value is of the wrong
    kind."""
    file = folder / "settings.json"
    if not file.is_file():
        return Settings()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not JSON: {error}; mend or remove it") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{file} holds a {type(found).__name__}; it must be an object with keys such as title and notes"
        )
    known = {item.name for item in fields(Settings)}
    return Settings(
        **{name: _checked(file, name, value) for name, value in found.items() if name in known and value is not None}
    )


def _checked(file: Path, name: str, value: Any) -> Any:
    if name in ("settings", "environment"):
        if isinstance(value, dict):
            return {str(key): entry if isinstance(entry, str) else json.dumps(entry) for key, entry in value.items()}
        raise InputError(f"{file}: {name} is {value!r}; it must be an object of names and texts")
    if name == "notes":
        if isinstance(value, list) and all(isinstance(note, str) for note in value):
            return tuple(value)
        raise InputError(f"{file}: notes is {value!r}; it must be a list of texts")
    if not isinstance(value, str):
        raise InputError(f"{file}: {name} is {value!r}; it must be a text")
    return value
