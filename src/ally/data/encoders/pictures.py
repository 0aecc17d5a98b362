"""Pictures for an image encoder: read from the photo itself, small, then brought to the size the model wants."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ally.data.images.opening import open_picture
from ally.data.images.pixels import convert_pixels, find_orientation, is_deep, turn
from ally.errors import DataError
from ally.types import AnyArray

BICUBIC = 3
"""Pillow's number for it, as model folders write it."""
THREADS = 4
"""Photos that are decoded at the same time, at most."""
LARGEST_SIDE = 2048
"""Pixels of an edge that a model may ask for."""
LONGEST = 8
"""Times the shorter edge; models look at the middle square, or at the whole squeezed into one."""


def read_pictures(paths: Sequence[Path], side: int) -> list[AnyArray | DataError]:
    """Each (3, h, w) uint8, upright, or why it cannot be read. The shorter edge has at least ``2 · side`` pixels where
    the photo has so many, and less than twice that; of a photo longer than `LONGEST` times that it is the middle.

    A JPEG is decoded at a fraction of its size. Any other photo is decoded whole and made smaller at once, at most
    `THREADS` at a time; one above Pillow's limit of 89 million pixels counts as unreadable.
    """
    if len(paths) < 2:
        return [_read(path, side) for path in paths]
    with ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1)) as threads:
        return list(threads.map(lambda path: _read(path, side), paths))


def _read(path: Path, side: int) -> AnyArray | DataError:
    try:
        with open_picture(path, path.name, near=side) as photo:
            orientation = find_orientation(photo)
            factor = max(1, min(photo.size) // (2 * side))
            small = photo if factor == 1 or photo.mode in ("1", "P") or is_deep(photo) else photo.reduce(factor)
            pixels = turn(convert_pixels(_cut_middle(small)), orientation)
            return np.broadcast_to(pixels, (3, *pixels.shape[1:]))
    except DataError as error:
        return error


def _cut_middle(picture: Any) -> Any:
    """Without the ends of a strip that would be thousands of times as long as wide once it has the model's size."""
    width, height = picture.size
    most = LONGEST * min(width, height)
    if max(width, height) <= most:
        return picture
    left, top = max(0, width - most) // 2, max(0, height - most) // 2
    return picture.crop((left, top, left + min(width, most), top + min(height, most)))


def as_picture(sample: Any) -> AnyArray:
    """(3, h, w) uint8 of an array (1 or 3, h, w) of numbers from 0 to 255."""
    values = np.asarray(sample)
    if values.ndim != 3 or values.shape[0] not in (1, 3) or 0 in values.shape or values.dtype.kind not in "fiub":
        raise DataError(
            f"a picture of shape {values.shape} and dtype {values.dtype} cannot be encoded; give (1 or 3, "
            "height, width)"
        )
    if values.dtype != np.uint8:
        if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 255):
            raise DataError("a picture holds values that are not from 0 to 255; give pixels as bytes")
        values = np.asarray(values, np.float64).round().astype(np.uint8)
    return np.broadcast_to(values, (3, *values.shape[1:]))


@dataclass(frozen=True)
class Prepare:
    """Resize, cut out the middle, scale and normalise: what a model folder's preprocessor_config.json says."""

    size: tuple[int, int] | int
    """Height and width, or the shorter edge."""
    crop: tuple[int, int] | None = None
    resample: int = BICUBIC
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    deviation: tuple[float, ...] = (1.0, 1.0, 1.0)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Prepare:
        normal = config.get("do_normalize", True)
        given = config.get("size", 224)
        shortest = isinstance(given, Mapping) and "shortest_edge" in given
        edges = _read_size((given["shortest_edge"], given["shortest_edge"]) if shortest else given)
        size: tuple[int, int] | int = edges[0] if shortest else edges
        crop = None
        if config.get("do_center_crop") and config.get("do_resize", True):
            crop = _read_size(config.get("crop_size", edges))
        for edge in (*edges, *(crop or ())):
            if not 1 <= edge <= LARGEST_SIDE:
                raise DataError(
                    f"the picture size {edge} in preprocessor_config.json is out of range; use a model that reads "
                    f"pictures of 1 to {LARGEST_SIDE} pixels a side"
                )
        share = config.get("crop_pct")
        if share is not None and isinstance(size, int) and size < 384:
            size, crop = int(size / float(share)), (size, size)
        return cls(
            size,
            crop,
            int(config.get("resample", 2)),
            float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 1.0,
            tuple(config["image_mean"]) if normal and "image_mean" in config else cls.mean,
            tuple(config["image_std"]) if normal and "image_std" in config else cls.deviation,
        )

    @property
    def side(self) -> int:
        """The shorter edge after the resizing."""
        return self.size if isinstance(self.size, int) else min(self.size)

    def __call__(self, batch: Sequence[AnyArray]) -> AnyArray:
        """(n, 3, height, width) float32."""
        return np.stack([self._prepare(picture) for picture in batch])

    def _prepare(self, picture: AnyArray) -> AnyArray:
        from PIL import Image

        height, width = picture.shape[1:]
        if isinstance(self.size, int):
            short = min(height, width)
            # The longer edge is rounded down, as the models were trained.
            high, wide = (max(self.size, int(self.size * edge / short)) for edge in (height, width))
        else:
            high, wide = self.size
        image = Image.fromarray(np.ascontiguousarray(picture.transpose(1, 2, 0)))
        if (high, wide) != (height, width):
            image = image.resize((wide, high), self.resample)
        if self.crop is not None:
            # Black around it where it is smaller.
            top, left = (high - self.crop[0]) // 2, (wide - self.crop[1]) // 2
            image = image.crop((left, top, left + self.crop[1], top + self.crop[0]))
        values = np.asarray(image, np.float32).transpose(2, 0, 1)
        mean, deviation = (np.asarray(part, np.float32)[:, None, None] for part in (self.mean, self.deviation))
        return (values * np.float32(self.scale) - mean) / deviation

    def __str__(self) -> str:
        return f"{self.size} {self.crop} {self.resample} {self.scale:.6g} {self.mean} {self.deviation}"


def _read_size(value: Any) -> tuple[int, int]:
    """Height and width."""
    try:
        if isinstance(value, Mapping):
            return int(value["height"]), int(value["width"])
        # As old folders write it: one number for both edges.
        return (int(value), int(value)) if isinstance(value, (int, float)) else (int(value[0]), int(value[1]))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"the picture size {value!r} in preprocessor_config.json is not understood; use a model whose size is a "
            "number, a shortest_edge, or a height and width"
        ) from error
