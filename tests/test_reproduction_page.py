"""The page about the paper's method names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")


def test_every_choice_names_its_test():
    table = PAGE.split("## The paper's method, choice by choice")[1].split("###")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 15
    known = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for row in rows:
        assert len(row) == 6, row
        named = re.findall(r"`(test_\w+)`", row[5])
        assert named, row
        assert set(named) <= known, row
