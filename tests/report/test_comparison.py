import pandas as pd
import pytest
from report_grids import drawn, rows
from scipy import stats

from ally.errors import InputError, UnknownName
from ally.report import compare, sentence


def test_the_interval_is_a_paired_t_interval():
    table = drawn()
    ally, random = compare(table)
    means = table[table["round"] > 0].pivot_table(index="seed", columns="strategy", values="value")
    expected = stats.ttest_rel(means["ally"], means["random"]).confidence_interval(0.95)
    assert (ally.low, ally.high) == pytest.approx((expected.low, expected.high))
    assert ally.gain == pytest.approx(0.1, abs=0.02)
    assert (ally.verdict, random.verdict) == ("better", "baseline")
    assert (ally.baseline, ally.pairs, random.baseline) == ("random", 6, None)


def test_numbers_by_hand():
    # Means after the first round: .7 against .6, and .9 against .7.
    table = rows(
        {
            ("ally", 0): [0.5, 0.6, 0.8],
            ("random", 0): [0.5, 0.5, 0.7],
            ("ally", 1): [0.5, 0.8, 1.0],
            ("random", 1): [0.5, 0.6, 0.8],
        }
    )
    ally, random = compare(table)
    assert (ally.curve_mean, random.curve_mean) == pytest.approx((0.8, 0.65))
    assert ally.gain == pytest.approx(0.15)
    half = 12.7062 * 0.05
    assert (ally.low, ally.high) == pytest.approx((0.15 - half, 0.15 + half), abs=1e-4)
    assert ally.area == pytest.approx(((0.55 + 0.7) / 2 + (0.65 + 0.9) / 2) / 2)
    assert (ally.final, ally.final_std) == pytest.approx((0.9, 0.02**0.5))
    assert ally.seconds == 0.5


def test_lower_is_better_for_errors():
    assert compare(drawn("rmse"))[0].verdict == "worse"
    assert compare(drawn("rmse", gain=-0.1))[0].verdict == "better"


def test_noise_is_not_reported_as_a_difference():
    comparison = compare(drawn(gain=0.0, noise=0.05))[0]
    assert comparison.verdict == "not shown to differ"
    assert sentence(comparison).startswith("ally is not shown to differ from random on toy: ")
    assert "95% interval" in sentence(comparison)


def test_unfinished_seeds_are_left_out_of_pairs():
    table = drawn()
    short = table[~((table["strategy"] == "ally") & (table["seed"] == 0) & (table["round"] > 1))]
    without = table[table["seed"] != 0]
    ally = compare(short)[0]
    assert (ally.pairs, ally.left_out) == (5, 1)
    assert (ally.gain, ally.low) == pytest.approx((compare(without)[0].gain, compare(without)[0].low))
    assert ally.curve_mean == pytest.approx(compare(without)[0].curve_mean)


def test_a_series_that_stops_early_is_compared_as_far_as_it_went():
    table = drawn()
    short = table[(table["strategy"] == "random") | (table["round"] < 3)]
    both = table[table["round"] < 3]
    ally = compare(short)[0]
    assert (ally.gain, ally.low, ally.pairs) == pytest.approx((compare(both)[0].gain, compare(both)[0].low, 6))


def test_missing_seeds_and_one_seed():
    table = drawn()
    missing = table[~((table["strategy"] == "random") & (table["seed"] == 0))]
    assert (compare(missing)[0].verdict, compare(missing)[0].pairs) == ("better", 5)
    one = compare(table[table["seed"] == 0])[0]
    assert one.verdict == "one seed: no interval"
    assert sentence(one).endswith("points of accuracy over the curve; one seed: no interval.")
    start = compare(table[table["round"] == 0])[0]
    assert (start.gain, start.verdict) == (None, "nothing to compare yet")
    assert sentence(start) == "ally on toy: nothing to compare yet."


def test_equal_differences_give_no_verdict():
    table = rows(
        {("ally", 0): [0.5, 0.7], ("random", 0): [0.5, 0.6], ("ally", 1): [0.5, 0.8], ("random", 1): [0.5, 0.7]}
    )
    ally = compare(table)[0]
    assert ally.verdict == "equal differences: no interval"
    assert "+10.00 points of accuracy over the curve; equal differences" in sentence(ally)
    same = rows(
        {("ally", 0): [0.5, 0.6], ("random", 0): [0.5, 0.6], ("ally", 1): [0.5, 0.7], ("random", 1): [0.5, 0.7]}
    )
    assert compare(same)[0].verdict == "not shown to differ"


def test_other_label_counts_are_read_from_straight_lines():
    fine = rows({("random", seed): [0.2, 0.4, 0.6, 0.8] for seed in (0, 1)})
    coarse = rows({("ally", seed): [0.2, 0.8] for seed in (0, 1)}, labels=(10, 40), batch=10)
    ally = compare(pd.concat([coarse, fine], ignore_index=True))[0]
    assert ally.gain == pytest.approx(0.0)
    late = rows({("ally", seed): [0.5, 0.7] for seed in (0, 1)}, labels=(15, 35), batch=10)
    shifted = compare(pd.concat([late, fine], ignore_index=True))[0]
    # At 15, 20, 30, 35 labels: ally .5 .55 .65 .7, random .3 .4 .6 .7.
    assert shifted.gain == pytest.approx((0.2 + 0.15 + 0.05 + 0.0) / 4)


def test_a_missing_baseline_and_an_unknown_metric_are_errors():
    table = drawn()
    with pytest.raises(InputError, match="toy has no results for 'random'"):
        compare(table[table["strategy"] == "ally"])
    with pytest.raises(UnknownName, match=r"unknown metric 'joy'; known metrics: .*accuracy"):
        compare(drawn("joy"))


@pytest.mark.parametrize(
    ("metric", "level", "said"),
    [("accuracy", 1, "+10.00 points of accuracy"), ("rmse", 1, "-0.1"), ("rmse", 100, "-10.")],
)
def test_gains_are_written_in_fitting_digits(metric, level, said):
    table = drawn(metric, noise=0.0)
    table["value"] *= level
    table["value"] += 1e-6 * level * table["seed"] * (table["strategy"] == "ally")
    assert said in sentence(compare(table)[0])
