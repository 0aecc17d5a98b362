"""Constraints that need no label."""

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import nn
from torch.nn import functional as F

import ally
from ally.data import as_source
from ally.errors import InputError, TrainingDiverged
from ally.learning.learner import Examples, Unlabelled
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, Batch, PDCLUnlabelled, Problem, SmoothUnlabelled, UnlabelledBatch
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
from ally.learning.snapshot import Snapshot, View
from ally.learning.training import Training
from ally.models import MLP, Split
from ally.rng import Streams, seeded_torch
from ally.scoring import Margin, PredictedDual
from ally.selection import Top
from ally.strategies import CATALOGUE, Strategy
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


CONVEX = PDCLUnlabelled(SquaredOutput(), eps=0.3, dual_lr=0.2, dual_decay=0.0, warmup=0.0, batch=18, steps=1)


def fit_convex(convex, objective, epochs=1200):
    X, y = convex
    learner = Network(linear, Training(lr=0.01, lr_decay=1.0, epochs=epochs, batch_size=12, device="cpu"))
    return learner.fit(
        Examples.of(X[:12], y), objective, Streams(0), unlabelled=Unlabelled(as_source(X), np.arange(12, 30))
    )


def test_weights_and_duals_of_labelled_and_pool_converge_to_the_convex_solution(convex):
    X, y = convex
    w, b = cp.Variable(4), cp.Variable()
    constraints = [cp.square(X[i] @ w + b) <= 0.3 for i in range(30)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(X[:12] @ w + b - y) / 12), constraints)
    problem.solve()
    expected = 30 * np.asarray([float(c.dual_value) for c in constraints])
    assert (expected[:12] > 1e-3).any()
    assert (expected[12:] > 1e-3).any()
    assert (expected <= 1e-3).sum() >= 20
    fit = fit_convex(convex, CONVEX)
    found = torch.cat([fit.duals["labelled"], fit.duals["unlabelled"]]).numpy()
    np.testing.assert_allclose(found, expected, atol=5e-3 * expected.max())
    np.testing.assert_allclose(fit.model.head.weight.detach().numpy()[0], w.value, atol=5e-3)
    np.testing.assert_allclose(fit.model.head.bias.detach().numpy()[0], b.value, atol=5e-3)
    with torch.no_grad():
        slacks = fit.model(torch.from_numpy(X)).squeeze(1).square().numpy() - 0.3
    assert slacks.max() < 5e-3
    assert np.abs(found * slacks).max() < 5e-3 * expected.max(), (
        "a sample has weight though its constraint is met with slack"
    )


def test_a_price_relaxes_the_constraint(convex):
    total = {}
    for name, objective in (
        ("hard", CONVEX),
        ("priced", replace(CONVEX, price=1.0)),
        ("capped", replace(CONVEX, dual_cap=0.5)),
    ):
        fit = fit_convex(convex, objective, 400)
        total[name] = float(fit.duals["labelled"].sum() + fit.duals["unlabelled"].sum())
    assert total["priced"] < 0.8 * total["hard"]
    assert total["capped"] < total["hard"]


def test_batches_estimate_the_lagrangian_of_labelled_and_unlabelled_samples(convex):
    """Far more of the labelled samples than of the others are in a batch; every sample counts alike all the same."""
    X, y = (torch.from_numpy(part) for part in convex)
    model = linear((4,), 1)
    problem = Problem(
        y,
        "regression",
        None,
        lambda outputs, targets: (outputs.squeeze(1) - targets).square(),
        lambda: 0.0,
        n_unlabelled=18,
    )

    def session():
        return replace(CONVEX, dual_init=1.5, dual_lr=0.0).start(problem)

    whole = session().loss(model, Batch(torch.arange(12), X[:12], y), UnlabelledBatch(torch.arange(18), X[12:]))
    slacks = model(X).squeeze(1).square() - 0.3
    torch.testing.assert_close(whole, (model(X[:12]).squeeze(1) - y).square().mean() + 1.5 * slacks.mean())
    rows = [
        (torch.arange(first, first + 6), torch.arange(second, second + 2))
        for first in (0, 6)
        for second in range(0, 18, 2)
    ]
    parts = [session().loss(model, Batch(i, X[i], y[i]), UnlabelledBatch(j, X[12 + j])) for i, j in rows]
    torch.testing.assert_close(torch.stack(parts).mean(), whole)


def parameters(fit):
    return torch.cat([p.detach().flatten() for p in fit.model.parameters()])


def fit_blobs(objective, *, labelled=12, epochs=6):
    scene = blobs("classification", labelled=labelled)
    X = scene.X.astype(np.float32)
    learner = Network(lambda s, o: MLP(s, o, (8,)), Training(epochs=epochs, device="cpu"))
    examples, rest = Examples.of(X[:labelled], scene.y[:labelled], range(3)), np.arange(labelled, len(X))
    return learner.fit(examples, objective, Streams(0), unlabelled=Unlabelled(as_source(X), rest))


def test_duals_weigh_the_training():
    moved = PDCLUnlabelled(Smoothness(radius=1.0), eps=0.01, dual_lr=0.5, confidence=0.0, batch=16, steps=120)
    still = replace(moved, dual_lr=0.0)
    nothing = SmoothUnlabelled(Smoothness(radius=1.0), weight=0.0, confidence=0.0, batch=16, steps=120)
    fits = {
        name: fit_blobs(objective) for name, objective in (("moved", moved), ("still", still), ("nothing", nothing))
    }
    assert float(fits["moved"].duals["unlabelled"].max()) > 0
    assert (fits["still"].duals["unlabelled"] == 0).all()
    assert torch.equal(parameters(fits["still"]), parameters(fits["nothing"])), (
        "λ = 0 trains as if there were no constraint"
    )
    assert not torch.allclose(parameters(fits["moved"]), parameters(fits["still"]), atol=1e-3)


@dataclass(frozen=True)
class Rigged:
    """ℓ' = 1 + noise · N(0, 1), whatever the sample."""

    noise: float = 0.0

    def __call__(self, model, x, outputs):
        return 1.0 + self.noise * torch.randn(len(x)) + 0.0 * outputs.sum(1)


@dataclass(frozen=True)
class Counting:
    """Counts how often a sample of the pool is drawn."""

    inner: PDCLUnlabelled
    visits: torch.Tensor

    def start(self, problem):
        session = self.inner.start(problem)
        plain = session.loss

        def loss(model, batch, unlabelled):
            self.visits[unlabelled.index] += 1
            return plain(model, batch, unlabelled)

        session.loss = loss
        return session


def fit_uneven(objective, pool, steps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8 + pool, 3)).astype(np.float32)
    learner = Network(lambda s, o: MLP(s, o, ()), Training(epochs=steps, batch_size=8, device="cpu"))
    counting = Counting(objective, torch.zeros(pool, dtype=torch.int64))
    fit = learner.fit(
        Examples.of(X[:8], rng.normal(size=8)),
        counting,
        Streams(1),
        unlabelled=Unlabelled(as_source(X), np.arange(8, len(X))),
    )
    return fit, counting.visits


def test_equal_samples_have_equal_duals_however_often_they_were_visited():
    objective = PDCLUnlabelled(Rigged(), eps=0.1, warmup=0.0, batch=16, steps=1)
    fit, visits = fit_uneven(objective, pool=50, steps=22)
    assert sorted(set(visits.tolist())) == [5, 6]
    duals = fit.duals["unlabelled"]
    assert float(duals.max()) == float(duals.min()) > 0
    assert float(duals[0]) == pytest.approx(0.9 * 0.05 * sum(t ** (-1 / 16) for t in range(1, 6)), rel=1e-5)


def test_an_extra_visit_does_not_raise_a_rank():
    fit, visits = fit_uneven(PDCLUnlabelled(Rigged(0.1), eps=0.1, warmup=0.0, batch=64, steps=1), pool=1000, steps=56)
    assert 0.3 < float((visits == 4).double().mean()) < 0.7
    assert set(visits.tolist()) == {3, 4}
    assert abs(spearmanr(fit.duals["unlabelled"], visits).statistic) < 0.1
    highest = fit.duals["unlabelled"].argsort(descending=True)[:200]
    assert abs(float((visits[highest] == 4).double().mean() - (visits == 4).double().mean())) < 0.1


def test_duals_of_unvisited_samples_are_nan():
    fit, visits = fit_uneven(
        PDCLUnlabelled(Rigged(), eps=0.1, dual_init=2.0, warmup=0.0, batch=16, steps=1), pool=300, steps=5
    )
    assert 0 < (visits == 0).sum() < 300
    assert torch.equal(fit.duals["unlabelled"].isnan(), visits == 0)
    assert not fit.duals["labelled"].isnan().any()
    assert fit.report.positive_duals == 1.0


@pytest.mark.parametrize("start", [0, 1, 7, 10])
def test_duals_are_even_wherever_the_warm_up_ends(start):
    """The first pass then begins in the middle of one of the trainer's."""
    objective = PDCLUnlabelled(Rigged(), eps=0.1, dual_decay=0.0, warmup=0.25, batch=16, steps=4 * start or 1)
    fit, visits = fit_uneven(objective, pool=50, steps=60)
    duals = torch.cat([fit.duals["labelled"], fit.duals["unlabelled"]])
    torch.testing.assert_close(duals, duals[:1].expand_as(duals))
    moves = float(duals[0]) / (0.9 * 0.05)
    assert int(visits.min()) - 1 - -(-start // 4) <= round(moves) <= int(visits.min())


def test_duals_rest_during_the_warm_up():
    objective = PDCLUnlabelled(Rigged(), eps=0.1, warmup=0.99, batch=16, steps=100)
    resting, moving = (fit_uneven(replace(objective, warmup=warmup), pool=50, steps=20)[0] for warmup in (0.99, 0.0))
    assert 12 <= (~resting.duals["unlabelled"].isnan()).sum() <= 13, (
        "the last of 100 steps is the only one after the warm-up"
    )
    assert (moving.duals["unlabelled"] > 0).all()


def test_inactive_constraints_have_no_known_dual():
    objective = PDCLUnlabelled(Smoothness(radius=1.0), eps=0.01, confidence=0.999999, batch=16, steps=60)
    unsure, sure = fit_blobs(objective), fit_blobs(replace(objective, confidence=0.0))
    assert unsure.duals["unlabelled"].isnan().all()
    assert (unsure.duals["labelled"] == 0).all()
    assert not sure.duals["unlabelled"].isnan().any()


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize(
    "strategy", [CATALOGUE["ally-unlabelled"], Strategy(PredictedDual(), Top())], ids=["clusters", "top"]
)
def test_exactly_n_are_asked_even_if_few_were_visited(task, strategy):
    scene = blobs(task, n=120)
    objective = PDCLUnlabelled(eps=1e-4, dual_lr=1.0, confidence=0.0, warmup=0.0, batch=4, steps=4)
    loop = ally.Loop(
        scene.X,
        scene.y,
        strategy=strategy,
        objective=objective,
        training=Training(epochs=1, batch_size=64, device="cpu"),
        classes=None if task == "regression" else [0, 1, 2],
        task=task,
        random_state=0,
    )
    q = loop.ask(90)
    known = int((~loop.fit().duals["unlabelled"].isnan()).sum())
    assert 0 < known < 90
    assert len(set(q.ids.tolist())) == 90
    assert q.report["predicted"] == 108 - known
    assert (
        f"training did not visit {108 - known} of 108 candidates: their duals are predicted from the others'"
        in " ".join(q.notes)
    )


def test_unknown_duals_are_predicted_and_known_ones_kept():
    rng = np.random.default_rng(0)
    p = torch.from_numpy(rng.dirichlet(np.ones(3), size=400)).float()
    doubt = (1 - p.amax(1)).double()
    truth = torch.expm1(2 * (doubt.clamp(min=1e-12).log() + 5).clamp(min=0) / 5)
    held = torch.where(torch.arange(400) % 4 == 0, truth, torch.nan).float()
    view = View(np.arange(400), torch.zeros(400, 2), p, p.argmax(1))
    nobody = View(np.arange(400, 402), torch.zeros(2, 2), p[:2], p[:2].argmax(1))
    snapshot = Snapshot("classification", view, nobody, torch.zeros(2), torch.zeros(2), held)
    scored = PredictedDual()(snapshot, Streams(0))
    known = ~held.isnan()
    torch.testing.assert_close(scored.scores[known], torch.log1p(held[known].double()))
    assert spearmanr(scored.scores[~known], truth[~known]).statistic > 0.99
    assert scored.report["predicted"] == 300
    blank = replace(snapshot, candidate_duals=torch.full((400,), torch.nan))
    scored = PredictedDual()(blank, Streams(0))
    assert torch.isfinite(scored.scores).all()
    assert "no candidate: their 400 duals" in scored.notes[0]


@dataclass(frozen=True)
class Scaled:
    """`times` the loss."""

    inner: Smoothness
    times: float

    def __call__(self, model, x, outputs):
        return self.times * self.inner(model, x, outputs)


def test_an_automatic_level_follows_the_scale_of_the_loss():
    objective = PDCLUnlabelled(Scaled(Smoothness(), 1.0), eps="auto", batch=16, steps=20)
    one, thousand = (
        fit_blobs(replace(objective, secondary_loss=Scaled(Smoothness(), times))).report.eps for times in (1.0, 1000.0)
    )
    assert one > 0
    assert thousand == pytest.approx(1000 * one, rel=1e-4)


def test_an_automatic_level_is_that_of_an_unconstrained_fit():
    automatic = fit_blobs(PDCLUnlabelled(PredictiveEntropy(), eps="auto", confidence=0.0, batch=16, steps=20))
    plain, X = fit_blobs(ERM()), blobs("classification").X.astype(np.float32)
    with torch.no_grad():
        entropy = torch.distributions.Categorical(logits=plain.model(torch.from_numpy(X))).entropy().mean()
    assert automatic.report.eps == pytest.approx(1.15 * float(entropy), rel=1e-5)
    given = fit_blobs(PDCLUnlabelled(PredictiveEntropy(), eps=automatic.report.eps, confidence=0.0, batch=16, steps=20))
    assert torch.equal(parameters(automatic), parameters(given))


@dataclass(frozen=True)
class Always:
    value: float

    def __call__(self, model, x, outputs):
        return self.value + 0.0 * outputs.sum(1)


def test_an_automatic_level_is_a_number_above_zero():
    assert 0 < fit_blobs(PDCLUnlabelled(Always(0.0), eps="auto", batch=16, steps=20)).report.eps < 1e-6
    with pytest.raises(TrainingDiverged, match=r"the mean of Always\(value=inf\) is inf"):
        fit_blobs(PDCLUnlabelled(Always(np.inf), eps="auto", batch=16, steps=20))


def test_a_decoder_is_fitted_before_its_level_is_read():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6))).astype(np.float32)
    learner = Network(lambda s, o: MLP(s, o, (16,)), Training(epochs=2, device="cpu"))
    objective = PDCLUnlabelled(Reconstruction(hidden=0), eps="auto", batch=64, steps=2)
    fit = learner.fit(
        Examples.of(X[:40], X[:40, 0].astype(float)),
        objective,
        Streams(0),
        unlabelled=Unlabelled(as_source(X), np.arange(40, 200)),
    )
    assert fit.report.eps < 0.5 * float(X.var())


def test_a_penalty_trains_as_a_plain_loop_does():
    """The loop written out: the same draws, the same loss, the same steps."""
    scene = blobs("classification", labelled=20)
    X, y = torch.from_numpy(scene.X.astype(np.float32)), torch.from_numpy(scene.y[:20]).long()
    steps, epochs, warmup = 60, 10, 18
    fit = fit_blobs(SmoothUnlabelled(batch=16, steps=steps), labelled=20, epochs=epochs)
    streams, smooth = Streams(0), Smoothness()
    shuffle, unlabelled = streams.torch("shuffle"), streams.torch("unlabelled")
    with seeded_torch(streams.seed("weights")):
        model = MLP((X.shape[1],), 3, (8,))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        pool = []
        for epoch in range(epochs):
            optimizer.param_groups[0]["lr"] = 1e-3 * 0.97**epoch
            for index in (
                part for _ in range(2) for part in torch.tensor_split(torch.randperm(20, generator=shuffle), 3)
            ):
                if not pool:
                    pool = list(
                        torch.tensor_split(torch.randperm(len(X) - 20, generator=unlabelled), -(-(len(X) - 20) // 16))
                    )
                step = len(optimizer.state) and int(optimizer.state[next(model.parameters())]["step"])
                x = torch.cat([X[index], X[20 + pool.pop(0)]])
                outputs = model(x)
                sure = (outputs.detach().softmax(1).amax(1) >= 0.8).float()
                penalty = (min(1.0, step / warmup) * sure * smooth(model, x, outputs)).mean()
                optimizer.zero_grad()
                (F.cross_entropy(outputs[: len(index)], y[index]) + penalty).backward()
                optimizer.step()
    torch.testing.assert_close(
        parameters(fit), torch.cat([p.detach().flatten() for p in model.parameters()]), rtol=1e-4, atol=1e-6
    )
    assert int(step) + 1 == steps


def test_a_penalty_has_no_duals_and_nothing_ranks_by_them():
    assert fit_blobs(SmoothUnlabelled(batch=16, steps=20)).duals == {}
    assert fit_blobs(SmoothUnlabelled(batch=16, steps=20)).report.positive_duals is None
    scene = blobs("classification")
    assert (
        len(
            ally.query(
                scene.X, scene.y, n=4, strategy="margin", objective=SmoothUnlabelled(steps=20), **scene.arguments()
            )
        )
        == 4
    )
    for strategy in ("ally-clusters", "ally-unlabelled"):
        with pytest.raises(InputError, match="use objective='pdcl', 'feasibility', 'resilient' or 'pdcl-unlabelled'"):
            ally.query(
                scene.X, scene.y, n=4, strategy=strategy, objective=SmoothUnlabelled(steps=20), **scene.arguments()
            )


def test_what_a_strategy_needs_follows_its_objective():
    needs = {
        name: Strategy(Margin(), Top(), name).needs for name in ("pdcl-unlabelled", "smooth-unlabelled", "pdcl", "erm")
    }
    assert {"duals", "extra training"} <= set(needs["pdcl-unlabelled"])
    assert "extra training" in needs["smooth-unlabelled"]
    assert "duals" not in needs["smooth-unlabelled"]
    assert "extra training" not in needs["pdcl"]
    assert isinstance(CATALOGUE["ally-unlabelled"].objective, PDCLUnlabelled)


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
    torch.testing.assert_close(
        PredictiveEntropy()(model, x, outputs), torch.distributions.Categorical(logits=outputs).entropy()
    )
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
    objective = PDCLUnlabelled(name, eps="auto", batch=16, steps=30)
    q = ally.query(
        X,
        scene.y,
        n=4,
        strategy="ally-clusters",
        objective=objective,
        task=task,
        random_state=0,
        model=model((8,), epochs=4),
    )
    assert np.isfinite(q.scores).all()


def test_the_decoder_of_the_reconstruction_learns():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6))).astype(np.float32)
    learner = Network(lambda s, o: MLP(s, o, (16,)), Training(lr=5e-3, epochs=20, device="cpu"))
    objective = SmoothUnlabelled(Reconstruction(hidden=0), weight=10.0, batch=64, steps=800, warmup=0.0)
    fit = learner.fit(
        Examples.of(X[:40], X[:40, 0].astype(float)),
        objective,
        Streams(0),
        unlabelled=Unlabelled(as_source(X), np.arange(40, 300)),
    )
    loss = fit.modules["secondary loss"]
    with torch.no_grad():
        x = torch.from_numpy(X)
        error = float(loss(fit.model, x, fit.model(x)).mean())
    assert error < 0.05 * float(X.var())


def test_a_penalty_counts_only_where_the_network_is_sure():
    smooth = SmoothUnlabelled(Smoothness(radius=1.0), batch=16, steps=60, warmup=0.0)
    fits = {confidence: fit_blobs(replace(smooth, confidence=confidence)) for confidence in (0.0, 0.5, 0.999999)}
    # So high a level never lets it count, and training is what it would be with weight 0.
    torch.testing.assert_close(parameters(fits[0.999999]), parameters(fit_blobs(replace(smooth, weight=0.0))))
    assert not torch.allclose(parameters(fits[0.0]), parameters(fits[0.5]))


def test_shares_pull_the_predicted_classes():
    """One blob and random labels: nothing but the shares says how often a class should be predicted."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = (np.arange(20) < 16).astype(float)
    learner = Network(lambda s, o: MLP(s, o, ()), Training(lr=0.01, epochs=30, device="cpu"))
    mean = {}
    for shares in ("labels", "equal"):
        objective = SmoothUnlabelled(Smoothness(radius=0.1), shares=shares, shares_weight=50.0, batch=128, steps=400)
        fit = learner.fit(
            Examples.of(X[:20], y, (0, 1)),
            objective,
            Streams(0),
            unlabelled=Unlabelled(as_source(X), np.arange(20, 400)),
        )
        mean[shares] = float(fit.embed(torch.from_numpy(X[20:]))[1].softmax(1).mean(0)[1])
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
    for name, objective in (("erm", ERM()), ("smooth", SmoothUnlabelled(Smoothness(radius=0.3), batch=128, steps=400))):
        learner = Network(lambda s, o: MLP(s, o, (32, 32)), Training(lr=5e-3, epochs=40, device="cpu"))
        found = []
        for seed in range(2):
            rows = np.random.default_rng(seed).permutation(600)[:10]
            rest = np.setdiff1d(np.arange(600), rows)
            examples = Examples.of(X[rows].astype(np.float32), label[rows].astype(float), (0, 1))
            fit = learner.fit(
                examples, objective, Streams(seed), unlabelled=Unlabelled(as_source(X.astype(np.float32)), rest)
            )
            found.append(
                float((fit.embed(torch.from_numpy(test.astype(np.float32)))[1].argmax(1).numpy() == truth).mean())
            )
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
    objective = PDCLUnlabelled(eps=1e-9, confidence=0.0, batch=16, steps=40)
    loop = ally.Loop(
        scene.X,
        scene.y,
        strategy=ally.Strategy(ally.scoring.PredictedDual(), ally.selection.Top()),
        objective=objective,
        **scene.arguments(),
    )
    first = loop.ask(3)
    fit = loop.fit()
    duals = fit.duals["unlabelled"].numpy()
    assert len(np.unique(duals)) == len(duals), "equal duals go by a hash"
    ordered = np.argsort(-duals, kind="stable")
    assert first.ids.tolist() == fit.unlabelled_rows[ordered[:3]].tolist()
    second = loop.ask(3)
    assert second.ids.tolist() == fit.unlabelled_rows[ordered[3:6]].tolist()
    loop.release(first.id)
    assert len(loop.ask(3)) == 3


def test_fits_take_as_many_steps_as_they_were_asked_to():
    scene = blobs("classification")
    steps = []

    class Stepping(PDCLUnlabelled):
        def start(self, problem):
            session = super().start(problem)
            original = session.after_step
            session.after_step = lambda step, outputs: (steps.append(step), original(step, outputs))
            return session

    ally.query(scene.X, scene.y, n=2, objective=Stepping(batch=8, steps=50), strategy="margin", **scene.arguments())
    assert 50 <= max(steps) < 60


def test_bad_settings():
    shared = (
        ({"batch": 0}, "batch=0"),
        ({"steps": 1.5}, "steps=1.5"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"shares": "all"}, "shares='all'"),
        ({"secondary_loss": 3}, "secondary_loss is a int"),
        ({"secondary_loss": "smooth"}, "smoothness"),
    )
    dual = (
        ({"eps": -1}, "eps=-1"),
        ({"eps": 0}, "eps=0"),
        ({"eps": "loose"}, "eps='loose'"),
        ({"price": 0}, "price=0"),
        ({"warmup": 1.0}, "warmup=1.0 leaves no step"),
    )
    for kind, settings in (
        (PDCLUnlabelled, (*shared, *dual)),
        (SmoothUnlabelled, (*shared, ({"weight": -1}, "weight=-1"))),
    ):
        for setting, message in settings:
            with pytest.raises(InputError, match=message):
                kind(**setting)
    scene = blobs("classification", n=12)
    for objective in (PDCLUnlabelled(), SmoothUnlabelled()):
        with pytest.raises(InputError, match="none are available"):
            ally.Loop(scene.X, scene.y, objective=objective, strategy="margin", **scene.arguments()).fit()


def test_accumulated_loss_trains_like_erm_and_records():
    scene = blobs("classification", labelled=40)
    learner = Network(MLP, Training(epochs=5, device="cpu"))
    examples = Examples.of(scene.X[:40].astype(np.float32), scene.y[:40], range(3))
    plain, recorded = (
        learner.fit(examples, objective, Streams(0)) for objective in (ERM(), PDCL(eps=0.01, weighted=False))
    )
    for a, b in zip(plain.model.parameters(), recorded.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert float(recorded.duals["labelled"].max()) > 0
