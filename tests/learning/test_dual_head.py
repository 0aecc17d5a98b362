from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from torch import nn

from ally.learning.dual_head import PaperHead, RidgeHead
from ally.learning.head_features import DoubtFeatures, EmbeddingFeatures, Labelled, NeighbourFeatures
from ally.learning.snapshot import View
from ally.rng import Streams

ALL = slice(None)


def labelled_of(snapshot):
    return Labelled(snapshot.labelled, snapshot.labels, snapshot.duals)


def hard_labelled(make_snapshot, task="classification", m=120):
    """λ grows with the doubt (classification) or with the first coordinate (regression)."""
    snapshot = make_snapshot(n=300, m=m, task=task)
    view = snapshot.labelled
    signal = 1 - view.probabilities.amax(1) if task == "classification" else view.embeddings[:, 0].exp()
    return snapshot, Labelled(view, snapshot.labels, signal.double() ** 2)


@pytest.mark.parametrize(("head", "quality"), [(RidgeHead(), 0.9), (PaperHead(), -0.6)])
def test_heads_predict_and_report(make_snapshot, head, quality):
    snapshot, labelled = hard_labelled(make_snapshot)
    fitted = head.fit(labelled, Streams(0))
    assert fitted(snapshot.candidates).shape == (300,)
    assert (fitted.duals(snapshot.candidates) >= 0).all()
    assert quality <= fitted.rank_quality <= 1
    again = head.fit(labelled, Streams(0))
    assert torch.equal(fitted(snapshot.candidates), again(snapshot.candidates))


def test_ridge_head_ranks_unseen_samples(make_snapshot):
    snapshot, labelled = hard_labelled(make_snapshot)
    predicted = RidgeHead().fit(labelled, Streams(0))(snapshot.candidates)
    truth = 1 - snapshot.candidates.probabilities.amax(1)
    assert spearmanr(predicted, truth).statistic > 0.9


def test_paper_head_learns_from_the_embedding(make_snapshot):
    snapshot, labelled = hard_labelled(make_snapshot, "regression", m=400)
    fitted = PaperHead().fit(labelled, Streams(0))
    assert spearmanr(fitted(snapshot.candidates), snapshot.candidates.embeddings[:, 0]).statistic > 0.8
    assert fitted.rank_quality > 0.6


def test_neighbours_learn_a_local_hardness(make_snapshot):
    snapshot = make_snapshot(n=300, m=300, d=2, task="regression")
    hardness = (snapshot.labelled.embeddings[:, 0] > 0).double() * 5 + 0.1
    fitted = RidgeHead().fit(Labelled(snapshot.labelled, snapshot.labels, hardness), Streams(0))
    truth = snapshot.candidates.embeddings[:, 0] > 0
    predicted = fitted(snapshot.candidates)
    assert float(predicted[truth].mean()) > float(predicted[~truth].mean()) + 0.5


def test_rank_quality_is_out_of_sample(make_snapshot):
    snapshot = make_snapshot(n=10, m=60, d=40, task="regression")
    noise = torch.rand(60, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for head in (RidgeHead(), PaperHead()):
        fitted = head.fit(Labelled(snapshot.labelled, snapshot.labels, noise), Streams(0))
        assert abs(fitted.rank_quality) < 0.5
    memorised = spearmanr(
        PaperHead(epochs=300).fit(Labelled(snapshot.labelled, snapshot.labels, noise), Streams(0))(snapshot.labelled),
        noise,
    )
    assert memorised.statistic > 0.6


def test_paper_head_has_the_papers_layers():
    net = PaperHead()._solve(torch.randn(40, 7).double(), torch.rand(40).double(), Streams(0)).net
    assert [layer.out_features for layer in net if isinstance(layer, nn.Linear)] == [128, 64, 64, 32, 16, 1]
    assert [layer.p for layer in net if isinstance(layer, nn.Dropout)] == [0.3, 0.25]
    assert sum(isinstance(layer, nn.BatchNorm1d) for layer in net) == 5


def test_paper_head_fits_the_dual_itself_and_stays_above_zero(make_snapshot):
    snapshot, labelled = hard_labelled(make_snapshot, "regression", m=400)
    fitted = PaperHead().fit(labelled, Streams(0))
    for view in (snapshot.candidates, replace(snapshot.candidates, embeddings=-20 * snapshot.candidates.embeddings)):
        assert (fitted(view) > 0).all()
    # Squared error to λ, not to its logarithm: the mean is met, and the long tail of e^(2 x) pulls hard enough to be
    # met as well.
    predicted = fitted.duals(snapshot.labelled)
    assert float(predicted.mean()) == pytest.approx(float(labelled.duals.mean()), rel=0.15)
    logs = torch.log1p(labelled.duals)
    assert (predicted - labelled.duals).square().mean() < 0.5 * (
        torch.expm1(logs.mean()) - labelled.duals
    ).square().mean()


def test_paper_head_minimises_nothing_but_the_squared_error():
    """No error depends on the weights of an input that is always 0, so they stay as they began; a decay would shrink
    them."""
    x = torch.cat([torch.zeros(60, 1), torch.randn(60, 3)], dim=1).double()
    duals = torch.rand(60).double()
    brief, long = (PaperHead(epochs=epochs)._solve(x, duals, Streams(0)).net[0].weight for epochs in (1, 8))
    assert torch.equal(long[:, 0], brief[:, 0])
    assert not torch.equal(long[:, 1:], brief[:, 1:])


def test_paper_head_does_not_depend_on_the_unit_of_the_dual(make_snapshot):
    snapshot, labelled = hard_labelled(make_snapshot)
    small, large = (
        PaperHead(epochs=5).fit(replace(labelled, duals=scale * labelled.duals), Streams(0)).duals(snapshot.candidates)
        for scale in (1.0, 1024.0)
    )
    np.testing.assert_allclose(large, 1024 * small, rtol=1e-6)


def test_paper_head_takes_the_embedding_as_it_is():
    """A sample of size 1 among ones of size 100 moves the output by its own share, which standardised inputs would not
    know."""
    x = torch.randn(60, 3, dtype=torch.float64)
    net = PaperHead(epochs=1)._solve(x, torch.rand(60).double(), Streams(0))
    first = net.net[0]
    torch.testing.assert_close(net.net[:1](x.float()), x.float() @ first.weight.T + first.bias)


def test_neighbour_features_equal_their_definition(make_snapshot):
    snapshot = make_snapshot(n=6, m=30, task="regression")
    labelled = labelled_of(snapshot)
    found = NeighbourFeatures(labelled)(snapshot.candidates, ALL)
    gaps = torch.cdist(snapshot.candidates.embeddings.double(), labelled.view.embeddings.double())
    spread = float(labelled.labels.std(correction=0))
    for row in range(6):
        near = gaps[row].argsort()[:8]
        around = labelled.labels[near].double() / spread
        gap = abs(float(snapshot.candidates.predictions[row]) / spread - float(around.mean()))
        expected = [gaps[row][near[0]], gaps[row][near[-1]], around.std(correction=0), gap]
        np.testing.assert_allclose(found[row, :4], np.log(np.asarray(expected, dtype=float) + 1e-3), rtol=1e-6)
        assert float(found[row, 4]) == pytest.approx(float(torch.log1p(labelled.duals[near]).mean()), rel=1e-5)


def test_ridge_equals_scikit_learn(make_snapshot):
    _, labelled = hard_labelled(make_snapshot)
    x = DoubtFeatures().of_labelled(labelled)
    duals = torch.rand(len(x), dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    standard = (x - x.mean(0)) / x.std(0, correction=0)
    for strength in (0.1, 10.0):
        ours = RidgeHead(strengths=(strength,))._solve(x, duals, Streams(0))(x)
        theirs = Ridge(strength).fit(standard, torch.log1p(duals)).predict(standard)
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_the_strength_is_chosen_by_leave_one_out(make_snapshot):
    _, labelled = hard_labelled(make_snapshot, m=40)
    x = DoubtFeatures().of_labelled(labelled)
    target = torch.log1p(labelled.duals)
    target = (target - target.mean()) / target.std(correction=0)
    standard = ((x - x.mean(0)) / x.std(0, correction=0)).numpy()
    head = RidgeHead()
    errors = []
    for strength in head.strengths:
        residuals = []
        for row in range(len(x)):
            rest = np.arange(len(x)) != row
            fit = Ridge(strength).fit(standard[rest], target.numpy()[rest])
            residuals.append(fit.predict(standard[row : row + 1])[0] - float(target[row]))
        errors.append(np.mean(np.square(residuals)))
    best = head.strengths[int(np.argmin(errors))]
    chosen, expected = (one._solve(x, labelled.duals, Streams(0))(x) for one in (head, RidgeHead(strengths=(best,))))
    np.testing.assert_allclose(chosen, expected)


def test_a_labelled_sample_is_not_its_own_neighbour(make_snapshot):
    snapshot = make_snapshot(m=30, task="regression")
    labelled = labelled_of(snapshot)
    features = NeighbourFeatures(labelled)
    own = features.of_labelled(labelled)
    naive = (
        torch.cdist(labelled.view.embeddings.double(), labelled.view.embeddings.double())
        .fill_diagonal_(torch.inf)
        .amin(1)
    )
    np.testing.assert_allclose(own[:, 0], (naive + 1e-3).log(), rtol=1e-6)
    assert (features(labelled.view, ALL)[:, 0] < np.log(2e-3)).all()


def test_few_labels_and_equal_duals(make_snapshot):
    for task in ("classification", "regression"):
        for m in (1, 2, 5):
            snapshot = make_snapshot(n=10, m=m, task=task)
            for head in (RidgeHead(), PaperHead(epochs=2)):
                fitted = head.fit(labelled_of(snapshot), Streams(0))
                assert torch.isfinite(fitted(snapshot.candidates)).all()
                assert fitted.rank_quality is None
        snapshot = make_snapshot(task=task)
        flat = RidgeHead().fit(Labelled(snapshot.labelled, snapshot.labels, torch.full((20,), 2.0)), Streams(0))
        np.testing.assert_allclose(flat.duals(snapshot.candidates), 2.0)


def test_certain_predictions_stay_finite():
    p = torch.eye(3)
    view = View(np.arange(3), torch.zeros(3, 2), p, p.argmax(1))
    assert torch.isfinite(DoubtFeatures()(view, ALL)).all()
    assert EmbeddingFeatures()(view, ALL).shape == (3, 2)
