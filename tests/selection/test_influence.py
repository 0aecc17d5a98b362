"""Influence on the pool against its plain form: the kernel conditioned by a full inverse, every gain from its sum."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ally.execution.engine import LocalEngine
from ally.features import ProductRows
from ally.rng import Streams
from ally.selection import relevance
from ally.selection.base import Limits
from ally.selection.herding import coverage_weights
from ally.selection.influence import (
    Conditioned,
    Doubt,
    Influence,
    columns,
    distances,
    evidence,
    greedy,
)
from ally.selection.points import Points


def kernel(x, z, square):
    return np.exp(-((x[:, None, :] - z[None, :, :]) ** 2).sum(2) / square)


def naive(x, known, weights, reps, n, square, noise):
    """Picks and values by the definition, one conditioning from scratch for every pick."""
    given, picks, values = known, [], []
    for _ in range(n):
        inverse = np.linalg.inv(kernel(given, given, square) + noise * np.eye(len(given)))
        across, every = kernel(x, given, square), kernel(x, x, square)
        left = every - across @ inverse @ across.T
        others = np.where(np.eye(len(x), dtype=bool), 0.0, left)[:, reps]
        gain = weights * (others**2 @ weights[reps]) / (np.diag(left) + noise)
        gain[picks] = -1
        picks.append(int(gain.argmax()))
        values.append(gain.max() / weights[reps].sum())
        given = np.concatenate([given, x[picks[-1:]]])
    return picks, values


@pytest.mark.parametrize("known", [0, 12])
def test_greedy_equals_the_definition(known):
    rng = np.random.default_rng(known)
    x, z, weights = rng.normal(size=(150, 3)), rng.normal(size=(known, 3)), rng.random(150)
    reps = np.sort(rng.permutation(150)[:60])
    points = Points(ProductRows((torch.from_numpy(x),)), False)
    found, values = greedy(Doubt(Conditioned((z,), 2.0, 0.1), points, weights, reps), (x,), np.arange(150), 25)
    expected, gains = naive(x, z, weights, reps, 25, 2.0, 0.1)
    assert found.tolist() == expected
    np.testing.assert_allclose(values, gains, rtol=1e-5)


def test_the_selection_is_that_greedy(make_snapshot):
    snapshot = make_snapshot(n=120, m=8, d=4)
    scores = torch.rand(120, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chosen = Influence(width=1.5, representatives=200)(snapshot, scores, 10, Streams(0), Limits())
    x, z = (view.embeddings.double().numpy() for view in (snapshot.candidates, snapshot.labelled))
    expected, gains = naive(x, z, coverage_weights(scores).numpy(), np.arange(120), 10, 1.5**2, 0.1)
    assert chosen.rows.tolist() == snapshot.candidates.rows[expected].tolist()
    np.testing.assert_allclose(chosen.values, gains, rtol=1e-5)


def test_neither_shards_nor_threads_change_the_picks(make_snapshot):
    snapshot = make_snapshot(n=5000, m=20, d=6)
    scores = torch.rand(5000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    select = Influence(shortlist=300, representatives=200)
    one, *others = (
        select(snapshot, scores, 20, Streams(3), Limits(engine=LocalEngine(threads=threads, shards=parts)))
        for threads, parts in ((1, 1), (1, 3), (2, 5))
    )
    for other in others:
        assert (other.rows == one.rows).all()
        assert (other.values == one.values).all()


def test_the_shortlist_holds_the_largest_first_gains(make_snapshot):
    snapshot = make_snapshot(n=3000, m=20, d=6)
    scores = torch.rand(3000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    everyone, few = (Influence(shortlist=size)(snapshot, scores, 1, Streams(3), Limits()) for size in (3000, 4))
    assert few.rows.tolist() == everyone.rows.tolist()


def test_copies_and_equal_scores_still_give_n_distinct_picks(make_snapshot):
    snapshot = make_snapshot(n=50, m=3, d=2)
    snapshot.candidates.embeddings[:] = 1.0
    chosen = Influence()(snapshot, torch.zeros(50, dtype=torch.float64), 50, Streams(0), Limits())
    assert sorted(chosen.rows.tolist()) == snapshot.candidates.rows.tolist()
    assert np.isfinite(chosen.values).all()


def test_few_uncertain_samples_are_found_in_a_large_pool(make_snapshot):
    snapshot = make_snapshot(n=300, m=8, d=4)
    scores = torch.zeros(300, dtype=torch.float64)
    scores[[17, 290]] = 1.0
    found = Influence(representatives=5)(snapshot, scores, 4, Streams(0), Limits())
    assert set(found.rows[:2]) == set(snapshot.candidates.rows[[17, 290]])
    assert np.isfinite(found.values).all()


def test_once_the_rest_is_certain_what_tells_most_about_it_is_next():
    x = np.asarray([[5.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.3, 0.0], [1.5, 0.0]])
    points = Points(ProductRows((torch.from_numpy(x),)), False)
    doubt = Doubt(Conditioned((np.empty((0, 2)),), 2.0, 0.1), points, np.asarray([0, 0, 1.0, 0, 0]), np.asarray([2]))
    found, values = greedy(doubt, (x,), np.arange(5), 3)
    # The only uncertain sample does not count itself, so nothing has a gain: it comes first, then its neighbour.
    assert found[:2].tolist() == [2, 3]
    assert len(set(found.tolist())) == 3
    assert values.tolist() == [0, 0, 0]


def test_a_far_off_sample_in_great_doubt_is_not_asked_about(make_snapshot):
    snapshot = make_snapshot(n=200, m=10, d=3)
    snapshot.candidates.embeddings[:5] += 1000.0 * torch.arange(1, 6)[:, None]
    scores = torch.full((200,), 0.5, dtype=torch.float64)
    scores[:5] = 1.0
    chosen = Influence()(snapshot, scores, 20, Streams(0), Limits())
    assert not set(chosen.rows.tolist()) & set(snapshot.candidates.rows[:5].tolist())


def test_the_width_is_the_likeliest_for_the_labels():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(200, 2))
    squared = distances((x,), (x,))
    for wave, wide in ((0.5, True), (4.0, False)):
        targets = columns(np.sin(wave * x[:, 0]), "regression")
        assert (evidence(squared, targets, 8.0, 0.1) > evidence(squared, targets, 0.25, 0.1)) == wide


def test_evidence_ranks_as_the_gaussian_likelihood_does():
    """At the best scale of the kernel, found here by trying many."""
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    squared, targets = distances((x,), (x,)), columns(y, "regression")
    found, best = [], []
    for square in (0.3, 1.0, 4.0):
        covariance = np.exp(-squared / square) + 0.1 * np.eye(40)
        scales = np.geomspace(0.05, 20, 4000)
        best.append(max(multivariate_normal.logpdf(targets[:, 0], cov=s * covariance) for s in scales[::40]))
        found.append(evidence(squared, targets, square, 0.1))
    np.testing.assert_allclose(np.diff(found), np.diff(best), atol=0.02)


def test_relevance_is_the_best_by_finite_differences():
    """f against its naive twin, and the slope against differences of it."""
    rng = np.random.default_rng(2)
    x, y, r = rng.normal(size=(15, 3)), rng.normal(size=(15, 2)), np.array([0.5, 1.0, 2.0])
    y -= y.mean(0)

    def naive_fit(r):
        covariance = np.exp(-(r * (x[:, None] - x[None]) ** 2).sum(2)) + 0.1 * np.eye(15)
        q = np.trace(y.T @ np.linalg.inv(covariance) @ y) / y.size
        return 2 * (0.5 * 15 * np.log(q) + 0.5 * np.linalg.slogdet(covariance)[1])

    found, slope = relevance.fit(x, y, r, 0.1)
    assert found == pytest.approx(naive_fit(r))
    steps = 1e-5 * np.eye(3)
    differences = [(naive_fit(r * np.exp(step)) - naive_fit(r * np.exp(-step))) / 2e-5 for step in steps]
    np.testing.assert_allclose(slope, differences, rtol=1e-5)


def test_columns_that_explain_the_labels_count_more():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(80, 5))
    scales = relevance.column_scales(x, columns(np.sin(2 * x[:, 1]) + x[:, 3], "regression"), 0.1, 1.0)
    assert set(np.argsort(scales)[-2:].tolist()) == {1, 3}
    assert np.square(scales).mean() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((30, 3)), np.arange(30.0)),
        (np.arange(90.0).reshape(30, 3), np.ones(30)),
        (np.ones((5, 3)), np.arange(5.0)),
        (np.arange(30.0)[:, None], np.arange(30.0)),
        (np.random.default_rng(0).normal(size=(30, 65)), np.arange(30.0)),
    ],
    ids=["one point", "one label", "few labels", "one column", "many columns"],
)
def test_without_evidence_columns_count_the_same(x, y):
    assert relevance.column_scales(x, columns(y, "regression"), 0.1, 1.0) is None


def test_noise_leaves_columns_about_the_same():
    rng = np.random.default_rng(4)
    scales = relevance.column_scales(rng.normal(size=(60, 4)), columns(rng.normal(size=60), "regression"), 0.1, 1.0)
    assert scales.max() / scales.min() < 3


def test_an_embedding_learned_from_the_labels_is_left_as_it_is(make_snapshot):
    snapshot = make_snapshot(n=100, m=40, task="regression")
    labels = snapshot.labelled.embeddings[:, 0].double()
    fixed, learned = (replace(snapshot, labels=labels, learned=learned) for learned in (False, True))
    scores, rest = torch.ones(100, dtype=torch.float64), (20, Streams(0), Limits())
    equal = Influence(relevance=0.0)(fixed, scores, *rest).rows.tolist()
    assert Influence()(learned, scores, *rest).rows.tolist() == equal
    assert Influence()(fixed, scores, *rest).rows.tolist() != equal


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e140])
def test_numbers_are_standardised_at_any_scale(scale):
    found = columns(scale * np.array([1.0, 2.0, 4.0]), "regression")
    np.testing.assert_allclose(found, columns(np.array([1.0, 2.0, 4.0]), "regression"))
    assert found.std() == pytest.approx(1.0)
    assert found.mean() == pytest.approx(0.0, abs=1e-12)
    assert not columns(np.full(3, scale), "regression").any()
