"""What an encoder is: a frozen, pretrained model that turns a text or a picture into a vector.

The contract of `Encoder`:

- `encode(batch)` gives one vector for each sample, in the same order: a float array ``(len(batch), width)``, all
  finite. A text encoder is given texts (`str`); an image encoder is given pictures ``(3, h, w)`` uint8, upright, of any
  size.
- The vector of a sample does not depend on what else is in the batch, but for rounding: within `TOLERANCE` of its
  length.
- `identity` is a text that changes whenever the vectors would: another model, other weights, other pooling, another
  picture size. Vectors are cached under it, so two encoders with one identity must give the same vectors.
- An image encoder has `side`: pictures are read so that the shorter edge has twice as many pixels, or fewer where the
  photo has fewer. The default is 224.
- Distances between vectors mean something: they have length 1, or share one scale.
- An encoder may have `notes`, sentences about what it met, such as texts it had to cut.

``ally.testing.encoder.check_encoder`` tries all of this on an encoder of yours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ally.errors import BrokenPart, InputError
from ally.types import AnyArray

EncoderKind: TypeAlias = Literal["text", "image"]
Vectors: TypeAlias = NDArray[np.float32]
TOLERANCE = 1e-4
"""How much a vector may differ, relative to its length, between batches."""


class Encoder(Protocol):
    @property
    def identity(self) -> str: ...

    @property
    def kind(self) -> EncoderKind: ...

    @property
    def width(self) -> int: ...

    def encode(self, batch: Sequence[Any]) -> AnyArray: ...


class Function:
    """An encoder made of any callable: ``f(list of samples) -> array (n, d)``.

    `name` is its identity: choose another name when the function changes, since kept vectors are found by it. The width
    is found by encoding one plain sample, unless it is given.
    """

    def __init__(
        self,
        call: Callable[[list[Any]], Any],
        name: str,
        kind: EncoderKind,
        *,
        width: int | None = None,
        side: int = 224,
    ) -> None:
        if not callable(call):
            raise InputError.about("call", call, "is not a function; pass f(list of samples) -> array (n, d)")
        if not isinstance(name, str) or not name.strip():
            raise InputError.about(
                "name", name, "is not a name; vectors are kept under it, so give one, such as 'mine-1'"
            )
        if kind not in ("text", "image"):
            raise InputError.about("kind", kind, "is unknown; pass 'text' or 'image'")
        self.name = name
        self.kind: EncoderKind = kind
        self.side = side
        self._call = call
        self._width = width

    @property
    def identity(self) -> str:
        return f"function {self.name}"

    @property
    def width(self) -> int:
        if self._width is None:
            self._width = checked(self, self.encode([plain_sample(self.kind, self.side)]), 1).shape[1]
        return self._width

    def encode(self, batch: Sequence[Any]) -> AnyArray:
        given = self._call(list(batch))
        return given.detach().cpu().numpy() if hasattr(given, "detach") else np.asarray(given)

    def __repr__(self) -> str:
        return f"<encoder {self.name}>"


def plain_sample(kind: EncoderKind, side: int = 32) -> Any:
    """A sample that every encoder of this kind can take."""
    return "a text" if kind == "text" else np.full((3, side, side), 128, np.uint8)


def checked(
    encoder: Encoder, given: Any, n: int, width: int | None = None, name: Callable[[int], str] = "sample {}".format
) -> Vectors:
    """The vectors of a batch of n samples, (n, width) float32. Raises if they are not what the contract says."""
    who = f"the encoder {encoder.identity!r}"
    try:
        vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise BrokenPart(f"{who} gave a {type(given).__name__} that is not an array of numbers ({error})") from error
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise BrokenPart(f"{who} gave an array of shape {vectors.shape} for {n} samples; it must be (n, width)")
    if len(vectors) != n:
        raise BrokenPart(f"{who} gave {len(vectors)} vectors for {n} samples; it must give one for each, in order")
    if width is not None and vectors.shape[1] != width:
        raise BrokenPart(f"{who} gave vectors of width {vectors.shape[1]}; before they had {width}: keep one width")
    bad = ~np.isfinite(vectors)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise BrokenPart(
            f"{who} gave {vectors[row, column]} in column {column} for {name(row)}; vectors must be finite: correct "
            "the encoder, or leave the sample out"
        )
    return vectors


def unit(vectors: Vectors) -> Vectors:
    """Each row divided by its length; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
