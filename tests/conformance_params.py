"""Conformance cases as parameters of a test; strategies that train long, made quick."""

from dataclasses import replace

import pytest

import ally
from ally.learning.dual_head import PaperHead
from ally.learning.objectives import PDCLUnlabelled
from ally.scoring import MutualInformation, PredictedDual
from ally.selection import BatchBALD, Discriminative
from ally.testing import conformance_cases

QUICK = {
    "ally-paper": replace(ally.CATALOGUE["ally-paper"], score=PredictedDual(PaperHead(epochs=3))),
    "dal": replace(ally.CATALOGUE["dal"], select=Discriminative(steps=10)),
    "ally-unlabelled": replace(ally.CATALOGUE["ally-unlabelled"], objective=PDCLUnlabelled(steps=30)),
    "bald": replace(ally.CATALOGUE["bald"], score=MutualInformation(members=2)),
    "powerbald": replace(ally.CATALOGUE["powerbald"], score=MutualInformation(members=2)),
    "batchbald": replace(ally.CATALOGUE["batchbald"], select=BatchBALD(members=3)),
}
"""Strategies that train for long, with fewer steps or networks: the checks are about the queries, not about how well
the model learns."""


def params(strategies):
    """Cases of one strategy and task go to one worker, where they share the ordinary batch."""
    cases = conformance_cases(strategies)
    return [
        pytest.param(*case, id=name, marks=pytest.mark.xdist_group(name.rpartition("-")[0])) for name, *case in cases
    ]
