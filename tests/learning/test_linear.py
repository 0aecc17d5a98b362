"""A linear learner: exact through the protocol, with weights that can be written and read."""

import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import LogisticRegression, RidgeCV

import ally
from ally.constrained.convex import UNBOUNDED, Constraints, Design, cross_entropy, solve
from ally.constrained.strength import grid
from ally.data import as_source
from ally.errors import ModelError
from ally.learning.learner import Examples, Learner
from ally.learning.linear import AXES, LinearLearner
from ally.learning.objectives import ERM, OBJECTIVES, PDCL, Feasibility, HalfSquaredNorm, Resilient
from ally.learning.trained import Trained
from ally.rng import streams
from ally.testing.pools import blobs

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 6)) * [1, 10, 0.1, 1, 1, 1] + 3
LABELS = (X[:, 0] + RNG.gumbel(size=120) > 3.5).astype(int) + (X[:, 3] + RNG.gumbel(size=120) > 4)
TARGETS = 5 * X[:, 0] - X[:, 1] + RNG.standard_normal(120)


def classes(n=60, names=range(3)):
    return Examples.of(X[:n], LABELS[:n], names)


def fit(examples, objective=ERM(), learner=LinearLearner(), **more):
    ready = learner.prepared(examples.source, examples.rows)
    return ready.fit(examples, objective, streams(0), **more)


def test_it_is_a_learner_by_name():
    assert isinstance(LinearLearner(), Learner)
    loop = ally.Loop(X, [*LABELS[:40], *[None] * 80], model="linear", strategy="margin", random_state=0)
    assert loop.fit().weights.shape == (6, 3)
    assert len(loop.ask(5)) == 5


def test_classes_are_predicted_as_scikit_learn_does():
    found = fit(classes(), learner=LinearLearner(C=0.7))
    z = (X - X[:60].mean(0)) / X[:60].std(0)
    theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000).fit(z[:60], LABELS[:60])
    seen = found.view(as_source(X), np.arange(120))
    np.testing.assert_allclose(seen.probabilities.numpy(), theirs.predict_proba(z), atol=1e-4)
    assert found.predict(as_source(X)).tolist() == theirs.predict(z).tolist()


def test_targets_are_predicted_as_scikit_learn_does():
    found = fit(Examples.of(X[:60], TARGETS[:60]))
    z = (X - X[:60].mean(0)) / X[:60].std(0)
    y = TARGETS[:60]
    theirs = RidgeCV(1 / (2 * grid(6))).fit(z[:60], (y - y.mean()) / y.std())
    expected = theirs.predict(z) * y.std() + y.mean()
    np.testing.assert_allclose(found.predict(as_source(X)), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("objective", [PDCL(eps=0.4), PDCL(eps=0.1, dual_cap=3.0), Feasibility(eps=0.6)])
def test_duals_are_those_of_the_exact_solver(objective):
    found = fit(classes(), objective, LinearLearner(C=0.7))
    rows = Design((X[:60] - X[:60].mean(0)) / X[:60].std(0)).rows
    constraints = Constraints(
        np.full(60, objective.eps), objective.dual_cap or UNBOUNDED, float(type(objective) is PDCL)
    )
    exact = solve(rows, LABELS[:60], cross_entropy, 3, 1 / (0.7 * 60), constraints)
    np.testing.assert_allclose(found.duals["labelled"].numpy(), exact.duals, atol=2e-3 * max(1, exact.duals.max()))
    assert found.report.positive_duals == pytest.approx((exact.duals > 0).mean(), abs=0.02)


@pytest.mark.parametrize("cap", [0.5, None])
def test_resilient_duals_are_the_closed_form(cap):
    found = fit(classes(), Resilient(eps=0.3, slope=2.0, dual_cap=cap), LinearLearner(C=0.7))
    p = found.view(as_source(X), np.arange(60)).probabilities.double().numpy()[np.arange(60), LABELS[:60]]
    expected = np.clip(2.0 * (-np.log(p) - 0.3), 0, cap)
    duals = found.duals["labelled"].numpy()
    np.testing.assert_allclose(duals, expected, atol=1e-4)
    assert 0 < found.report.positive_duals < 1
    assert (duals.max() == 0.5) == (cap is not None)


def test_slack_constraints_are_tightened_with_a_note():
    found = fit(classes(), PDCL(eps=50.0))
    assert found.duals["labelled"].max() > 0
    assert "eps='auto'" in found.report.notes[0]
    loose = fit(classes(), PDCL(eps=50.0), LinearLearner(tighten=False))
    assert not loose.duals["labelled"].any()
    assert loose.report.notes == ()


@pytest.mark.parametrize(
    "name", sorted(set(OBJECTIVES) - {"erm", "pdcl", "feasibility", "resilient", "accumulated-loss"})
)
def test_other_objectives_are_refused(name):
    with pytest.raises(ModelError, match="solved exactly for erm, pdcl, feasibility and resilient"):
        ally.Loop(X, [*LABELS[:40], *[None] * 80], model="linear", strategy="margin", objective=name)


@pytest.mark.parametrize(
    ("objective", "message"),
    [(ERM(HalfSquaredNorm(0.1)), "penalty of its own"), (PDCL(secondary_loss="brier"), "constrains its own loss")],
)
def test_other_penalties_and_losses_are_refused(objective, message):
    with pytest.raises(ModelError, match=message):
        fit(classes(), objective)


def test_one_scale_keeps_distances():
    some = classes()
    columns, common = (LinearLearner(scale).prepared(some.source, some.rows) for scale in ("columns", "common"))
    points = common.points(some.source, some.rows).numpy()
    raw = X[:60] - X[:60].mean(0)
    assert points / np.linalg.norm(points) == pytest.approx(raw / np.linalg.norm(raw), abs=1e-5)
    assert columns.points(some.source, some.rows).numpy().std(0) == pytest.approx(np.ones(6), rel=1e-4)


def test_wide_inputs_are_embedded_along_their_main_axes():
    rng = np.random.default_rng(1)
    wide = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 2000)) + 0.01 * rng.standard_normal((400, 2000))
    found = fit(Examples.of(wide[:50], (wide[:50, 0] > 0).astype(int), range(2)), learner=LinearLearner("common"))
    embeddings = found.view(as_source(wide), np.arange(400)).embeddings
    assert embeddings.shape[1] <= AXES
    distances = [torch.cdist(z, z)[0, 1:] for z in (embeddings, torch.from_numpy(wide).float())]
    assert np.corrcoef(*[d.numpy() for d in distances])[0, 1] > 0.999


def test_sparse_rows():
    rows = scipy.sparse.random(200, 3000, 0.02, random_state=0, format="csr")
    y = [*(np.asarray(rows[:60, :1500].sum(1)).ravel() > 15).astype(int), *[None] * 140]
    assert len(ally.query(rows, y, n=5, strategy="margin", model="linear", random_state=0)) == 5


def test_a_class_without_labels_never_wins_however_weak_the_penalty():
    far = Examples.of(20 * np.eye(6)[:4], np.arange(4), range(5))
    found = LinearLearner(C=1e6).fit(far, ERM(), streams(0))
    seen = found.view(as_source(np.zeros((3, 6))), np.arange(3))
    assert seen.probabilities[:, 4].tolist() == [0.0, 0.0, 0.0]
    assert torch.isfinite(seen.probabilities).all()
    assert Trained.from_bytes(Trained(found).to_bytes()).fit.intercept.tolist() == found.intercept.tolist()


def test_single_labels_and_few():
    for n in (2, 3, 5):
        y = np.arange(n) % 3
        found = fit(Examples.of(X[:n], y, range(3)), PDCL())
        assert torch.isfinite(found.weights).all()
        assert fit(Examples.of(X[:n], TARGETS[:n]), PDCL()).duals["labelled"].shape == (n,)


def test_members_differ_and_are_repeatable():
    examples = classes()
    first, one, again = (fit(examples, PDCL(eps=0.3), member=member) for member in (0, 1, 1))
    assert not torch.equal(first.weights, one.weights)
    assert torch.equal(one.weights, again.weights)
    assert one.duals["labelled"].shape == (60,)
    scene = blobs("classification")
    assert len(ally.query(scene.X, scene.y, n=3, strategy="bald", model="linear", random_state=0)) == 3


@pytest.mark.parametrize("examples", [classes(), Examples.of(X[:60], TARGETS[:60])], ids=["classes", "numbers"])
def test_written_and_read(examples):
    found = fit(examples, PDCL(eps=0.2))
    source, rows = as_source(X), np.arange(120)
    for other in (Trained.from_bytes(Trained(found).to_bytes()).fit, pickle.loads(pickle.dumps(found))):
        before, after = found.view(source, rows), other.view(source, rows)
        assert torch.equal(before.predictions, after.predictions)
        assert torch.equal(before.embeddings, after.embeddings)


def test_runs_give_the_bits_of_one_pass():
    from ally.data import BLOCK

    x = np.random.default_rng(2).standard_normal((2 * BLOCK + 10, 6))
    found, source = fit(classes()), as_source(x)
    whole = found.view(source, np.arange(len(x)))
    parts = [found.view(source, np.arange(BLOCK)), found.view(source, np.arange(BLOCK, len(x)))]
    assert torch.equal(whole.probabilities, torch.cat([part.probabilities for part in parts]))


def test_losses_that_weigh_nothing_are_those_of_held_out_labels():
    """So that a wrong label stands out, however closely the model fits it."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((80, 100)) + 2 * np.repeat(np.eye(2), 40, axis=0) @ rng.standard_normal((2, 100))
    y = np.repeat([0, 1], 40)
    y[[3, 50]] = [1, 0]
    found = fit(Examples.of(x, y, range(2)), PDCL(eps=0.0, weighted=False))
    assert set(found.duals["labelled"].argsort(descending=True)[:2].tolist()) == {3, 50}
