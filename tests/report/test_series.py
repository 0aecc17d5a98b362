import pandas as pd
from report_grids import rows

from ally.report import add_series, compare
from ally.report.statistics.series import baseline_for, series_of, short_names

LONG = "PDCL(eps={}, dual_lr=0.05, shape=(1, 2))"


def series(*variants):
    table = pd.concat(
        [rows({(strategy, 0): [0.5, 0.6]}, **columns) for strategy, columns in variants], ignore_index=True
    )
    return add_series(table)


def test_a_plain_grid_is_named_by_strategy():
    table = series(("ally", {"objective": "pdcl"}), ("random", {"objective": "erm"}))
    assert series_of(table) == ["ally", "random"]


def test_what_varies_is_named_once():
    table = series(
        ("margin", {"setting": "erm", "objective": "erm"}),
        ("margin", {"setting": "pdcl-unlabelled", "objective": "pdcl-unlabelled"}),
        ("random", {"setting": "erm", "objective": "erm"}),
    )
    assert series_of(table) == ["margin · erm", "margin · pdcl-unlabelled", "random · erm"]


def test_settings_batches_models_and_objectives():
    assert series_of(series(("ally", {"setting": "k = 20"}), ("ally", {"setting": ""}), ("random", {}))) == [
        "ally · k = 20",
        "ally",
        "random",
    ]
    assert series_of(series(("ally", {"batch": 200}), ("ally", {"batch": 1000}))) == [
        "ally · batch 200",
        "ally · batch 1000",
    ]
    assert series_of(series(("ally", {"model": "mlp"}), ("ally", {"model": "cnn"}))) == ["ally · mlp", "ally · cnn"]
    two = series(
        ("ally", {"objective": LONG.format(0.1)}),
        ("ally", {"objective": LONG.format(0.2)}),
        ("random", {"objective": "erm"}),
    )
    assert series_of(two) == ["ally · PDCL(eps=0.1)", "ally · PDCL(eps=0.2)", "random · erm"]


def test_data_sets_do_not_shape_each_other():
    table = series(
        ("ally", {"dataset": "a", "batch": 5}),
        ("ally", {"dataset": "b", "batch": 9}),
        ("ally", {"dataset": "b", "batch": 8}),
    )
    assert series_of(table) == ["ally", "ally · batch 9", "ally · batch 8"]


def test_rows_keep_their_order_and_index():
    table = pd.concat(
        [
            rows({("a", 0): [0.1]}, dataset="x"),
            rows({("b", 0): [0.2]}, dataset="y"),
            rows({("c", 0): [0.3]}, dataset="x"),
        ]
    )
    table.index = [7, 5, 9]
    named_table = add_series(table)
    assert named_table["series"].tolist() == ["a", "b", "c"]
    assert named_table.index.tolist() == [7, 5, 9]
    assert add_series(named_table) is named_table


def test_short_names_stay_distinct():
    assert short_names(["F(a=1, b=(2, 3))", "F(a=1, b=(2, 4))", "G(x=1)", "plain"]) == {
        "F(a=1, b=(2, 3))": "F(b=(2, 3))",
        "F(a=1, b=(2, 4))": "F(b=(2, 4))",
        "G(x=1)": "G",
        "plain": "plain",
    }
    assert short_names(["F(a=1)", "F"]) == {"F(a=1)": "F(a=1)", "F": "F"}
    assert short_names(["G(a=1)", "F(a)", "F"])["F(a)"] == "F(a)"


def test_each_series_meets_the_baseline_of_its_own_conditions():
    columns = [{"batch": 200}, {"batch": 1000}]
    table = series(
        *[(name, own) for name in ("ally", "random") for own in columns], ("bait", {"batch": 200, "setting": "few"})
    )
    names = series_of(table)
    assert names == [
        "ally · batch 200",
        "ally · batch 1000",
        "random · batch 200",
        "random · batch 1000",
        "bait · few · batch 200",
    ]
    found = {name: baseline_for(table, name, "random") for name in names}
    assert found["ally · batch 1000"] == "random · batch 1000"
    assert found["bait · few · batch 200"] == "random · batch 200"
    assert found["random · batch 200"] == "random · batch 200"
    assert baseline_for(table, "ally · batch 1000", "random · batch 200") == "random · batch 200"
    assert baseline_for(table, "ally · batch 200", "badge") is None
    assert {c.strategy: c.baseline for c in compare(table)}["ally · batch 1000"] == "random · batch 1000"
