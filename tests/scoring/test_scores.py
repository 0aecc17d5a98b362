import numpy as np
import pytest
import torch
from scipy.special import log_softmax
from scipy.stats import entropy as scipy_entropy

from ally.errors import InputError
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring import Entropy, Margin, PredictedDual, Random
from ally.scoring.uncertainty import entropy, margin


def test_entropy_and_margin_equal_their_definitions():
    p = torch.rand(500, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    p /= p.sum(1, keepdim=True)
    np.testing.assert_allclose(entropy(p), scipy_entropy(p, axis=1), rtol=1e-12)
    top = np.sort(p.numpy(), axis=1)
    np.testing.assert_allclose(margin(p), 1 - (top[:, -1] - top[:, -2]), rtol=1e-12)


def test_entropy_of_certainty_is_zero():
    p = torch.eye(3, dtype=torch.float64)
    assert entropy(p).tolist() == [0, 0, 0]
    assert margin(p).tolist() == [0, 0, 0]


def test_confident_samples_keep_their_order_in_float32():
    logits = np.stack([np.asarray([20.0 + k, 0.0, -1.0]) for k in range(40)])
    p = torch.from_numpy(np.exp(log_softmax(logits, axis=1)).astype(np.float32)).double()
    assert (np.diff(entropy(p)) < 0).all()
    assert (np.diff(margin(p)) < 0).all()


def test_scores_read_the_candidates(make_snapshot):
    snapshot = make_snapshot()
    np.testing.assert_allclose(
        Entropy()(snapshot, Streams(0)).scores, entropy(snapshot.candidates.probabilities.double())
    )
    np.testing.assert_allclose(
        Margin()(snapshot, Streams(0)).scores, margin(snapshot.candidates.probabilities.double())
    )


def test_random_is_seeded(make_snapshot):
    a, b, c = (Random()(make_snapshot(), Streams(seed)).scores for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_predicted_dual_reads_pool_duals_directly(make_snapshot):
    s = make_snapshot(n=3)
    snapshot = Snapshot(s.task, s.candidates, s.labelled, s.labels, s.duals, torch.tensor([0.0, 3.0, 1.0]))
    np.testing.assert_allclose(PredictedDual()(snapshot, Streams(0)).scores, np.log1p([0, 3, 1]))


def test_a_cap_is_a_quantile_of_the_labelled_duals(make_snapshot):
    snapshot = make_snapshot()
    free, capped = (PredictedDual(cap=cap)(snapshot, Streams(0)) for cap in (None, 0.8))
    assert torch.equal(free.scores, capped.scores)
    assert free.bound == np.inf
    assert "bound" not in free.report
    quantile = np.quantile(snapshot.duals.double(), 0.8)
    assert capped.bound == pytest.approx(np.log1p(quantile), abs=1e-8)
    assert capped.report["bound"] == pytest.approx(quantile)
    assert PredictedDual(cap=0.8, ceiling=quantile / 2)(snapshot, Streams(0)).report["bound"] == quantile / 2
    with pytest.raises(InputError, match="is not a quantile"):
        PredictedDual(cap=1.5)


def test_a_ceiling_is_a_value_of_the_dual(make_snapshot):
    s = make_snapshot(n=3)
    snapshot = Snapshot(s.task, s.candidates, s.labelled, s.labels, s.duals, torch.tensor([0.0, 3.0, 1.0]))
    scored = PredictedDual(ceiling=2.0)(snapshot, Streams(0))
    np.testing.assert_allclose(scored.scores, np.log1p([0, 3, 1]))
    assert scored.bound == pytest.approx(np.log1p(2))
    with pytest.raises(InputError, match="ceiling=0 must be a finite number > 0"):
        PredictedDual(ceiling=0)


@pytest.mark.parametrize("dual", [0.0, 0.1, 3.7])
def test_equal_duals_are_never_above_the_bound(make_snapshot, dual):
    s = make_snapshot()
    for pool in (None, torch.full((200,), dual)):
        scored = PredictedDual(cap=0.5)(
            Snapshot(s.task, s.candidates, s.labelled, s.labels, torch.full((20,), dual), pool), Streams(0)
        )
        assert bool((scored.scores <= scored.bound).all())


def test_equal_duals_give_equal_scores(make_snapshot):
    s = make_snapshot()
    scored = PredictedDual()(Snapshot(s.task, s.candidates, s.labelled, s.labels, torch.zeros(20)), Streams(0))
    assert float(scored.scores.std()) == 0
    assert scored.report["rank_quality"] is None


def test_views_hold_their_rows(make_snapshot):
    view = make_snapshot().candidates
    assert isinstance(view, View)
    assert len(view) == 200
