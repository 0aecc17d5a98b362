"""What an import path ``module:name`` names: code of a user's own, which other processes find by it."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

from ally.errors import InputError
from ally.safe_path import SAFE_PATH


def import_named(path: str, setting: str, wanted: str, error: type[InputError] = InputError) -> Any:
    """The object at an import path. `wanted` is what errors call it: ``"module:builder"``."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as reason:
        raise error.about(
            setting,
            path,
            f"cannot be imported ({reason}); give {wanted}, with the module installed or on PYTHONPATH",
        ) from reason
    return found


def ensure_importable(path: str, setting: str, error: type[InputError] = InputError) -> None:
    """A process of its own finds the module, as the worker of a campaign must: without the folder of this program."""
    module = path.partition(":")[0]
    program = (
        "import importlib.util, sys; sys.path[:] = filter(None, sys.path); "
        "sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    )
    done = subprocess.run([sys.executable, SAFE_PATH, "-c", program, module], capture_output=True, check=False)
    if done.returncode:
        raise error.about(
            setting, path, f"can only be imported here; install {module!r}, or put its folder on PYTHONPATH"
        )
