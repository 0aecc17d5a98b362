import math

import numpy as np
import pandas as pd
import pytest
from report_grids import drawn, rows
from scipy import stats
from statsmodels.stats.multitest import multipletests

from ally.report import add_series
from ally.report.statistics.significance import against_baseline, all_pairs, holm, smallest_p, totals, win_matrix
from ally.report.statistics.summary import costs


@pytest.mark.parametrize("size", [1, 2, 5, 30])
@pytest.mark.parametrize("digits", [1, 2, 15])
def test_holm_agrees_with_statsmodels(size, digits):
    p = np.random.default_rng(size).random(size).round(digits).tolist()  # few digits: ties, 0 and 1
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1].tolist(), abs=1e-12)


def test_holm_by_hand_and_without_missing_values():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    found = holm([0.04, float("nan"), 0.01])
    assert (found[0], found[2]) == pytest.approx((0.04, 0.02))
    assert math.isnan(found[1])
    assert holm([]) == []


def test_few_seeds_have_a_floor():
    assert smallest_p(5) == 0.0625
    assert smallest_p(10, tests=12) == pytest.approx(12 * 2 / 1024)
    one_sided = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert stats.wilcoxon(one_sided).pvalue == smallest_p(5)


def test_tests_agree_with_scipy():
    table = add_series(drawn(strategies=("ally", "margin", "random"), gain=0.03, noise=0.02, seeds=8))
    means = table[table["round"] > 0].pivot_table(index="seed", columns="strategy", values="value")
    ally, margin = against_baseline(table, "random")
    assert (ally.first, ally.second, ally.seeds) == ("ally", "random", 8)
    assert ally.wilcoxon == pytest.approx(stats.wilcoxon(means["ally"], means["random"]).pvalue)
    assert ally.t == pytest.approx(stats.ttest_rel(means["ally"], means["random"]).pvalue)
    assert [ally.t_holm, margin.t_holm] == pytest.approx(holm([ally.t, margin.t]))
    assert [ally.wilcoxon_holm, margin.wilcoxon_holm] == pytest.approx(holm([ally.wilcoxon, margin.wilcoxon]))
    assert [(one.first, one.second) for one in all_pairs(table)] == [
        ("ally", "margin"),
        ("ally", "random"),
        ("margin", "random"),
    ]


def test_degenerate_differences():
    table = add_series(
        rows(
            {
                (name, seed): [0.5, 0.6 + seed / 10 + extra]
                for name, extra in (("a", 0.1), ("b", 0.0), ("c", 0.0))
                for seed in (0, 1)
            }
        )
    )
    constant, _, equal = all_pairs(table)
    assert (constant.wilcoxon, constant.low, constant.seeds) == (0.5, None, 2)
    assert math.isnan(constant.t)
    assert (equal.wilcoxon, equal.t, equal.low, equal.high) == (1.0, 1.0, 0.0, 0.0)
    assert all_pairs(table[table["seed"] == 0]) == []


def test_errors_win_by_being_small():
    test = against_baseline(add_series(drawn("rmse", gain=-0.1)), "random")[0]
    assert test.difference > 0


def test_wins_ties_and_losses_by_hand():
    parts = [
        drawn(gain=0.1, dataset="one"),
        drawn(gain=0.1, dataset="two"),
        drawn(gain=0.0, noise=0.05, dataset="three"),
        drawn(gain=-0.1, dataset="four"),
    ]
    table = add_series(pd.concat(parts, ignore_index=True))
    matrix = win_matrix(["ally", "random"], all_pairs(table))
    assert (matrix["ally", "random"], matrix["random", "ally"]) == ((2, 1, 1), (1, 1, 2))
    assert str(matrix["ally", "random"]) == "2 / 1 / 1"
    assert totals(["ally", "random"], matrix) == {"ally": (2, 1, 1), "random": (1, 1, 2)}
    assert win_matrix(["ally", "random"], all_pairs(table[table["seed"] == 0])) == {}


def test_compute_per_label_by_hand():
    table = rows({("a", 0): [0.1, 0.2, 0.3], ("a", 1): [0.1, 0.2], ("b", 0): [0.1]})
    table["query_seconds"] = [0.5, 1.5, 0.0, 1.0, 9.0, 0.0]
    a, b = costs(add_series(table))
    # Seed 0: 3 s of training for 30 labels, 2 s of queries for 20; seed 1: 2 s for 20, 1 s for 10 (what it asked last
    # is not bought).
    assert (a.train_per_label, a.query_per_label) == pytest.approx((0.1, 0.1))
    assert a.query == pytest.approx(1.25)
    assert math.isnan(b.query_per_label)
    assert math.isnan(b.query)
