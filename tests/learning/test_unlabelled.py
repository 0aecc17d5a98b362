"""Constraints that need no label."""

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import ally
from ally.errors import InputError
from ally.learning.learner import Learner
from ally.learning.objectives import ERM, PDCL, PDCLUnlabelled
from ally.learning.selfsupervised import (
    SELF_SUPERVISED,
    Consistency,
    Mask,
    Noise,
    PredictiveEntropy,
    Reconstruction,
    Shift,
    Smoothness,
    divergence,
)
from ally.learning.training import Examples, Training, Unlabelled
from ally.models import MLP, Split
from ally.rng import Streams
from ally.sources import as_source
from ally.testing.pools import blobs


@dataclass(frozen=True)
class SquaredOutput:
    """ℓ'(x) = f(x)²: convex for a linear model."""

    def __call__(self, model, x, outputs):
        return outputs.squeeze(1).square()


def linear(shape, outputs):
    return MLP(shape, outputs, hidden=()).double()


@pytest.fixture(scope="module")
def convex():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 4))
    y = X[:12] @ rng.normal(size=4)
    y = (y - y.mean()) / y.std()
    return X, y


def test_duals_on_the_pool_converge_to_the_convex_solution(convex):
    X, y = convex
    w, b = cp.Variable(4), cp.Variable()
    constraints = [cp.square(X[i] @ w + b) <= 0.8 for i in range(30)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X[:12] @ w + b - y) / 12), constraints)
    problem.solve()
    expected = 30 * np.asarray([float(c.dual_value) for c in constraints])
    objective = PDCLUnlabelled(
        SquaredOutput(), eps=0.8, weights="moved", dual_init=0.0, dual_lr=0.2, dual_decay=0.0, warmup=0.0, batch=18, steps=1
    )
    learner = Learner(linear, "regression", None, Training(lr=0.01, lr_decay=1.0, epochs=12_000, batch_size=12, device="cpu"))
    fit = learner.fit(Examples(X[:12], y), objective, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(12, 30)))
    found = torch.cat([fit.duals["labelled"], fit.duals["unlabelled"]]).numpy()
    assert 2 <= (expected > 1e-3).sum() <= 10
    assert (expected[12:] > 1e-3).any()
    np.testing.assert_allclose(found, expected, atol=5e-3 * expected.max())
    np.testing.assert_allclose(fit.model.head.weight.detach().numpy()[0], w.value, atol=5e-3)


def test_a_price_makes_the_constraint_give(convex):
    X, y = convex
    learner = Learner(linear, "regression", None, Training(lr=0.01, lr_decay=1.0, epochs=4000, batch_size=12, device="cpu"))
    hard = PDCLUnlabelled(
        SquaredOutput(), eps=0.8, weights="moved", dual_init=0.0, dual_lr=0.2, dual_decay=0.0, warmup=0.0, batch=18, steps=1
    )
    total = {}
    for name, objective in (("hard", hard), ("priced", replace(hard, price=1.0)), ("capped", replace(hard, dual_cap=0.5))):
        fit = learner.fit(Examples(X[:12], y), objective, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(12, 30)))
        total[name] = float(fit.duals["labelled"].sum() + fit.duals["unlabelled"].sum())
    assert total["priced"] < 0.8 * total["hard"]
    assert total["capped"] < total["hard"]


def test_smoothness_finds_the_worst_direction_in_two_dimensions():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh())
    model = Split(net, nn.Linear(16, 3)).double().eval()
    x = torch.randn(40, 2, dtype=torch.float64)
    outputs = model(x)
    radius = 0.05
    angles = torch.linspace(0, 2 * torch.pi, 721)
    ring = torch.stack([angles.cos(), angles.sin()], 1).double()
    with torch.no_grad():
        worst = torch.stack([divergence(outputs, model(x + radius * r)) for r in ring]).amax(0)
        found = Smoothness(radius=radius, iterations=8)(model, x, outputs)
        once = Smoothness(radius=radius, iterations=1)(model, x, outputs)
    assert float((found / worst).median()) > 0.98
    assert float((once / worst).median()) > 0.6
    assert (found <= worst * 1.001).all()


def test_the_direction_leaves_the_model_as_it_was():
    model = MLP((3,), 2, (8,))
    before = [p.requires_grad for p in model.parameters()]
    unit = Smoothness().direction(model, torch.randn(5, 3), model(torch.randn(5, 3)))
    assert [p.requires_grad for p in model.parameters()] == before
    assert all(p.grad is None for p in model.parameters())
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(5))


def test_losses_equal_their_definitions():
    model = MLP((3,), 4, (8,))
    x = torch.randn(6, 3)
    outputs, other = model(x), torch.randn(6, 4)
    kl = F.kl_div(other.log_softmax(1), outputs.softmax(1), reduction="none").sum(1)
    torch.testing.assert_close(divergence(outputs, other), kl)
    torch.testing.assert_close(divergence(outputs[:, :1], other[:, :1]), (outputs[:, 0] - other[:, 0]).square())
    torch.testing.assert_close(PredictiveEntropy()(model, x, outputs), torch.distributions.Categorical(logits=outputs).entropy())
    assert (Consistency(Noise(0.0))(model, x, outputs).abs() < 1e-6).all()
    built = Reconstruction(hidden=0).build(model, x)
    expected = (built.decoder(model.backbone(x)) - x).square().mean(1)
    torch.testing.assert_close(built(model, x, outputs), expected)


def test_shift_moves_whole_images_and_repeats_borders():
    torch.manual_seed(0)
    x = torch.arange(2 * 3 * 5 * 4, dtype=torch.float32).view(2, 3, 5, 4).repeat(40, 1, 1, 1)
    moved = Shift(pixels=1)(x)
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    choices = torch.stack([padded[:, :, i : i + 5, j : j + 4] for i in range(3) for j in range(3)])
    same = (choices == moved).flatten(2).all(2)
    assert same.any(0).all()
    assert same.any(1).all(), "some of the nine shifts never happened"
    mirrored = Shift(pixels=1, flip=True)(x)
    found = (choices == mirrored).flatten(2).all(2).any(0) | (choices.flip(4) == mirrored).flatten(2).all(2).any(0)
    assert found.all()
    assert not torch.equal(mirrored, moved)
    with pytest.raises(InputError, match=r"shape \(4,\)"):
        Shift()(torch.zeros(2, 4))


def test_mask_hides_the_share_it_says():
    torch.manual_seed(0)
    kept = Mask(0.3)(torch.ones(100, 200))
    assert set(kept.unique().tolist()) == {0.0, 1.0}
    assert float(kept.mean()) == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("name", SELF_SUPERVISED)
def test_every_loss_trains_by_its_name(name):
    task = "classification" if name == "entropy" else "regression"
    scene = blobs(task)
    X = scene.X[:, None, :2, None].repeat(3, 3) if name == "shift" else scene.X
    model = ally.ConstrainedClassifier if task == "classification" else ally.ConstrainedRegressor
    q = ally.query(X, scene.y, n=4, strategy="ally", objective=PDCLUnlabelled(name, batch=16, steps=30), task=task, random_state=0,
                   model=model((8,), epochs=4))  # fmt: skip
    assert np.isfinite(q.scores).all()


def test_the_decoder_of_the_reconstruction_learns():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6))).astype(np.float32)
    learner = Learner(lambda s, o: MLP(s, o, (16,)), "regression", None, Training(lr=5e-3, epochs=20, device="cpu"))
    objective = PDCLUnlabelled(Reconstruction(hidden=0), dual_init=10.0, batch=64, steps=1500, warmup=0.0)
    fit = learner.fit(
        Examples(X[:40], X[:40, 0].astype(float)), objective, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(40, 300))
    )
    loss = fit.modules["secondary loss"]
    with torch.no_grad():
        x = fit.inputs(X)
        error = float(loss(fit.model, x, fit.model(x)).mean())
    assert error < 0.05 * float(X.var())


def test_a_constraint_binds_only_where_the_network_is_sure():
    scene = blobs("classification")
    X = scene.X.astype(np.float32)
    learner = Learner(lambda s, o: MLP(s, o, (8,)), "classification", (0, 1, 2), Training(epochs=6, device="cpu"))
    fits = {}
    for confidence in (0.0, 0.5, 0.999999):
        objective = PDCLUnlabelled(Smoothness(radius=1.0), confidence=confidence, batch=16, steps=60, warmup=0.0)
        fits[confidence] = learner.fit(
            Examples(X[:12], scene.y[:12]), objective, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(12, 60))
        )
    held = replace(PDCLUnlabelled(Smoothness(radius=1.0), batch=16, steps=60), dual_init=0.0)
    free = learner.fit(Examples(X[:12], scene.y[:12]), held, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(12, 60)))

    def weights(fit):
        return torch.cat([p.detach().flatten() for p in fit.model.parameters()])

    # So high a level never binds, and training is what it would be with weight 0.
    torch.testing.assert_close(weights(fits[0.999999]), weights(free))
    assert not torch.allclose(weights(fits[0.0]), weights(fits[0.5]))
    # The slacks are recorded either way.
    assert float(fits[0.999999].duals["unlabelled"].std()) > 0


def test_shares_pull_the_predicted_classes():
    """One blob and random labels: nothing but the shares says how often a class should be predicted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (np.arange(20) < 16).astype(float)
    learner = Learner(lambda s, o: MLP(s, o, ()), "classification", (0, 1), Training(lr=0.01, epochs=30, device="cpu"))
    mean = {}
    for shares in ("labels", "equal"):
        objective = PDCLUnlabelled(Smoothness(radius=0.1), shares=shares, shares_weight=50.0, batch=128, steps=600)
        fit = learner.fit(Examples(X[:20], y), objective, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(20, 400)))
        mean[shares] = float(fit.embed(fit.inputs(X[20:]))[1].softmax(1).mean(0)[1])
    assert mean["labels"] == pytest.approx(17 / 22, abs=0.03)
    assert mean["equal"] == pytest.approx(0.5, abs=0.03)


def moons(n, seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, n)
    label = np.arange(n) % 2
    X = np.stack([np.cos(angle), np.sin(angle)], 1)
    X[label == 1] = np.asarray([1.0, 0.4]) - X[label == 1]
    return X + 0.08 * rng.normal(size=(n, 2)), label


def test_smoothness_over_the_pool_saves_labels():
    """Two moons with ten labels: the boundary moves to the gap that only unlabelled samples show."""
    X, label = moons(600, 0)
    test, truth = moons(400, 1)
    scores = {}
    for name, objective in (("erm", ERM()), ("smooth", PDCLUnlabelled(Smoothness(radius=0.3), batch=128, steps=800))):
        learner = Learner(lambda s, o: MLP(s, o, (32, 32)), "classification", (0, 1), Training(lr=5e-3, epochs=40, device="cpu"))
        found = []
        for seed in range(3):
            rows = np.random.default_rng(seed).permutation(600)[:10]
            rest = np.setdiff1d(np.arange(600), rows)
            examples = Examples(X[rows].astype(np.float32), label[rows].astype(float))
            fit = learner.fit(examples, objective, Streams(seed), unlabelled=Unlabelled(as_source(X.astype(np.float32)), rest))
            found.append(float((fit.embed(fit.inputs(test.astype(np.float32)))[1].argmax(1).numpy() == truth).mean()))
        scores[name] = np.mean(found)
    assert scores["smooth"] > scores["erm"] + 0.03


@pytest.mark.parametrize("strategy", ["random", "margin", "badge", "ally", "coreset"])
def test_every_strategy_can_be_trained_with_it(strategy):
    scene = blobs("classification")
    objective = PDCLUnlabelled(batch=16, steps=20)
    q = ally.query(scene.X, scene.y, n=4, strategy=strategy, objective=objective, **scene.arguments())
    assert len(q) == 4


def test_pool_duals_are_read_directly_and_follow_their_rows():
    scene = blobs("classification")
    objective = PDCLUnlabelled(batch=16, steps=40)
    loop = ally.Loop(scene.X, scene.y, strategy=ally.Strategy(ally.scoring.PredictedDual(), ally.selection.Top()), objective=objective,
                     **scene.arguments())  # fmt: skip
    first = loop.ask(3)
    fit = loop.fit()
    ordered = np.argsort(-fit.duals["unlabelled"].numpy(), kind="stable")
    assert first.ids.tolist() == fit.unlabelled_rows[ordered[:3]].tolist()
    second = loop.ask(3)
    assert second.ids.tolist() == fit.unlabelled_rows[ordered[3:6]].tolist()
    loop.release(first.id)
    assert len(loop.ask(3)) == 3


def test_fits_take_as_many_steps_as_they_were_asked_to():
    scene = blobs("classification")
    steps = []

    class Counting(PDCLUnlabelled):
        def start(self, problem):
            session = super().start(problem)
            original = session.after_step
            session.after_step = lambda step, outputs: (steps.append(step), original(step, outputs))
            return session

    ally.query(scene.X, scene.y, n=2, objective=Counting(batch=8, steps=50), strategy="margin", **scene.arguments())
    assert 50 <= max(steps) < 60


def test_bad_settings():
    for settings, message in (({"eps": -1}, "eps=-1"), ({"weights": "kept"}, "weights='kept'"), ({"batch": 0}, "batch=0"),
                              ({"price": 0}, "price=0"), ({"steps": 1.5}, "steps=1.5"), ({"confidence": 1.0}, "confidence=1.0"),
                              ({"shares": "all"}, "shares='all'"), ({"secondary_loss": 3}, "secondary_loss is a int"),
                              ({"secondary_loss": "smooth"}, "smoothness")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            PDCLUnlabelled(**settings)
    scene = blobs("classification", n=12)
    with pytest.raises(InputError, match="none are available"):
        ally.Loop(scene.X, scene.y, objective=PDCLUnlabelled(), strategy="margin", **scene.arguments()).fit()


def test_accumulated_loss_trains_like_erm_and_records():
    scene = blobs("classification", labelled=40)
    learner = Learner(MLP, "classification", (0, 1, 2), Training(epochs=5, device="cpu"))
    examples = Examples(scene.X[:40].astype(np.float32), scene.y[:40])
    plain, recorded = (learner.fit(examples, objective, Streams(0)) for objective in (ERM(), PDCL(eps=0.01, weighted=False)))
    for a, b in zip(plain.model.parameters(), recorded.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert float(recorded.duals["labelled"].max()) > 0
