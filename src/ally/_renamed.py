"""Modules under the names they had in 0.1: importing one warns and gives the module of today. Goes with 0.3."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MODULES = {
    "sources.rows": "data.tables",
    "sources": "data",
    "datasets": "data.catalogue",
    "encoders": "data.encoders",
    "pool": "data",
    "task_rule": "data.task_rule",
}
"""Former names below `ally`, and those of today; longer names first."""


def find_new_name(fullname: str) -> str | None:
    """Today's name of a module of 0.1; None if it was not renamed."""
    for old, new in MODULES.items():
        if fullname == f"ally.{old}" or fullname.startswith(f"ally.{old}."):
            return f"ally.{new}{fullname.removeprefix(f'ally.{old}')}"
    return None


class _RenamedModules(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if find_new_name(fullname) is None else ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = find_new_name(spec.name)
        assert new is not None
        warnings.warn(f"{spec.name} is {new} now; the old name goes with 0.3", DeprecationWarning, stacklevel=2)
        module = importlib.import_module(new)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module of today is loaded already; importing it by its old name replaced its spec, which is put back."""
        if module.__spec__ is not None and module.__spec__.loader is self:
            module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Lets `import ally.sources` find `ally.data`."""
    if not any(isinstance(finder, _RenamedModules) for finder in sys.meta_path):
        sys.meta_path.append(_RenamedModules())
