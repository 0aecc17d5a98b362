"""How the package is cut: length of files, modules with one importer, public members of the two largest classes.

python benchmarks/structure.py [FOLDER OF A CHECKOUT]
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import defaultdict
from pathlib import Path


def main(checkout: Path) -> None:
    source = checkout / "src"
    paths = {name_of(path.relative_to(source)): path for path in source.rglob("*.py")}
    trees = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in paths.items()}
    importers = defaultdict(set)
    for module, tree in trees.items():
        for node in ast.walk(tree):
            for imported in imports(node):
                found = imported if imported in trees else imported.rpartition(".")[0]
                if found != module:
                    importers[found].add(module)
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in paths.values()]
    print(f"modules: {len(paths)}, with one importer: {sum(len(importers[module]) == 1 for module in trees)}")
    print(f"lines of a file: median {statistics.median(lengths):g}, longest {max(lengths)}")
    for module, name in (("ally.campaign.campaign", "Campaign"), ("ally.store.base", "Store")):
        members = next(node for node in trees[module].body if isinstance(node, ast.ClassDef) and node.name == name).body
        named = {getattr(part, "name", None) or getattr(getattr(part, "target", None), "id", "_") for part in members}
        print(f"public members of {name}: {sum(not member.startswith('_') for member in named)}")


def name_of(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{name.name}" for name in node.names]
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
