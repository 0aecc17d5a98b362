"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_atomic(path: Path, content: bytes) -> None:
    """Under its name there is the old file or the new one, never a part, whoever else writes it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        os.replace(draft, path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
