"""Text and JSON at the border of the store: what every backend can hold, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from ally.errors import AnswerError, IdError, InputError
from ally.store.values import Policy
from ally.types import LONGEST_ID, MOST_BYTES, find_text_fault

# An annotator and a key are indexed together, and must not take more than MOST_BYTES.
LONGEST_NAME, LONGEST_KEY = 200, 400
LATEST = 253_370_764_800.0
"""The year 9999 begins: later times cannot be written in files."""


def check_text(name: str, value: Any, error: type[InputError] = InputError, longest: int = LONGEST_NAME) -> str:
    """A text that is not empty or too long, that UTF-8 can write, without NUL."""
    if not isinstance(value, str) or not value:
        raise error(f"{name}={value!r} must be a text that is not empty")
    if len(value) > longest:
        raise error(f"{name} has {len(value)} characters, {value[:40]!r}…; at most {longest} are allowed")
    fault = find_text_fault(value)
    if fault is not None:
        raise error(f"{name}={value!r} {fault}")
    size = len(value.encode())
    if size > MOST_BYTES:
        raise error(f"{name} takes {size} bytes, {value[:40]!r}…; at most {MOST_BYTES} are allowed")
    return value


def check_id(value: Any) -> str:
    return check_text("sample id", value, IdError, LONGEST_ID)


def check_annotator(value: Any) -> str:
    return check_text("annotator", value)


def check_key(value: Any) -> str | None:
    return None if value is None else check_text("key", value, longest=LONGEST_KEY)


def check_policy(policy: Any) -> Policy:
    if policy not in get_args(Policy):
        raise InputError.about("policy", policy, "must be 'last', 'majority' or 'median'")
    return cast(Policy, policy)


def check_now(now: Any, name: str = "now", error: type[InputError] = InputError) -> float:
    """Seconds since 1970, from the caller's clock."""
    if isinstance(now, bool) or not isinstance(now, (int, float)) or not 0 <= now < LATEST:
        raise error(f"{name}={now!r} must be seconds since 1970; pass time.time()")
    return float(now)


def write_json(name: str, value: Any, error: type[InputError] = InputError) -> str:
    """One text per value, in ASCII."""
    try:
        return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as cause:
        raise error(
            f"{name}={value!r} is not JSON ({cause}); pass a text, a finite number, or lists and dicts of those"
        ) from cause


def write_label(sample: str, value: Any) -> str:
    if value is None:
        raise AnswerError(f"the label of {sample!r} is None; pass a value, or kind='skip'")
    return write_json(f"the label of {sample!r}", value, AnswerError)


def write_note(name: str, value: Mapping[str, Any] | None) -> str | None:
    """A JSON object, or nothing."""
    return None if value is None else write_json(name, dict(value))


def digest(parts: Sequence[Any]) -> str:
    """A fingerprint of a call, to see whether a key comes again with something else."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def draw_of(seed: int, id: str) -> int:
    """A place in the campaign's random order, from its seed and the sample's id alone."""
    key = seed.to_bytes(16, "big", signed=True)
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8, key=key).digest(), "big") >> 1
