"""The conformance check of encoders.

    from ally.testing.encoder import check_encoder
    check_encoder(ally.data.encoders.Function(my_function, "mine-1", "text"))

The contract is in `ally.data.encoders.base`. A check that fails raises `AssertionError` or `ally.errors.BrokenPart` and
says what it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ally.data.encoders.base import TOLERANCE, Encoder, Vectors, checked

TEXTS = (
    "The cat sat on the mat.",
    "x",
    "Prices rose by 3 % in May, the bank said on Tuesday; " * 40,
    "ein anderer Satz, in einer anderen Sprache",
    "漢字 and emoji 🙂 and a half surrogate \ud83d",
    "The cat sat on the mat.",
)


def hard_samples(encoder: Encoder) -> Sequence[Any]:
    """Samples that an encoder must take: very short and long texts; small, large, narrow and plain pictures."""
    if encoder.kind == "text":
        return TEXTS
    rng = np.random.default_rng(0)
    sizes = ((32, 32), (7, 90), (300, 200), (1, 1), (64, 64), (64, 64))
    pictures = [rng.integers(0, 256, (3, *size)).astype(np.uint8) for size in sizes]
    pictures[4] = np.zeros((3, 64, 64), np.uint8)
    pictures[5] = pictures[0]
    return pictures


def check_encoder(encoder: Encoder, samples: Sequence[Any] | None = None) -> None:
    """Raises unless the encoder keeps its contract on `samples`, by default hard ones."""
    given = hard_samples(encoder) if samples is None else samples
    identity = encoder.identity
    assert isinstance(identity, str), f"identity is a {type(identity).__name__}; it must be a text"
    assert identity.strip(), "identity is empty; vectors are kept under it"
    assert encoder.kind in ("text", "image"), f"kind is {encoder.kind!r}; it must be 'text' or 'image'"
    together = _vectors(encoder, given)
    for number, sample in enumerate(given):
        _ensure_same(_vectors(encoder, [sample])[0], together[number], f"sample {number} alone and among others")
    backwards = _vectors(encoder, list(given)[::-1])[::-1]
    for number in range(len(given)):
        _ensure_same(backwards[number], together[number], f"sample {number} in a batch in another order")
    assert encoder.identity == identity, f"identity was {identity!r} and is {encoder.identity!r} after encoding"


def _vectors(encoder: Encoder, samples: Sequence[Any]) -> Vectors:
    return checked(encoder, encoder.encode(samples), len(samples), encoder.width)


def _ensure_same(one: Vectors, other: Vectors, what: str) -> None:
    apart, length = float(np.linalg.norm(one - other)), float(np.linalg.norm(other))
    assert apart <= TOLERANCE * max(length, 1e-12), f"{what}: the vectors are {apart:g} apart and {length:g} long"
