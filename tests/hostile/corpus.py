"""All hostile files: each module ``cases_*.py`` has the `CASES` of one kind of file.

    python tests/hostile/corpus.py FOLDER

writes every file into a folder of its own, with the commands that read it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from case import HostileCase

HERE = Path(__file__).parent


def collect_cases() -> list[HostileCase]:
    """The cases of all kinds; no two have one name."""
    modules = (importlib.import_module(path.stem) for path in sorted(HERE.glob("cases_*.py")))
    cases = [case for module in modules for case in module.CASES]
    names = [case.name for case in cases]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"more than one hostile case has the name {sorted(twice)[0]!r}")
    return cases


def main() -> None:
    folder = Path(sys.argv[1])
    for case in collect_cases():
        work = folder / case.name.replace(" ", "-")
        work.mkdir(parents=True)
        path = case.make(work)
        for words in case.commands:
            print("ally", *(word.format(path=path) for word in words))


if __name__ == "__main__":
    main()
