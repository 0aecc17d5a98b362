import numpy as np
import pytest
from report_grids import rows

from ally.errors import InputError
from ally.report import add_series
from ally.report.statistics.curves import Curve, average_curves, complete, curves_by_seed, gaps, normalised_area, smooth


def test_mean_deviation_and_interval_by_hand():
    table = average_curves(add_series(rows({("a", 0): [0.1, 0.5], ("a", 1): [0.3, 0.7], ("a", 2): [0.2]})))
    first, second = table.to_dict("records")
    assert (first["labels"], first["seeds"], first["mean"], first["std"]) == (
        10,
        3,
        pytest.approx(0.2),
        pytest.approx(0.1),
    )
    half = 4.30265 * 0.1 / 3**0.5
    assert (first["low"], first["high"]) == pytest.approx((0.2 - half, 0.2 + half), abs=1e-5)
    half = 12.7062 * 0.02**0.5 / 2**0.5
    assert (second["seeds"], second["low"]) == (2, pytest.approx(0.6 - half, abs=1e-4))


def test_one_seed_has_no_band():
    table = average_curves(add_series(rows({("b", 0): [0.1, 0.5], ("a", 0): [0.1, 0.5]})))
    assert table["series"].tolist() == ["b", "b", "a", "a"]
    assert table[["std", "low", "high"]].isna().all(axis=None)


def test_smoothing_is_a_moving_average_of_each_campaign():
    assert smooth(np.array([1.0, 0.0, 2.0]), 0.6).tolist() == pytest.approx([1.0, 0.6, 0.36 + 0.8])
    table = average_curves(add_series(rows({("a", 0): [1.0, 0.0], ("a", 1): [0.0, 1.0]})), smoothing=0.5)
    assert table["mean"].tolist() == [0.5, 0.5]
    assert table["std"].tolist() == pytest.approx([0.5**0.5, 0.0])
    assert smooth(np.array([1.0, 0.5]), 0.0).tolist() == [1.0, 0.5]
    with pytest.raises(InputError, match=r"smoothing=1\.5 must be at least 0 and below 1"):
        smooth(np.array([1.0]), 1.5)


def test_area_is_a_trapezoid_over_labels():
    assert normalised_area(Curve(np.array([10.0, 20.0, 40.0]), np.array([0.0, 1.0, 1.0]))) == pytest.approx(
        (5 + 20) / 30
    )
    assert normalised_area(Curve(np.array([10.0]), np.array([0.3]))) == 0.3


def test_campaigns_are_sorted_and_gaps_are_told():
    table = add_series(rows({("a", 0): [0.1, 0.2, 0.3], ("a", 1): [0.1, 0.2], ("b", 0): [0.1, 0.2]}))
    curves = curves_by_seed(table[table["series"] == "a"].sample(frac=1, random_state=0))
    assert curves[0].values.tolist() == [0.1, 0.2, 0.3]
    assert list(complete(curves)) == [0]
    assert gaps(table) == [
        "a on toy: 1 of 2 campaigns end before 30 labels.",
        "b on toy has 1 seed, others 2.",
        "b on toy ends at 20 labels, others at 30.",
    ]
    assert gaps(add_series(rows({("a", 0): [0.1, 0.2], ("b", 0): [0.1, 0.2]}))) == []
