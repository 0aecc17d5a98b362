"""Advice on stopping, on curves whose future is known."""

import numpy as np
import pytest

from ally.campaign.advice import Evidence, Point, advise, expected_gain


def curve(rise, noise=0.0, points=8, n=500, seed=0):
    rng = np.random.default_rng(seed)
    labels = [50 * (i + 1) for i in range(points)]
    values = [0.6 + rise * np.log(m / 50) + noise * rng.standard_normal() for m in labels]
    return tuple(Point(m, v, (v * (1 - v) / n) ** 0.5) for m, v in zip(labels, values, strict=True))


def test_a_model_no_better_than_a_constant_answer_is_reported():
    flat = Evidence(curve(0.0, n=100_000), 50, metric="r2", no_better=(-0.55, -0.02))
    advice = advise(flat)
    assert not advice.stop
    assert advice.sentence.startswith("The model is no better than always answering the mean: R² -0.55 against -0.02.")


def test_the_expected_gain_is_that_of_the_line():
    gain = expected_gain(curve(0.1), 50)
    assert gain.expected == pytest.approx(0.1 * np.log(450 / 400))
    assert gain.low < gain.expected < gain.high


def test_the_interval_covers_the_truth():
    truth = 0.02 * np.log(450 / 400)
    inside = 0
    for seed in range(300):
        points = curve(0.02, noise=0.02, n=500, seed=seed)
        gain = expected_gain(points, 50)
        inside += gain.low <= truth <= gain.high
    assert 0.9 < inside / 300 <= 1.0


def test_scatter_beyond_the_points_own_uncertainty_widens_the_interval():
    calm, wild = (expected_gain(curve(0.02, noise, n=100_000), 50) for noise in (0.001, 0.03))
    assert wild.high - wild.low > 5 * (calm.high - calm.low)


def test_a_flat_certain_curve_may_stop_and_a_rising_one_goes_on():
    flat = Evidence(curve(0.0, n=100_000), 50, labels=400)
    rising = Evidence(curve(0.1, n=100_000), 50, labels=400)
    assert advise(flat).stop
    assert "not expected to help" in advise(flat).sentence
    assert not advise(rising).stop
    assert "+1.2 points expected" in advise(rising).reasons[0]


def test_a_settled_model_decides_where_the_curve_cannot():
    unsure = curve(0.0, n=50)
    assert not advise(Evidence(unsure, 50, kappas=(0.9, 0.95))).stop
    assert advise(Evidence(unsure, 50, kappas=(0.995, 0.999))).stop


def test_the_budget_comes_first():
    advice = advise(Evidence(curve(0.1), 50, budget=400, labels=400))
    assert advice.stop
    assert advice.sentence == "Stop: the budget of 400 labels is spent."
    assert advice.reasons[-1] == "400 of 400 labels of the budget are spent"


@pytest.mark.parametrize("points", [0, 1, 2])
def test_fewer_than_three_points_give_no_forecast(points):
    advice = advise(Evidence(curve(0.1, points=points), 50))
    assert not advice.stop
    assert advice.gain is None
    assert f"needs {3 - points} more" in advice.sentence


def test_models_with_equal_label_counts_count_once():
    assert expected_gain((Point(50, 0.6, 0.01),) * 5, 50) is None


def test_without_an_evaluation_sample_only_stability_decides():
    unsettled, settled = (advise(Evidence((), 50, kappas=kappas, measured=False)) for kappas in ((), (0.995, 0.999)))
    assert not unsettled.stop
    assert settled.stop
    assert all("no samples are held out" in advice.sentence for advice in (unsettled, settled))
