"""JSON that is read as one piece: what its values will take is counted before they are made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ally.data.paths import ensure_readable, open_regular
from ally.data.size_limits import ensure_unpacked_fits
from ally.errors import DataError

MEMORY = {"{": 200, "[": 100, ",": 16, ":": 32}
"""Bytes that the value behind a mark takes, beside its letters: an empty object is written with two."""


def read_json(path: Path, encoding: str, advice: str) -> Any:
    """What a file holds. `advice` is the next step for whoever gave another kind of file."""
    ensure_readable(path)
    with open_regular(path) as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        ensure_unpacked_fits(path, sum(size * text.count(mark) for mark, size in MEMORY.items()), len(data))
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error}); {advice}") from error
