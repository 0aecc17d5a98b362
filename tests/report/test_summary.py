import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ally.errors import InputError
from ally.report import compare, draw_curves, sentence, write_page


def results(metric="accuracy", gain=0.1, noise=0.01, seeds=6):
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(seeds):
        level = rng.normal(0.5, 0.05)
        for strategy, extra in (("ally", gain), ("random", 0.0)):
            for number in range(4):
                value = level + 0.05 * number + (extra if number else 0.0) + noise * rng.normal()
                rows.append({"dataset": "toy", "strategy": strategy, "seed": seed, "round": number, "labels": 10 + 5 * number,
                             "metric": metric, "value": value, "query_seconds": 0.1 if number < 3 else 0.0})  # fmt: skip
    return pd.DataFrame(rows)


def test_the_interval_is_a_paired_t_interval():
    table = results()
    ally, random = compare(table)
    means = table[table["round"] > 0].pivot_table(index="seed", columns="strategy", values="value")
    expected = stats.ttest_rel(means["ally"], means["random"]).confidence_interval(0.95)
    assert (ally.low, ally.high) == pytest.approx((expected.low, expected.high))
    assert ally.gain == pytest.approx(0.1, abs=0.02)
    assert (ally.verdict, random.verdict) == ("better", "baseline")


def test_lower_is_better_for_errors():
    assert compare(results("rmse"))[0].verdict == "worse"
    assert compare(results("rmse", gain=-0.1))[0].verdict == "better"


def test_noise_is_not_called_a_difference():
    comparison = compare(results(gain=0.0, noise=0.05))[0]
    assert comparison.verdict == "not shown to differ"
    assert sentence(comparison).startswith("ally is not shown to differ from random on toy: ")
    assert "95% interval" in sentence(comparison)


def test_partial_grids():
    table = results()
    missing = table[~((table["strategy"] == "random") & (table["seed"] == 0))]
    assert compare(missing)[0].verdict == "better"
    one = compare(table[table["seed"] == 0])[0]
    assert one.verdict == "one seed: no interval"
    assert "one seed" in sentence(one)
    with pytest.raises(InputError, match="differ in batch within one data set"):
        compare(table.assign(batch=np.arange(len(table)) % 2))


def test_a_missing_baseline_is_an_error():
    table = results()
    with pytest.raises(InputError, match="toy has no results for 'random'"):
        compare(table[table["strategy"] == "ally"])


def test_the_page_escapes_and_needs_no_network(tmp_path):
    table = results().replace({"dataset": {"toy": "<b>toy</b>"}})
    draw_curves(table, tmp_path / "curves.png")
    write_page(tmp_path / "report.html", "A & B", ["x < y"], compare(table), tmp_path / "curves.png", {"k": "<i>"})
    page = (tmp_path / "report.html").read_text()
    assert "<b>toy" not in page
    assert "A &amp; B" in page
    assert "x &lt; y" in page
    assert 'src="http' not in page
