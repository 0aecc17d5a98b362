"""Conformance cases as parameters of a test."""

import pytest

from ally.testing import conformance_cases


def params(strategies):
    """Cases of one strategy and task go to one worker, where they share the ordinary batch."""
    cases = conformance_cases(strategies)
    return [
        pytest.param(*case, id=name, marks=pytest.mark.xdist_group(name.rpartition("-")[0])) for name, *case in cases
    ]
