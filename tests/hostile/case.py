"""One hostile file: how it is made, what must not happen, and what `ally` answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Words = tuple[str, ...]
"""A command after ``ally``; ``{path}`` stands for the file."""


@dataclass(frozen=True)
class HostileCase:
    """`answer` is a pattern of what each command prints, as a refusal or as its result.

    The maker writes into the folder it is given, and returns the file that a victim opens. What it tries to reach lies
    in the folder ``elsewhere`` beside that one.
    """

    name: str
    make: Callable[[Path], Path]
    answer: str
    commands: tuple[Words, ...]
    short: bool = False
    """Whether `make test` sends it through its first command; `make hostile` sends every case through all of them."""

    def __str__(self) -> str:
        return self.name
