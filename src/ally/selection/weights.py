r"""Integer weights, so that their sums depend neither on the order nor on the number of shards.

The weight of a row is ⌊D · s⌋ with s a power of two, the same for all shards: the largest D becomes a number of
`bits(n)` bits, and n such numbers stay below 2⁶³. The error of a weight is less than 2⁻ᵇⁱᵗˢ⁺¹ of the largest one: 52
bits for a thousand rows, 45 for a hundred thousand, 38 for ten million. As D falls, so does the sum; a new scale is set
before more than four bits are lost (`is_worn`). In the end a D of any size gets its weight.
"""

from __future__ import annotations

import math


def bits(n: int) -> int:
    """Bits of the largest of n weights: n · 2^bits ≤ 2⁶², and no more than a float64 has."""
    return min(52, 62 - n.bit_length())


def scale_of(largest: float, n: int) -> float:
    """s, a power of two with ``largest * s`` < 2^bits."""
    return math.ldexp(1.0, min(bits(n) - math.frexp(largest)[1], 1000))


def is_worn(total: int, n: int) -> bool:
    """Whether the weights have become so small that a new scale is needed."""
    return total < 1 << (bits(n) - 4)


def share(total: int, uniform: float) -> int:
    """⌊uniform · total⌋ in exact arithmetic; `uniform` lies in [0, 1)."""
    return int(uniform * 2.0**53) * total >> 53
