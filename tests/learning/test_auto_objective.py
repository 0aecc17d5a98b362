"""The objective of a network, chosen by cross-validation on the labels."""

import numpy as np
import pytest

import ally
from ally.data import as_source
from ally.learning.auto_objective import AutoObjective, _radius, objective_name
from ally.learning.learner import Examples, Unlabelled
from ally.learning.linear import LinearLearner
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, HalfSquaredNorm, SmoothUnlabelled
from ally.learning.training import Training
from ally.rng import streams

QUICK = Training(epochs=20, lr=0.01, device="cpu")
X = np.random.default_rng(0).standard_normal((60, 3))
Y = X @ [2.0, -1.0, 0.5]
SMOOTH = SmoothUnlabelled(steps=20, batch=16)


def chosen(among, learner=Network.named("mlp", QUICK), n=20):
    unlabelled = Unlabelled(as_source(X), np.arange(n, 60))
    return AutoObjective(among).choice(learner, Examples.of(X[:n], Y[:n]), unlabelled, streams(0))


def test_the_better_one_is_chosen_and_said():
    hampered = ERM(HalfSquaredNorm(100.0))
    found = chosen((hampered, PDCL()))
    assert found.candidate.objective == PDCL()
    assert found.note.startswith("pdcl chosen by cross-validation: rmse")
    assert "next erm" in found.note
    assert chosen((ERM(), PDCL(eps=1e6))).candidate.name == "erm"  # no constraint is felt: a tie


def test_nothing_is_chosen_for_other_learners_or_by_few_labels():
    assert chosen((ERM(), PDCL()), learner=LinearLearner()) is None
    assert chosen((ERM(), PDCL()), n=9) is None


def test_smoothness_reaches_a_quarter_of_the_way_to_the_next_sample():
    line = as_source(np.arange(10.0)[:, None] * 3)
    network = Network.named("mlp", QUICK)
    assert _radius(network, Unlabelled(line, np.arange(10)), streams(0)) == pytest.approx(0.75)
    assert _radius(network, Unlabelled(line, np.arange(1)), streams(0)) == 0
    only = AutoObjective((SMOOTH,)).choice(
        network, Examples(line, np.arange(3), np.zeros(3), "regression"), Unlabelled(line, np.arange(3, 10)), streams(0)
    )
    assert only.candidate.objective.secondary_loss.radius == pytest.approx(0.75)


def test_a_loop_trains_by_what_was_chosen_and_says_so():
    y = [*Y[:12], *[None] * 48]
    auto, network = AutoObjective((ERM(), PDCL(), SMOOTH)), Network.named("mlp", QUICK)
    loops = [ally.Loop(X, y, strategy="random", model=network, objective=auto, random_state=0) for _ in range(2)]
    first, second = (loop.fit().report for loop in loops)
    assert any(note.startswith("objective: ") and "chosen by cross-validation" in note for note in first.notes)
    assert objective_name(loops[0].objective) in ("erm", "pdcl", "smooth-unlabelled")
    assert first.train_loss == second.train_loss


def test_auto_is_a_name():
    loop = ally.Loop(X, [*Y[:12], *[None] * 48], strategy="random", model="linear", objective="auto", random_state=0)
    assert loop.objective == ERM()
    assert len(loop.ask(3)) == 3
