"""Signs of how readable the package is: its size by folder, names, probes, imports of torch, longest functions.

    python benchmarks/structure.py [FOLDER OF A CHECKOUT] [--names]

Lines are those that hold code: no blank lines, comments or docstrings. `--names` lists the names behind the shares.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)
IRREGULAR = {
    *("built", "drawn", "found", "given", "held", "kept", "known", "left", "made", "met", "said", "seen", "sent"),
    *("shown", "spent", "taken", "told"),
}
NOT_PARTICIPLES = {"embed", "feed", "need", "seed", "speed"}
"""Verbs whose plain form looks like a participle."""


class PythonFile:
    """A source file: its lines of code and its tree."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.code_lines = self._find_code_lines()

    def _find_code_lines(self) -> set[int]:
        skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        skipped |= {tokenize.ENDMARKER, tokenize.ENCODING}
        lines: set[int] = set()
        with self.path.open("rb") as stream:
            for token in tokenize.tokenize(stream.readline):
                if token.type not in skipped:
                    lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            body = getattr(node, "body", [])
            for statement in body if isinstance(body, list) else []:
                if (
                    isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant)
                    and isinstance(statement.value.value, str)
                ):
                    lines -= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        return lines

    def count_lines(self, node: ast.AST) -> int:
        """Lines of code of a function, its first line and what it holds included."""
        first, last = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
        return sum(first <= line <= last for line in self.code_lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", nargs="?", type=Path, default=Path("."))
    parser.add_argument("--names", action="store_true", help="list the names behind the shares")
    options = parser.parse_args()
    root = options.checkout / "src" / "ally"
    files = [PythonFile(path) for path in sorted(root.rglob("*.py"))]
    print_sizes(root, files)
    print_names(files, options.names)
    print_signs(files)
    print_functions(root, files)


def print_sizes(root: Path, files: list[PythonFile]) -> None:
    by_folder: Counter[str] = Counter()
    for file in files:
        top = file.path.relative_to(root).parts[0]
        by_folder[top if not top.endswith(".py") else "(modules)"] += len(file.code_lines)
    first_screen = [
        path.name for path in root.iterdir() if not path.name.startswith("_") and path.suffix in ("", ".py")
    ]
    print(f"lines of code: {sum(by_folder.values())} in {len(files)} modules; names on the first screen: ", end="")
    print(len(first_screen))
    print("  " + ", ".join(f"{name} {lines}" for name, lines in by_folder.most_common()))


def print_names(files: list[PythonFile], listed: bool) -> None:
    functions = [node.name.strip("_") for file in files for node in ast.walk(file.tree) if isinstance(node, FUNCTIONS)]
    functions = [name for name in functions if name]
    classes = [node.name.strip("_") for file in files for node in ast.walk(file.tree) if isinstance(node, ast.ClassDef)]
    one_word = [name for name in functions if "_" not in name]
    participles = [name for name in one_word if is_participle(name)]
    short = [name for name in classes if len(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name)) == 1]
    print(f"one-word function names: {len(one_word) / len(functions):.0%} of {len(functions)}")
    print(f"bare participles: {len(participles)}")
    print(f"one-word class names: {len(short) / len(classes):.0%} of {len(classes)}")
    if listed:
        for title, names in (("participles", participles), ("functions", one_word), ("classes", short)):
            print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in Counter(names).most_common(200)))


def is_participle(name: str) -> bool:
    return name not in NOT_PARTICIPLES and (name in IRREGULAR or re.fullmatch(r"[a-z]+ed", name) is not None)


def print_signs(files: list[PythonFile]) -> None:
    probes = sum(count_probes(file.tree) for file in files)
    annotations = sum(isinstance(node, ast.Name) and node.id == "Any" for file in files for node in ast.walk(file.tree))
    torch = sum(any(name.split(".")[0] == "torch" for name in list_imports(file.tree)) for file in files)
    print(f"getattr and hasattr with a name: {probes}; Any: {annotations}; modules that import torch: {torch}")


def count_probes(tree: ast.AST) -> int:
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        and len(node.args) > 1
        and isinstance(node.args[1], ast.Constant)
        for node in ast.walk(tree)
    )


def list_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def print_functions(root: Path, files: list[PythonFile]) -> None:
    measured = [
        (file.count_lines(node), count_branches(node), f"{file.path.relative_to(root)}:{node.name}")
        for file in files
        for node in ast.walk(file.tree)
        if isinstance(node, FUNCTIONS)
    ]
    lengths = sorted(lines for lines, _, _ in measured)
    longest = sorted(measured, reverse=True)[:5]
    complex_ones = sum(branches > 10 for _, branches, _ in measured)
    most = lengths[int(0.95 * len(lengths))]
    print(f"lines of a function: median {statistics.median(lengths):g}, 95 % {most}, longest {longest[0][0]}", end="")
    print(f"; of complexity above 10: {complex_ones}")
    print("  longest: " + ", ".join(f"{name} {lines}" for lines, _, name in longest))


def count_branches(function: ast.AST) -> int:
    """Cyclomatic complexity without nested functions: one, and one for each branch."""
    total = 1
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            continue
        total += isinstance(node, BRANCHES)
        waiting.extend(ast.iter_child_nodes(node))
    return total


if __name__ == "__main__":
    main()
