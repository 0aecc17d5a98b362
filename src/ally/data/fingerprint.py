"""The form of a fingerprint: what was learned from a source, as a campaign or a model file keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from ally.errors import DataError
from ally.json_form import find_misfit

ENCODED = "encoded"
"""The entry that says which encoder the samples are seen through."""
WHOLE_IDS = "whole ids"
"""The entry that says that the ids of the source are whole numbers."""
SMALLEST_SIDE, LARGEST_SIDE = 8, 1024
"""Sides of the images that a model sees, in pixels."""
MOST_NUMBERS = 2**27
"""Numbers of one sample: half a gigabyte."""


class LayoutForm(TypedDict):
    columns: list[str]
    id: str | None
    text: str | None
    image: str | None
    label: str | None
    learned: dict[str, Literal["number", "category"] | None]


class NumberColumnForm(TypedDict):
    name: str
    mean: float
    marked: bool


class CategoryColumnForm(TypedDict):
    name: str
    categories: list[str]
    marked: bool


class WordsForm(TypedDict):
    steps: str
    idf: str


class GapsForm(TypedDict):
    means: list[float]
    marked: list[int]


EncodedForm = TypedDict(
    "EncodedForm",
    {
        "name": str,
        "identity": str,
        "width": int,
        "words": NotRequired[bool],
        "folder": NotRequired[str],
        "in memory": NotRequired[bool],
    },
)
FingerprintForm = TypedDict(
    "FingerprintForm",
    {
        "version": int,
        "kind": Literal["images", "text", "table", "features"],
        "from": Literal["folder", "rows", "array"],
        "recursive": NotRequired[bool],
        "label": NotRequired[Literal["folder"] | None],
        "embeddings": NotRequired[list[int]],
        "size": NotRequired[int],
        "layout": NotRequired[LayoutForm],
        "decimal": NotRequired[Literal[",", "."]],
        "words": NotRequired[str | WordsForm],
        "encoder": NotRequired[list[NumberColumnForm | CategoryColumnForm]],
        "shape": NotRequired[list[int]],
        "numbered": NotRequired[bool],
        "gaps": NotRequired[GapsForm],
        "whole ids": NotRequired[bool],
        "encoded": NotRequired[EncodedForm],
    },
)
OwnFingerprintForm = TypedDict(
    "OwnFingerprintForm",
    {
        "version": int,
        "kind": str,
        "from": Literal["own"],
        "own": dict[str, Any],
        "recursive": NotRequired[bool],
        "label": NotRequired[Literal["folder"] | None],
        "embeddings": NotRequired[list[int]],
        "encoded": NotRequired[EncodedForm],
    },
)
"""What a kind of a user's own keeps; what is under ``"own"`` its code has to check."""
_NEEDED = {"folder": ("recursive", "label"), "rows": ("layout",), "array": ("shape", "numbered"), "own": ()}


def find_fingerprint_misfit(kept: Any) -> str | None:
    """What is wrong with a fingerprint, in words; None if `open_source` can rely on it."""
    own = isinstance(kept, dict) and kept.get("from") == "own"
    misfit = find_misfit(kept, OwnFingerprintForm if own else FingerprintForm, "the fingerprint")
    if misfit is not None:
        return misfit
    missing = next((name for name in _NEEDED[kept["from"]] if name not in kept), None)
    if missing is not None:
        return f"the fingerprint has no {missing!r}"
    side = find_side_misfit(kept)
    if side is not None:
        return side
    gaps, features = kept.get("gaps"), kept.get("shape", [])
    if gaps is not None and (len(gaps["means"]), 1) != (math.prod(features), len(features)):
        return f"the fingerprint has {len(gaps['means'])} means for features of shape {features!r:.60}"
    if gaps is not None and not all(0 <= number < len(gaps["means"]) for number in gaps["marked"]):
        return "the fingerprint marks features that the samples do not have"
    width = [kept[ENCODED]["width"]] if ENCODED in kept else []
    for shape in (kept.get("shape", []), kept.get("embeddings", []), width):
        if min(shape, default=1) < 1 or len(shape) > 8 or math.prod(shape) > MOST_NUMBERS:
            return f"the fingerprint has samples of {shape!r:.60} numbers"
    return None


def find_side_misfit(kept: Mapping[str, Any]) -> str | None:
    """What is wrong with the ``size`` of images in options or a fingerprint."""
    side = kept.get("size", SMALLEST_SIDE)
    return None if SMALLEST_SIDE <= side <= LARGEST_SIDE else f"the size of images is {side} pixels a side"


def check_fingerprint(known: Mapping[str, Any]) -> None:
    """Raises `DataError` unless a kept fingerprint can be relied on."""
    misfit = find_fingerprint_misfit(dict(known))
    if misfit is not None:
        raise DataError(f"{misfit}; the file is damaged: restore a backup, or create the campaign again")
