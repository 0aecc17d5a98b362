"""What parsers raise for a foreign file, as one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ally.errors import AllyError, DataError

LONGEST = 200
"""Characters of a parser's own words."""


@contextmanager
def refuse_damage(met: str, advice: str) -> Iterator[None]:
    """``met (the parser's words); advice`` as `DataError` for whatever is raised inside: parsers of damaged and hostile
    files raise nearly anything. An error of this library stays as it is."""
    try:
        yield
    except AllyError:
        raise
    except Exception as error:
        raise DataError(f"{met} ({first_line(error)}); {advice}") from error


def first_line(error: BaseException) -> str:
    lines = str(error).splitlines() or [""]
    return (lines[0].strip() or type(error).__name__)[:LONGEST]
