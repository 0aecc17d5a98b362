"""What a page shows for a sample (an image's size, a text, columns) as plain values, or why it cannot be shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ally.campaign.values import Value
from ally.data import Samples
from ally.data.images.shown import ImageFrame, Pictures
from ally.errors import DataError, IdError

LONGEST = 1_000_000
"""The most characters of a text to show."""
LONGEST_CELL = 20_000


@dataclass(frozen=True)
class Content(Value):
    """`image` is the size of a picture, upright. `problem` says why there is nothing to see; `cut`, how many characters
    of the text are left out."""

    id: str
    kind: str
    image: ImageFrame | None = None
    text: str | None = None
    cut: int = 0
    columns: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None


def content(samples: Samples, pictures: Pictures, id: str) -> Content:
    """An unreadable sample raises no error: the annotator skips it."""
    try:
        shown = samples.show(id)
    except (DataError, IdError) as error:
        return Content(id, samples.kind.name, problem=str(error))
    columns = {str(name): _plain(value) for name, value in shown.columns.items()}
    text = shown.text
    cut = 0 if text is None else max(0, len(text) - LONGEST)
    image = shown.picture if shown.path is None else shown.path
    if image is None:
        return Content(id, samples.kind.name, None, None if text is None else text[:LONGEST], cut, columns)
    try:
        frame = pictures.frame(image)
    except DataError as error:
        return Content(id, samples.kind.name, None, text, cut, columns, str(error))
    return Content(id, samples.kind.name, frame, text, cut, columns)


def _plain(value: Any) -> Any:
    """As JSON has it; what it does not have is a text."""
    if hasattr(value, "item") and getattr(value, "size", 2) == 1:
        value = value.item()
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = str(value)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
