"""Krippendorff's alpha against its definition by coincidences, and the example of his text."""

import itertools

import numpy as np
import pytest

from ally import SKIP, Campaign
from ally.campaign.agreement import alpha, squares, unequal


def by_pairs(units, distance):
    """Naively: all ordered pairs."""
    pooled = [label for unit in units for label in unit]
    observed = sum(sum(distance(a, b) for a, b in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(distance(a, b) for a, b in itertools.permutations(pooled, 2)) / (len(pooled) - 1)
    return 1 - observed / expected


def test_alpha_equals_the_definition_over_all_pairs():
    rng = np.random.default_rng(0)
    units = [rng.integers(3, size=rng.integers(2, 5)).tolist() for _ in range(40)]
    assert alpha(units, unequal) == pytest.approx(by_pairs(units, lambda a, b: a != b))
    assert alpha(units, squares) == pytest.approx(by_pairs(units, lambda a, b: (a - b) ** 2))
    assert alpha([["x", "x"], ["x", "x"]], unequal) == 1.0


def test_two_observers_and_ten_units():
    # Krippendorff, "Computing Krippendorff's alpha-reliability" (2011), section A: binary data, alpha = 0.095.
    one, other = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    assert alpha(list(zip(one, other, strict=True)), unequal) == pytest.approx(0.095, abs=5e-4)


def test_status_reports_agreement_and_ignores_settled_samples():
    X = np.arange(12.0).reshape(6, 2)
    with Campaign.create("memory", X, automatic=False) as campaign:
        campaign.relabel({"0": "cat", "1": "cat", "2": "dog", "3": "dog"}, annotator="ann")
        assert campaign.answers.agreement() is None
        campaign.relabel({"0": "cat", "1": "dog", "2": "dog", "3": SKIP}, annotator="bob")
        found = campaign.answers.agreement()
        assert found.samples == 3
        assert found.alpha == pytest.approx(by_pairs([["c", "c"], ["c", "d"], ["d", "d"]], lambda a, b: a != b))
        assert set(found.classes) == {"cat", "dog"}
        assert list(campaign.answers.disagreements()) == ["1"]
        campaign.relabel({"1": "cat"}, annotator="eve", settle=True)
        assert campaign.answers.disagreements() == {}
        campaign.relabel({"1": "dog"}, annotator="ann")
        assert list(campaign.answers.disagreements()) == ["1"]
