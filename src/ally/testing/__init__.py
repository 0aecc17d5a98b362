"""Checks that every strategy must pass, ours and yours. See `check_strategy`."""

from ally.testing.conformance import CHECKS, check_strategy, conformance_cases

__all__ = ["CHECKS", "check_strategy", "conformance_cases"]
