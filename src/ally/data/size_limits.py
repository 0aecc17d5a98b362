"""How much memory a file may ask for before it is read: a small file can unpack to more than any machine has."""

from __future__ import annotations

import math
import os

from ally.errors import DataError, InputError

VARIABLE = "ALLY_FILE_GB"
"""The environment variable that replaces every limit below: GiB of memory that reading one file may take."""
UNPACKED = 2**28
"""Bytes that a packed file may hold, whatever its size."""
RATIO = 10
"""A larger file may unpack to so many times its own size: numbers and words that were measured seldom pack as well."""


def find_limit(limit: int) -> int:
    """The limit in bytes that holds: the one that the user set, or else `limit`."""
    given = os.environ.get(VARIABLE)
    if given is None:
        return limit
    try:
        gibibytes = float(given)
    except ValueError:
        gibibytes = math.nan
    if not 0 < gibibytes < 2**20:
        raise InputError(f"{VARIABLE}={given!r} is not a number of GiB; set it to a number such as 4")
    return int(gibibytes * 2**30)


def ensure_unpacked_fits(place: object, unpacked: int, packed: int, least: int = UNPACKED, ratio: int = RATIO) -> None:
    """Refuses a file of `packed` bytes that would take `unpacked` bytes of memory, before any of it is read."""
    limit = find_limit(max(least, ratio * packed))
    if unpacked > limit:
        raise DataError(f"{place} has {in_words(packed)} and unpacks to {in_words(unpacked)}; {advise(limit)}")


def advise(limit: int) -> str:
    return f"at most {in_words(limit)} are read: if you trust it, set {VARIABLE} to the GiB it may take"


def in_words(size: int) -> str:
    if size >= 2**60:
        return "more than 2^60 bytes"
    power = max(0, (size.bit_length() - 1) // 10)
    return f"{size / 2 ** (10 * power):.3g} {('bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')[power]}"
