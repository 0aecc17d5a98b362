from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor

import ally
from ally.errors import InputError
from ally.experiment import COLUMNS, Cell, Trial, run_cells, simulate
from ally.experiment.protocol import PROTOCOLS, protocol_of, under
from ally.experiment.simulate import campaign
from ally.experiment.workers import work_through
from ally.learning.training import Training
from ally.metrics import metric_named
from ally.testing.pools import blobs

TRAINING = Training(epochs=5, batch_size=16)


def trial(name="classification"):
    scene = blobs(name, n=120, labelled=120)
    return Trial(name, name, scene.X[:80], scene.y[:80], scene.X[80:], scene.y[80:])


def cell(strategy="margin", seed=0, **more):
    return Cell(strategy, seed, init=10, batch=5, rounds=3, model="linear-network", training=TRAINING, **more)


def test_labels_are_counted_and_rounds_follow():
    records = list(simulate(trial(), cell()))
    assert [r.labels for r in records] == [10, 15, 20, 25]
    assert [r.round for r in records] == [0, 1, 2, 3]
    assert {r.metric for r in records} == {"accuracy"}
    assert all(0 <= r.value <= 1 for r in records)
    assert records[-1].query_seconds == 0


def test_results_are_repeatable_but_for_the_timings():
    def clean(records):
        return [(r.labels, r.value) for r in records]

    assert clean(simulate(trial(), cell("ally"))) == clean(simulate(trial(), cell("ally")))


def test_strategies_share_the_start_and_the_initial_weights():
    first = {
        strategy: next(iter(simulate(trial(), cell(strategy)))).value
        for strategy in ("random", "margin", "badge", "coreset")
    }
    assert len(set(first.values())) == 1


def test_hidden_labels_come_only_from_the_oracle(monkeypatch):
    seen = []
    original = ally.Loop.__init__

    def spy(self, X, y=None, **arguments):
        seen.append(np.asarray(y, dtype=object))
        original(self, X, y, **arguments)

    monkeypatch.setattr(ally.Loop, "__init__", spy)
    list(simulate(trial(), cell()))
    assert sum(label is not None for label in seen[0]) == 10


def test_regression_is_measured_in_the_targets_units():
    records = list(simulate(trial("regression"), cell("coreset")))
    assert {r.metric for r in records} == {"rmse"}
    assert records[0].value > 0


def test_candidates_restrict_what_is_asked():
    records = list(simulate(trial(), cell(candidates=20)))
    assert records[-1].labels == 25
    with pytest.raises(
        InputError, match="3 x 5 labels are more than the 12 candidates; raise candidates or lower rounds"
    ):
        list(simulate(trial(), cell(candidates=12)))


def test_hygiene_is_that_of_a_query():
    data = trial()
    copied = replace(data, pool=np.repeat(data.pool[:40], 2, axis=0), pool_labels=np.repeat(data.pool_labels[:40], 2))
    both = cell("entropy"), cell("entropy", hygiene=ally.Hygiene())
    asked = [[row // 2 for done in campaign(copied, one) for row in done.asked] for one in both]
    assert len(set(asked[0])) < 15
    assert len(set(asked[1])) == 15


def test_a_leading_campaign_takes_time():
    records = list(simulate(trial(), cell("margin", asks_as="margin")))
    assert all(record.query_seconds > 0 for record in records[:-1])
    assert records[-1].query_seconds == 0


def test_a_part_of_the_test_set_is_the_same_for_all():
    parts = [trial().measured_on(12).test for _ in range(2)]
    assert parts[0].shape == (12, 4)
    np.testing.assert_array_equal(*parts)
    whole, part = (next(iter(simulate(trial(), cell(test=count)))).value for count in (None, 12))
    assert part * 12 == round(part * 12)
    assert whole * 40 == round(whole * 40)


def test_protocol_and_duals_are_recorded():
    early = Training(epochs=30, batch_size=16, patience=2)
    last = list(simulate(trial(), replace(cell("ally-clusters"), training=early, validation=20)))
    assert {r.protocol for r in last} == {"paper"}
    assert all(0 <= r.positive_duals <= 1 for r in last)
    assert last[-1].rank_quality is None
    assert [r.labels for r in last] == [30, 35, 40, 45]
    enough = list(simulate(trial(), replace(cell("ally-clusters"), init=30)))
    assert {r.protocol for r in enough} == {"fixed"}
    assert all(-1 <= r.rank_quality <= 1 for r in enough[:-1])
    plain = list(simulate(trial(), cell("margin")))
    assert {(r.positive_duals, r.rank_quality) for r in plain} == {(None, None)}


def test_protocols_are_recognised_by_their_settings():
    fixed = Training(epochs=7)
    assert {name: protocol_of(*under(name, fixed, 50)) for name in PROTOCOLS} == {name: name for name in PROTOCOLS}
    assert under("fixed", fixed, 50) == (fixed, 0)
    assert under("early-duals", fixed, 50)[0].epochs == 7
    assert protocol_of(Training(), 50) == "patience 10"


def test_too_many_labels():
    told = "10 \\+ 9 x 20 labels are more than the pool of 80 .*; lower init, validation, rounds or batch"
    with pytest.raises(InputError, match=told):
        next(simulate(trial(), Cell("random", 0, init=10, batch=20, rounds=9)))


TIMINGS = ["train_seconds", "query_seconds"]


def test_processes_give_the_same_numbers_in_the_order_of_the_cells():
    cells = [("classification", cell("margin", seed)) for seed in (1, 0)] + [("regression", cell("coreset"))]
    table = run_cells(trial, cells, workers=2)
    assert list(table) == COLUMNS
    here = run_cells(trial, cells, workers=0)
    pd.testing.assert_frame_equal(table.drop(columns=TIMINGS), here.drop(columns=TIMINGS))
    alone = [r.value for r in simulate(trial(), cell("margin", 0))]
    assert table[(table["strategy"] == "margin") & (table["seed"] == 0)]["value"].tolist() == alone
    assert list(table["dataset"].unique()) == ["classification", "regression"]


def test_a_failing_cell_is_an_error():
    with pytest.raises(ally.errors.UnknownName):
        run_cells(trial, [("classification", cell("nope"))], workers=0)


def test_errors_come_back_from_processes():
    """By a call that needs no pool, so that its process imports little."""
    (ended,) = filter(None, work_through(metric_named, [("nope",)], processes=1))
    assert ended.result is None
    with pytest.raises(ally.errors.UnknownName, match="unknown metric 'nope'"):
        raise ended.error


@pytest.mark.parametrize("model", ["extra-trees", ExtraTreesRegressor(20)], ids=["name", "estimator"])
def test_estimators_are_compared_as_networks_are(model):
    found = replace(cell("lcmd"), model=model)
    records = list(simulate(trial("regression"), found))
    assert [r.labels for r in records] == [10, 15, 20, 25]
    assert records[0].model in ("extra-trees", "ExtraTreesRegressor(n_estimators=20)")
    assert records[-1].value < records[0].value
    assert found.key("d") == replace(cell("lcmd"), model=model).key("d")


def test_auto_is_chosen_again_as_labels_grow():
    """With 8 labels there is nothing to choose by; with 14 there is."""
    first, *_, last = [r.learner for r in simulate(trial(), replace(cell("random"), model="auto", init=8, batch=6))]
    assert first == "linear"
    assert last != "linear"


def test_a_campaign_that_chooses_again_resumes_with_the_same_choices():
    """Labels are 10, 14, 18, 22: chosen with 10 and 18, and kept with 22, where it is resumed."""
    one = replace(cell("random"), model="auto", init=10, batch=4, rounds=3)
    whole = list(campaign(trial(), one))
    rest = list(campaign(trial(), one, whole[:3]))
    assert [(r.record.learner, r.record.value) for r in rest] == [(r.record.learner, r.record.value) for r in whole[3:]]
