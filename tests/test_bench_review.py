"""The parts of benchmarks/review.py, on small problems."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ally.data.catalogue import load
from ally.learning.objectives import ERM
from ally.rng import Streams
from ally.types import FloatArray

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "review.py"
STREAMS = Streams(0)


@pytest.fixture(scope="module")
def review() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        spec = importlib.util.spec_from_file_location("bench_review", SCRIPT)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "bench_review", module)
        spec.loader.exec_module(module)
        yield module


def precision_over_all_orders(scores: FloatArray, flipped: FloatArray) -> float:
    """The mean over every order of the samples that agrees with the scores."""
    orders = [
        list(order)
        for order in itertools.permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order))
    ]
    return float(np.mean([flipped[order[: int(flipped.sum())]].mean() for order in orders]))


@pytest.mark.parametrize("seed", range(8))
def test_precision_counts_ties_as_random_order(review: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, flipped = rng.integers(0, 3, size=6).astype(float), rng.permutation([True, True, True, False, False, False])
    assert review.precision(scores, flipped) == pytest.approx(precision_over_all_orders(scores, flipped))


def test_flipped_labels_are_wrong_and_others_are_kept(review: Any) -> None:
    y = np.repeat(np.arange(4.0), 2000)
    labels, flipped = review.flip(y, 4, np.random.default_rng(0))
    assert flipped.sum() == 400
    assert ((labels != y) == flipped).all()
    assert set(labels) == set(y)
    counts = np.bincount(((labels - y)[flipped] % 4).astype(int), minlength=4)
    assert counts.min(initial=400, where=[False, True, True, True]) > 100


def test_flipped_targets_are_those_of_other_samples(review: Any) -> None:
    y = np.random.default_rng(1).integers(0, 5, size=200).astype(float)
    labels, flipped = review.flip(y, None, np.random.default_rng(0))
    assert flipped.sum() == 10
    assert ((labels != y) == flipped).all()
    assert set(labels) <= set(y)


def test_plain_rankings_train_as_erm_and_average_the_losses_met(review: Any) -> None:
    case = review.Case("digits", 100, epochs=3)
    some = review.draw(load("digits"), case, STREAMS)
    met = np.zeros(100)

    class Noting(ERM):
        def start(self, problem: Any) -> Any:
            session = super().start(problem)
            plain = session.loss

            def loss(model: Any, batch: Any, unlabelled: Any) -> Any:
                met[batch.index] += problem.loss(model(batch.x), batch.targets).detach().numpy() / 3
                return plain(model, batch, unlabelled)

            session.loss = loss  # type: ignore[method-assign]
            return session

    fit = review.train(some, np.arange(100), Noting(), case, STREAMS)
    found = review.plain_rankings(some, case, STREAMS)
    np.testing.assert_array_equal(found["loss"][0], review.losses(fit, some, np.arange(100)))
    np.testing.assert_allclose(found["loss-mean"][0], met, rtol=1e-5)


def test_the_mean_dual_is_over_the_ends_of_all_epochs(review: Any) -> None:
    case = review.Case("digits", 100, epochs=3)
    some = review.draw(load("digits"), case, STREAMS)
    shorter = [replace(case, epochs=epochs) for epochs in (1, 2, 3)]
    after = [
        review.train(some, np.arange(100), review.DUALS, part, STREAMS).duals["labelled"].numpy() for part in shorter
    ]
    found = review.constrained_rankings(some, case, STREAMS)
    np.testing.assert_array_equal(found["dual"][0], after[-1])
    np.testing.assert_allclose(found["dual-mean"][0], np.mean(after, axis=0), rtol=1e-5)


def test_the_held_out_loss_of_a_sample_does_not_know_its_label(review: Any) -> None:
    case = review.Case("diabetes", 60, epochs=3)
    some = review.draw(load("diabetes"), case, STREAMS)
    labels = some.y.copy()
    labels[7] += 50.0
    before, after = (review.held_out_ranking(replace(some, y=y), case, STREAMS)[0][7] for y in (some.y, labels))
    prediction = (before - after - some.y[7] ** 2 + labels[7] ** 2) / (2 * (labels[7] - some.y[7]))
    assert (prediction - some.y[7]) ** 2 == pytest.approx(before, rel=1e-4)


@pytest.mark.parametrize("data", ["digits", "diabetes"])
def test_asked_samples_are_exactly_n_of_the_pool(review: Any, data: str) -> None:
    pool = load(data)
    labels = np.asarray(pool.pool_labels, dtype=float)
    rows = review.ask(pool, labels, 55, STREAMS)
    assert len(np.unique(rows)) == 55
    assert set(STREAMS.numpy("samples").permutation(len(labels))[:11]) < set(rows)
    some = review.draw(pool, review.Case(data, 55, chosen="ally"), STREAMS)
    assert len(some.y) == len(some.flipped) == 55
    assert some.flipped.any()


def test_smoke_scale_finds_flipped_labels_and_is_not_run_twice(
    review: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "review.csv"
    monkeypatch.setattr(sys, "argv", ["review.py", "--scale", "smoke", "--out", str(out)])
    review.main()
    first = out.read_text()
    results = pd.read_csv(out)
    assert len(results) == 2 * len(review.METHODS)
    assert results["precision"].between(0, 1).all()
    quality = results.groupby("method")["average_precision"].mean()
    assert quality["random"] < 0.3
    assert (quality.drop("random") > 0.5).all()
    assert capsys.readouterr().out.count("seed 0") == 2
    review.main()
    assert out.read_text() == first
    assert "seed 0" not in capsys.readouterr().out
