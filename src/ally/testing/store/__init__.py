"""The conformance suite of stores: the contract of `ally.store.base`, as checks.

    from ally.testing.store import check_store
    check_store(lambda settings, samples, seed, **more: MyStore(settings, samples, seed, **more))

Each check makes a store of its own and closes it.
"""

from __future__ import annotations

from ally.testing.store import answering, asking, deciding, lifecycle, samples
from ally.testing.store.tools import Check, Create

__all__ = ["CHECKS", "Check", "Create", "check_store"]

CHECKS: tuple[Check, ...] = (*samples.CHECKS, *asking.CHECKS, *answering.CHECKS, *deciding.CHECKS, *lifecycle.CHECKS)


def check_store(create: Create) -> None:
    """Runs every check; raises AssertionError, or whatever the store raised, at the first that fails."""
    for check in CHECKS:
        check(create)
