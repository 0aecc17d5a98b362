"""Vectors of many samples, computed in batches, each once, and cached immediately.

    from ally.data.encoders import encode, open_encoder

    X = encode(open_encoder("all-MiniLM-L6-v2"), texts)                      # (n, 384) float32
    X = encode(open_encoder("efficientnet-lite0"), paths, cache="vectors/")  # photos, or arrays (n, 3, h, w) of bytes

With `cache` a second call reads the vectors from disk, and an interrupted call continues where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ally.checks import check_count
from ally.data.encoders.base import Encoder, EncoderKind, Vectors, checked
from ally.data.encoders.cache import Stamps, VectorCache, content_key, keys_of
from ally.data.encoders.pictures import as_picture, read_pictures
from ally.data.paths import os_reason
from ally.errors import DataError, InputError
from ally.types import AnyArray, IntArray, Progress

BATCH = 32
SORTED = 16
"""Batches of texts that are looked at together, so that texts of like length are encoded together."""
Report: TypeAlias = Callable[[int, str], None]
"""Called with the position of a sample that cannot be read, and the reason."""
Named: TypeAlias = Callable[[int], str]
"""What errors call the sample at a position."""


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
        encoder: see `ally.data.encoders.open_encoder`.
        samples: a sequence; a memory map of pictures ``(n, 1 or 3, h, w)`` is read as it is needed.
        cache: a folder for the vectors. Without it they are recomputed each time.
        progress: called with ("encoding", done, n).
        batch: samples that the encoder is given at a time.
        report: called for a sample that cannot be read, which then gets zeros; without it that is an error.
    """
    check_count("batch", batch)
    named = "sample {}".format

    def refuse(place: int, why: str) -> None:
        raise InputError(f"sample {place} cannot be encoded: {why}")

    vectors = np.zeros((len(samples), encoder.width), np.float32)
    kept = None if cache is None else Kept(Path(cache), encoder.kind, encoder.identity, encoder.width)
    for window in windows(len(samples), encoder.kind, batch):
        some = {place: samples[place] for place in window}
        if kept is not None:
            rows = kept.rows(lambda: encoder, some, batch, report or refuse, named)
            vectors[window.start : window.stop] = kept.read(rows)
        else:
            loaded = _loaded(encoder, some, report or refuse)
            for places, made in _in_batches(encoder, loaded, batch, named):
                vectors[places] = made
        if progress is not None:
            progress("encoding", window.stop, len(samples))
    if kept is not None:
        kept.close()
    return vectors


def windows(n: int, kind: EncoderKind, batch: int = BATCH) -> Iterator[range]:
    """Positions that are worked on together; of pictures no more than a batch is in memory."""
    size = batch * SORTED if kind == "text" else batch
    for start in range(0, n, size):
        yield range(start, min(start + size, n))


class Kept:
    """The vectors of one encoder in a cache folder; those that are missing are made."""

    def __init__(self, folder: Path, kind: EncoderKind, identity: str, width: int) -> None:
        self._kind = kind
        self._vectors = VectorCache(folder, identity, width)
        self._stamps = Stamps(folder) if kind == "image" else None

    def rows(
        self, encoder: Callable[[], Encoder], samples: dict[int, Any], batch: int, report: Report, named: Named
    ) -> IntArray:
        """(n,) numbers of the samples' vectors, for `read`; -1 for a sample that cannot be read, which is reported.

        `samples` are few enough to be in memory at once, by position. `encoder` is called only if a vector is missing.
        """
        keys = self._keys(samples, report)
        rows = self._find(keys)
        absent = {place: samples[place] for place, row in rows.items() if row < 0}
        if absent:
            self._make(absent, keys, encoder(), batch, report, named)
            rows = self._find(keys)
        return np.asarray([rows.get(place, -1) for place in samples], np.int64)

    def _find(self, keys: dict[int, int]) -> dict[int, int]:
        return dict(zip(keys, self._vectors.find(keys_of([*keys.values()])).tolist(), strict=True))

    def read(self, rows: IntArray) -> Vectors:
        """(n, width); zeros for -1."""
        return self._vectors.read(rows)

    def close(self) -> None:
        self._vectors.close()
        if self._stamps is not None:
            self._stamps.close()

    def _make(
        self, samples: dict[int, Any], keys: dict[int, int], encoder: Encoder, batch: int, report: Report, named: Named
    ) -> None:
        """Each content once, though several samples may have it."""
        first = {keys[place]: place for place in reversed(samples)}
        loaded = _loaded(encoder, {place: samples[place] for place in sorted(first.values())}, report)
        for place in samples:
            if first[keys[place]] not in loaded and first[keys[place]] != place:
                report(place, "it has the same content as another sample that cannot be read")
        for places, made in _in_batches(encoder, loaded, batch, named):
            self._vectors.add(keys_of([keys[place] for place in places]), made)

    def _keys(self, samples: dict[int, Any], report: Report) -> dict[int, int]:
        """What each sample's vector is kept under: its content, whatever it is called."""
        paths: dict[int, Path] = {}
        keys: dict[int, int] = {}
        for place, sample in samples.items():
            if self._stamps is not None and isinstance(sample, (str, Path)):
                paths[place] = Path(sample)
                continue
            try:
                keys[place] = _content_key(sample, self._kind)
            except DataError as error:
                report(place, str(error))
        if self._stamps is not None and paths:
            keys |= _file_keys(paths, self._stamps, report)
        return keys


def _content_key(sample: Any, kind: EncoderKind) -> int:
    if kind == "text":
        return content_key(_text(sample).encode("utf-8", "surrogatepass"))
    picture = as_picture(sample)
    return content_key(repr(picture.shape).encode() + np.ascontiguousarray(picture).tobytes())


def _file_keys(paths: dict[int, Path], stamps: Stamps, report: Report) -> dict[int, int]:
    """The keys of the files' content; a file whose size and times are known is not read."""
    states: dict[int, tuple[int, int]] = {}
    for place, path in paths.items():
        try:
            state = path.stat()
        except OSError as error:
            report(place, f"the image cannot be read ({os_reason(error)})")
            continue
        stamp = repr((state.st_size, state.st_mtime_ns, state.st_ctime_ns)).encode()
        states[place] = content_key(str(path.absolute()).encode("utf-8", "surrogateescape")), content_key(stamp)
    if not states:
        return {}
    contents, known = stamps.find_contents(*map(keys_of, zip(*states.values(), strict=True)))
    keys = {place: key for place, key, is_known in zip(states, contents.tolist(), known, strict=True) if is_known}
    new = []
    for place in [place for place in states if place not in keys]:
        try:
            with paths[place].open("rb") as stream:
                keys[place] = int.from_bytes(hashlib.file_digest(stream, "blake2b").digest()[:8], "little")
            new.append((*states[place], keys[place]))
        except OSError as error:
            report(place, f"the image cannot be read ({os_reason(error)})")
    if new:
        stamps.add(*map(keys_of, zip(*new, strict=True)))
    return keys


def _loaded(encoder: Encoder, samples: dict[int, Any], report: Report) -> dict[int, Any]:
    """What the encoder is given for each sample; those that cannot be read are reported and left out."""
    loaded: dict[int, Any] = {}
    read = as_picture if encoder.kind == "image" else _text
    photos = [place for place in samples if encoder.kind == "image" and isinstance(samples[place], (str, Path))]
    found = read_pictures([Path(samples[place]) for place in photos], getattr(encoder, "side", 224))
    pictures = dict(zip(photos, found, strict=True))
    for place, sample in samples.items():
        try:
            given = pictures[place] if place in pictures else read(sample)
            if isinstance(given, DataError):
                raise given
            loaded[place] = given
        except DataError as error:
            report(place, str(error))
    return loaded


def _text(sample: Any) -> str:
    if not isinstance(sample, str):
        raise DataError(f"it is {sample!r:.60}, not a text; give texts to a text encoder")
    if not sample.strip():
        raise DataError("the text is empty; write something, or leave it out")
    return sample


def _in_batches(
    encoder: Encoder, loaded: dict[int, Any], size: int, named: Named
) -> Iterator[tuple[list[int], Vectors]]:
    """Positions and their vectors, a batch at a time; short texts first, as a batch is as long as its longest."""
    order = sorted(loaded, key=lambda place: len(loaded[place])) if encoder.kind == "text" else list(loaded)
    width = encoder.width
    for start in range(0, len(order), size):
        places = order[start : start + size]
        vectors = encoder.encode([loaded[place] for place in places])
        yield places, checked(encoder, vectors, len(places), width, [*map(named, places)].__getitem__)
