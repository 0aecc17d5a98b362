"""Vectors of many samples: in batches, each made once, kept as soon as it is made.

    from ally.encoders import encode, open_encoder

    X = encode(open_encoder("all-MiniLM-L6-v2"), texts)                    # (n, 384) float32
    X = encode(open_encoder("efficientnet-lite0"), paths, cache="vectors/")  # photos, or arrays (n, 3, h, w) of bytes

With `cache` a second call reads the vectors from disk, and a call that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ally.checks import check_count
from ally.encoders.base import Encoder, Vectors, checked
from ally.encoders.cache import Keys, VectorCache, content_key, keys_of
from ally.encoders.pictures import as_picture, read_picture
from ally.errors import DataError, InputError
from ally.types import AnyArray, Progress

BATCH = 32
WINDOW = 16
"""Batches that are looked at together: texts of like length are then encoded together."""
Report: TypeAlias = Callable[[int, str], None]
"""Called with the position of a sample that cannot be read, and the reason."""


def encode(
    encoder: Encoder,
    samples: Sequence[Any] | AnyArray,
    *,
    cache: str | Path | None = None,
    progress: Progress | None = None,
    batch: int = BATCH,
    report: Report | None = None,
) -> Vectors:
    """Vectors (n, width) float32 of samples: texts, or photos as paths or arrays ``(3, h, w)`` of bytes.

    Args:
        encoder: see `ally.encoders.open_encoder`.
        samples: a sequence; a memory map of pictures ``(n, 1 or 3, h, w)`` is read as it is needed.
        cache: a folder for the vectors. Without it they are made anew each time.
        progress: called with ("encoding", done, n).
        batch: samples that the encoder is given at a time.
        report: called for a sample that cannot be read, which then gets zeros; without it that is an error.
    """
    size = check_count("batch", batch)
    vectors = np.zeros((len(samples), encoder.width), np.float32)
    kept = None if cache is None else VectorCache(Path(cache), encoder.identity, encoder.width)
    try:
        for start in range(0, len(samples), WINDOW * size):
            window = range(start, min(start + WINDOW * size, len(samples)))
            loaded = load(encoder, {place: samples[place] for place in window}, report)
            places = list(loaded)

            def named(at: int, places: list[int] = places) -> str:
                return f"sample {places[at]}"

            if kept is None:
                for some, made in in_batches(encoder, list(loaded.values()), size, named):
                    vectors[[places[at] for at in some]] = made
            else:
                keys = keys_of([key_of(sample) for sample in loaded.values()])
                fill(kept, encoder, keys, list(loaded.values()), size, named)
                vectors[places] = kept.read(kept.find(keys))
            if progress is not None:
                progress("encoding", window.stop, len(samples))
    finally:
        if kept is not None:
            kept.close()
    return vectors


def load(encoder: Encoder, samples: dict[int, Any], report: Report | None) -> dict[int, Any]:
    """What the encoder is given for each sample; those that cannot be read are reported and left out."""
    loaded = {}
    for place, sample in samples.items():
        try:
            loaded[place] = loaded_sample(encoder, sample)
        except DataError as error:
            if report is None:
                raise InputError(f"sample {place} cannot be encoded: {error}") from error
            report(place, str(error))
    return loaded


def loaded_sample(encoder: Encoder, sample: Any) -> Any:
    """A text, or a picture (3, h, w) uint8; raises `DataError` if it is neither."""
    if encoder.kind == "text":
        if not isinstance(sample, str):
            raise DataError(f"it is {sample!r:.60}, not a text; give texts to a text encoder")
        if not sample.strip():
            raise DataError("the text is empty; write something, or leave it out")
        return sample
    if isinstance(sample, (str, Path)):
        return read_picture(Path(sample), getattr(encoder, "side", 224))
    return as_picture(sample)


def key_of(loaded: Any) -> int:
    """Of a text, or of the pixels and shape of a picture."""
    if isinstance(loaded, str):
        return content_key(loaded.encode("utf-8", "surrogatepass"))
    return content_key(repr(loaded.shape).encode() + np.ascontiguousarray(loaded).tobytes())


def fill(
    kept: VectorCache, encoder: Encoder, keys: Keys, loaded: Sequence[Any], size: int, name: Callable[[int], str]
) -> None:
    """Makes the vectors that are not kept yet, each content once, and keeps every batch as soon as it is made."""
    absent = np.flatnonzero(kept.find(keys) < 0)
    wanted = absent[np.sort(np.unique(keys[absent], return_index=True)[1])].tolist()
    for some, made in in_batches(encoder, [loaded[at] for at in wanted], size, lambda at: name(wanted[at])):
        kept.add(keys[[wanted[at] for at in some]], made)


def in_batches(
    encoder: Encoder, loaded: Sequence[Any], size: int, name: Callable[[int], str]
) -> Iterator[tuple[list[int], Vectors]]:
    """Positions in `loaded` and their vectors, a batch at a time; short texts first, as a batch is as long as its
    longest."""
    order = sorted(range(len(loaded)), key=lambda at: len(loaded[at])) if encoder.kind == "text" else range(len(loaded))
    width = encoder.width
    for start in range(0, len(order), size):
        some = list(order[start : start + size])
        given = encoder.encode([loaded[at] for at in some])
        yield some, checked(encoder, given, len(some), width, lambda row, some=some: name(some[row]))  # type: ignore[misc]
