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
    np.testing.assert_allclose(Entropy()(snapshot, Streams(0)).values, entropy(snapshot.candidates.probabilities.double()))
    np.testing.assert_allclose(Margin()(snapshot, Streams(0)).values, margin(snapshot.candidates.probabilities.double()))


def test_random_is_seeded(make_snapshot):
    a, b, c = (Random()(make_snapshot(), Streams(seed)).values for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_predicted_dual_reads_pool_duals_directly(make_snapshot):
    s = make_snapshot(n=3)
    snapshot = Snapshot(s.task, s.candidates, s.labelled, s.labels, s.duals, torch.tensor([0.0, 3.0, 1.0]))
    np.testing.assert_allclose(PredictedDual()(snapshot, Streams(0)).values, np.log1p([0, 3, 1]))


def test_cap_makes_the_highest_equal(make_snapshot):
    free = PredictedDual()(make_snapshot(), Streams(0)).values
    capped = PredictedDual(cap=0.9)(make_snapshot(), Streams(0)).values
    assert int((capped == capped.max()).sum()) >= 20
    assert torch.equal(capped[free < capped.max()], free[free < capped.max()])
    with pytest.raises(InputError, match="is not a quantile"):
        PredictedDual(cap=1.5)


def test_a_ceiling_is_a_value_of_the_dual(make_snapshot):
    s = make_snapshot(n=3)
    snapshot = Snapshot(s.task, s.candidates, s.labelled, s.labels, s.duals, torch.tensor([0.0, 3.0, 1.0]))
    np.testing.assert_allclose(PredictedDual(ceiling=2.0)(snapshot, Streams(0)).values, np.log1p([0, 2, 1]))
    with pytest.raises(InputError, match="ceiling=0 must be a finite number > 0"):
        PredictedDual(ceiling=0)


def test_equal_duals_give_equal_scores(make_snapshot):
    s = make_snapshot()
    scored = PredictedDual()(Snapshot(s.task, s.candidates, s.labelled, s.labels, torch.zeros(20)), Streams(0))
    assert float(scored.values.std()) == 0
    assert scored.report["rank_quality"] is None


def test_views_hold_their_rows(make_snapshot):
    view = make_snapshot().candidates
    assert isinstance(view, View)
    assert len(view) == 200
