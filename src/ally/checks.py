"""Checks of settings, with one wording."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ally.errors import InputError


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError.about(name, value, f"must be a whole number of at least {least}")
    return int(value)


def check_number(name: str, value: Any, *, positive: bool = False) -> float:
    """A finite number >= 0, or > 0."""
    fits = isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or value < 0 or (positive and value == 0):
        raise InputError.about(name, value, f"must be a finite number {'> 0' if positive else '>= 0'}")
    return float(value)
