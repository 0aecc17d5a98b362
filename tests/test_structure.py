"""The shape of the package, read from its source: names, imports, and what docs/design.md says of them."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ally

ROOT = Path(ally.__file__).parent
DESIGN = ROOT.parents[1] / "docs" / "design.md"


@cache
def trees() -> dict[str, ast.Module]:
    """By dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def test_no_two_classes_share_a_name():
    """Private ones and the bodies of the page included."""
    places = defaultdict(list)
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{module}:{node.lineno}")
    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def imported(node: ast.AST) -> Iterator[str]:
    """Modules of the package that run when the code does; imports within functions are no way out of a cycle."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names if name.name in trees())
        elif isinstance(child, ast.ImportFrom):
            for name in child.names:
                whole = f"{child.module}.{name.name}"
                yield from (module for module in (whole, child.module) if module in trees())
        yield from imported(child)


def test_no_modules_import_each_other():
    graph = {module: set(imported(tree)) - {module, "ally"} for module, tree in trees().items()}
    # A module runs its package first, and a package imports what it offers from its modules.
    within = {
        module: {other for other in found if not module.startswith(f"{other}.")} for module, found in graph.items()
    }
    assert len(list(TopologicalSorter(within).static_order())) == len(graph)


def walks() -> list[str]:
    """Names in the section of walks, a query's and a campaign's."""
    (section,) = re.findall(
        r"^## Two walk.*?(?=^## )", DESIGN.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.findall(r"`([\w.]+)", section)


@cache
def defined() -> set[str]:
    """Functions, classes and what classes have, each with the module or the class that it is in: ``Loop.ask``."""
    found = {f"ally.{name}" for name in ally.__all__}
    for module, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                members = {
                    getattr(part, "name", None) or getattr(getattr(part, "target", None), "id", "")
                    for part in node.body
                }
                found |= {node.name, *(f"{node.name}.{member}" for member in members)}
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found |= {node.name, *(f"{'.'.join(module.split('.')[-depth:])}.{node.name}" for depth in (1, 2))}
        offered = [
            name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names
        ]
        found |= {f"{module.split('.')[-1]}.{name}" for name in offered if module in packages()}
    return found


@cache
def packages() -> set[str]:
    return {".".join(path.parent.relative_to(ROOT.parent).parts) for path in ROOT.rglob("__init__.py")}


@pytest.mark.parametrize("name", sorted(set(walks())))
def test_what_the_walks_name_is_there(name):
    assert name in defined(), f"docs/design.md names {name}"


def test_files_that_the_design_names_are_there():
    paths = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if "__pycache__" not in path.parts]
    named = re.findall(r"`([\w/]+\.py|[\w/]+/)`", DESIGN.read_text(encoding="utf-8"))
    assert len(named) > 40
    lost = [name for name in named if not any(f"/{path}".endswith(f"/{name.rstrip('/')}") for path in paths)]
    assert [name for name in lost if not (DESIGN.parents[1] / name).exists()] == []
