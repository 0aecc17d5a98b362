"""One name, one thing: no two classes of the package share a name, private ones and the bodies of the page included."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import ally

ROOT = Path(ally.__file__).parent


def test_no_two_classes_share_a_name():
    places = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
