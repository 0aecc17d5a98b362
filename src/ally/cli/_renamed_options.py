"""Options under the names they had in 0.1: one of them prints a note and stands for the option of today. Goes with
0.3."""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperCommand

from ally.errors import InputError

RENAMED = {
    "bench": {"--target": "--label", "--candidates": "--look-at"},
    "generate": {"--target": "--label", "--samples": "--n"},
    "import": {"--label-column": "--label"},
    "new": {"--regression": "--task regression", "--validate": "--validation"},
    "report": {"--smooth": "--smoothing"},
    "tell": {"--label-column": "--label"},
}
"""By command, its former options and how each is written today."""


class Command(TyperCommand):
    """A command that also takes its former options, which its help does not list."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, replace_former_options(args, RENAMED.get(self.name or "", {})))


def replace_former_options(words: list[str], names: dict[str, str]) -> list[str]:
    """The words of a command line with today's options, up to ``--``. Raises if an option is there by both names."""
    end = words.index("--") if "--" in words else len(words)
    options = {word.partition("=")[0] for word in words[:end]}
    for old in [old for old in names if old in options]:
        new = names[old].split()[0]
        if new in options:
            raise InputError(f"{old} is {names[old]} now, and both are given; leave {old} out")
        print(f"note: {old} is {names[old]} now; the old name goes with 0.3", file=sys.stderr)
    return [part for word in words[:end] for part in _replace_name(word, names)] + words[end:]


def _replace_name(word: str, names: dict[str, str]) -> list[str]:
    """``--target=x`` as ``--label=x``, and ``--regression`` as ``--task regression``."""
    name, equals, value = word.partition("=")
    if name not in names:
        return [word]
    *before, last = names[name].split()
    return [*before, f"{last}{equals}{value}"]
