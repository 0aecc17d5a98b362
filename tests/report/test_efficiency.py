import numpy as np
import pandas as pd
import pytest
from report_grids import rows

from ally.metrics import METRICS
from ally.report import add_series, summarise
from ally.report.statistics.curves import Curve
from ally.report.statistics.efficiency import (
    Efficiency,
    Reached,
    efficiencies,
    find_target,
    label_ratio,
    labels_to_reach,
    mean_curve,
)

ACCURACY, RMSE = METRICS["accuracy"], METRICS["rmse"]


def curve(*values, step=100):
    return Curve(step * np.arange(1.0, len(values) + 1), np.array(values))


def test_the_target_is_set_by_the_best_baseline():
    table = add_series(
        rows(
            {("ally", 0): [0.5, 0.99], ("margin", 0): [0.5, 0.9], ("margin", 1): [0.5, 0.8], ("random", 0): [0.6, 0.84]}
        )
    )
    target = find_target(table)
    assert (target.series, target.value) == ("margin", pytest.approx(0.97 * 0.85))
    assert find_target(table, lambda name: True).series == "ally"
    assert find_target(table[table["strategy"] == "ally"]) is None


def test_for_errors_it_is_a_share_of_the_reduction():
    table = add_series(rows({("random", 0): [10.0, 4.0], ("coreset", 0): [10.0, 5.0]}, metric="rmse"))
    target = find_target(table)
    assert (target.series, target.value) == ("random", pytest.approx(10 - 0.97 * 6))
    assert find_target(add_series(rows({("random", 0): [4.0, 5.0]}, metric="rmse"))) is None


def test_the_first_crossing_that_holds_on_straight_lines():
    assert labels_to_reach(curve(0.2, 0.6, 0.7), 0.5, ACCURACY) == (pytest.approx(175), False)
    # A crossing that does not hold at the next round is passed over.
    assert labels_to_reach(curve(0.2, 0.6, 0.4, 0.6, 0.7), 0.5, ACCURACY) == (pytest.approx(350), False)
    assert labels_to_reach(curve(0.6, 0.7), 0.5, ACCURACY) == (100, False)
    assert labels_to_reach(curve(9.0, 3.0, 2.0), 6.0, RMSE) == (pytest.approx(150), False)


def test_never_reached_is_censored():
    missed = labels_to_reach(curve(0.2, 0.3, 0.4), 0.5, ACCURACY)
    assert (missed, str(missed)) == ((300, True), "> 300")
    # In the last round there is no next one to hold at.
    assert labels_to_reach(curve(0.2, 0.3, 0.6), 0.5, ACCURACY).censored


def test_mean_curves_are_of_finished_campaigns():
    mean = mean_curve({0: curve(0.2, 0.4), 1: curve(0.4, 0.8), 2: curve(0.9)})
    assert mean.values.tolist() == pytest.approx([0.3, 0.6])


def test_every_series_of_a_grid():
    table = add_series(
        rows(
            {
                ("ally", 0): [0.5, 0.9, 0.9, 0.9],
                ("random", 0): [0.5, 0.7, 0.8, 0.8],
                ("ally", 1): [0.5, 0.5, 0.5, 0.5],
                ("random", 1): [0.5, 0.7, 0.8, 0.8],
            }
        )
    )
    targets, (ally, random) = efficiencies(table, "random")
    assert targets["toy"].value == pytest.approx(0.776)
    assert (ally.reached, random.reached) == (1, 2)
    assert ally.by_seed == {0: (pytest.approx(10 + 10 * 0.276 / 0.4), False), 1: (40, True)}
    assert random.labels == (pytest.approx(27.6), False)
    assert (ally.baseline, ally.best) == ("random", "random")


def needs(*labels, censored=(), dataset="toy"):
    by_seed = {seed: Reached(count, seed in censored) for seed, count in enumerate(labels)}
    return Efficiency(dataset, "s", by_seed[0], by_seed, "r", "r")


def test_ratios_are_geometric_means_over_seeds_then_sets():
    ratio = label_ratio([(needs(100, 400), needs(200, 200))])
    assert (ratio.value, ratio.seeds, ratio.sets, ratio.bound) == (pytest.approx(1.0), 2, 1, "")
    # A set counts once, whatever its number of seeds: 1/2 and 2.
    both = label_ratio([(needs(100, 100, 100), needs(200, 200, 200)), (needs(200), needs(100))])
    assert (both.value, both.sets) == (pytest.approx(1.0), 2)
    alone = label_ratio([(needs(100), needs(200))])
    assert (alone.value, alone.low, alone.interval) == (pytest.approx(0.5), None, "")
    assert label_ratio([]) is None


def test_the_bootstrap_agrees_with_its_exact_distribution():
    logs = np.log([0.5, 1.0, 2.0])
    exact = np.array([np.mean([logs[a], logs[b], logs[c]]) for a in range(3) for b in range(3) for c in range(3)])
    ratio = label_ratio([(needs(100, 200, 400), needs(200, 200, 200))], repeats=40000)
    assert (ratio.low, ratio.high) == pytest.approx(
        tuple(np.exp(np.quantile(exact, [0.025, 0.975], method="inverted_cdf")))
    )
    again = label_ratio([(needs(100, 200, 400), needs(200, 200, 200))], repeats=40000)
    assert ratio == again


def test_resampling_sets_widens_the_interval():
    steady = [(needs(100, 100), needs(200, 200)), (needs(200, 200), needs(100, 100))]
    ratio = label_ratio(steady)
    assert (ratio.low, ratio.high) == pytest.approx((0.5, 2.0))


@pytest.mark.parametrize(
    ("series", "reference", "bound"),
    [((), (), ""), ((1,), (), ">"), ((), (1,), "<"), ((0,), (1,), "?"), ((1,), (1,), "?")],
)
def test_censored_counts_bound_the_ratio(series, reference, bound):
    ratio = label_ratio([(needs(100, 300, censored=series), needs(100, 300, censored=reference))])
    assert ratio.bound == bound
    assert str(ratio) == f"{bound} 1.00".strip()
    assert (ratio.low is None) == (ratio.high is None) == (bound == "?")


def test_if_no_campaign_reaches_the_target_there_is_no_ratio():
    nobody = needs(300, 300, censored=(0, 1)), needs(300, 300, censored=(0, 1))
    assert label_ratio([nobody]) is None
    both = label_ratio([nobody, (needs(100, 100), needs(200, 200))])
    assert (both.value, both.sets, both.bound) == (pytest.approx(0.5), 1, "")


def test_the_mean_over_data_sets_leaves_out_those_that_may_err_either_way():
    quick, slow, missed = [0.5, 0.9, 0.9, 0.9], [0.5, 0.6, 0.9, 0.9], [0.5, 0.5, 0.5, 0.5]
    clear = rows({("ally", 0): quick, ("random", 0): slow, ("ally", 1): quick, ("random", 1): slow}, dataset="clear")
    # The target is what margin reaches; ally and random miss it on one seed each.
    vague = rows(
        {
            ("ally", 0): quick,
            ("random", 0): missed,
            ("ally", 1): missed,
            ("random", 1): slow,
            ("margin", 0): quick,
            ("margin", 1): quick,
        },
        dataset="vague",
    )
    summary = summarise(pd.concat([clear, vague], ignore_index=True))
    assert summary.ratios["vague", "ally"][0].bound == "?"
    together = summary.ratios["", "ally"][0]
    assert (together.sets, together.value) == (1, pytest.approx(summary.ratios["clear", "ally"][0].value))
