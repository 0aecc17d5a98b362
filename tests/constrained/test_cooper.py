"""The primal-dual updates equal those of the Cooper library, step for step."""

import copy

import cooper
import numpy as np
import pytest
import torch
from torch import nn

from ally.learning.learner import Examples
from ally.learning.losses import PRIMARY
from ally.learning.network import Network
from ally.learning.objectives import PDCL, Batch, HalfSquaredNorm, Problem, Session
from ally.learning.training import Training
from ally.models import MLP
from ally.rng import streams

N, D, CLASSES, BATCH, EPOCHS = 36, 6, 3, 7, 15
LR, DUAL_LR = 0.02, 0.4


class PerSample(cooper.ConstrainedMinimizationProblem):
    """min mean ℓ + R s.t. ℓ_i ≤ ε_i, with the mean over the batch in the primal and raw slacks in the dual."""

    def __init__(self, model, x, targets, loss, eps, start, regularizer=None):
        super().__init__()
        self.model, self.x, self.targets, self.loss_of, self.eps, self.regularizer = (
            model,
            x,
            targets,
            loss,
            eps,
            regularizer,
        )
        multiplier = cooper.multipliers.IndexedMultiplier(init=torch.full((len(x),), float(start)))
        self.constraint = cooper.Constraint(constraint_type=cooper.ConstraintType.INEQUALITY, multiplier=multiplier)

    def _losses(self, index):
        return self.loss_of(self.model(self.x[index]), self.targets[index])

    def compute_cmp_state(self, index):
        losses = self._losses(index)
        slacks = losses - self.eps[index]
        risk = losses.mean() if self.regularizer is None else losses.mean() + self.regularizer(self.model)
        state = cooper.ConstraintState(
            violation=slacks / len(index),
            constraint_features=index,
            strict_violation=slacks.detach(),
            strict_constraint_features=index,
        )
        return cooper.CMPState(loss=risk, observed_constraints={self.constraint: state})

    def compute_violations(self, everyone):
        state = cooper.ConstraintState(violation=self._losses(everyone) - self.eps, constraint_features=everyone)
        return cooper.CMPState(observed_constraints={self.constraint: state})

    def duals(self):
        return self.constraint.multiplier.weight.detach().flatten()


def cooper_optimizer(problem, kind=cooper.optim.SimultaneousOptimizer, dual_lr=DUAL_LR):
    return kind(
        problem,
        primal_optimizers=torch.optim.Adam(problem.model.parameters(), lr=LR),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), lr=dual_lr, maximize=True),
    )


def data(task):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(N, D, generator=generator)
    if task == "classification":
        targets = torch.randint(CLASSES, (N,), generator=generator)
    else:
        targets = x[:, 0] - x[:, 1] + 0.5 * torch.randn(N, generator=generator)
    eps = 0.1 + 0.8 * torch.rand(N, generator=generator)
    return x, targets, eps


def network(task, hidden=(10,)):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return MLP((D,), CLASSES if task == "classification" else 1, hidden=hidden)


def start(objective, task, targets):
    classes = tuple(range(CLASSES)) if task == "classification" else None
    return objective.start(Problem(targets, task, classes, PRIMARY[task], reference_loss=lambda: 0.0))


def batches(epochs=EPOCHS):
    order = torch.Generator().manual_seed(11)
    for epoch in range(1, epochs + 1):
        for number, index in enumerate(torch.randperm(N, generator=order).split(BATCH)):
            yield epoch, number == 0, index


def assert_same(model, duals, problem):
    for ours, theirs in zip(model.parameters(), problem.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(duals, problem.duals(), rtol=1e-5, atol=1e-6 * (1 + float(duals.max())))


def run(task, objective, eps_of=lambda eps: eps, dual_lr=DUAL_LR):
    """Both libraries side by side on the same batches; the duals after every step."""
    x, targets, eps = data(task)
    eps = eps_of(eps)
    model = network(task)
    problem = PerSample(
        copy.deepcopy(model), x, targets, PRIMARY[task], eps, objective.dual_init, objective.regularizer
    )
    theirs = cooper_optimizer(problem, dual_lr=dual_lr)
    ours = torch.optim.Adam(model.parameters(), lr=LR)
    session = start(objective, task, targets)
    path = []
    for epoch, first, index in batches():
        if first:
            session.start_epoch(epoch)
        value = session.loss(model, Batch(index, x[index], targets[index]), None)
        ours.zero_grad()
        value.backward()
        ours.step()
        session.after_step(len(path) + 1, lambda: model(x).detach())
        theirs.roll(compute_cmp_state_kwargs={"index": index})
        path.append(session.duals()["labelled"])
        assert_same(model, path[-1], problem)
    return torch.stack(path)


def objective_for(task, **settings):
    return PDCL(eps=data(task)[2].numpy(), **{"dual_lr": DUAL_LR, "dual_decay": 0.0} | settings)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("regularizer", [None, HalfSquaredNorm(0.1)])
def test_every_step_equals_cooper(task, regularizer):
    path = run(task, objective_for(task, regularizer=regularizer))
    assert len(path) >= 50
    assert path[-1].max() > 0.5


def test_every_step_equals_cooper_from_dual_init_one():
    path = run("classification", objective_for("classification", dual_init=1.0))
    assert len(path) >= 50
    assert (path[0] == 1).sum() == N - BATCH
    assert (path[-1] != 1).all()


def test_every_step_equals_cooper_while_duals_clip_at_zero():
    eps = data("regression")[2].numpy() * 2
    path = run("regression", PDCL(eps=eps, dual_lr=2.0, dual_decay=0.0), lambda values: values * 2, dual_lr=2.0)
    fell = (path[:-1] > 0) & (path[1:] == 0)
    assert fell.sum() >= 10
    assert (path >= 0).all()
    assert (path[-1] > 0).any()


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_reading_all_slacks_equals_alternating_cooper(task):
    x, targets, eps = data(task)
    model = network(task)
    problem = PerSample(copy.deepcopy(model), x, targets, PRIMARY[task], eps, 0.0)
    theirs = cooper_optimizer(problem, cooper.optim.AlternatingPrimalDualOptimizer, dual_lr=0.1)
    ours = torch.optim.Adam(model.parameters(), lr=LR)
    session = start(objective_for(task, slacks="all", dual_lr=0.1), task, targets)
    for step, (epoch, first, index) in enumerate(batches(), start=1):
        if first:
            session.start_epoch(epoch)
        value = session.loss(model, Batch(index, x[index], targets[index]), None)
        ours.zero_grad()
        value.backward()
        ours.step()
        session.after_step(step, lambda: model(x).detach())
        theirs.roll(compute_cmp_state_kwargs={"index": index}, compute_violations_kwargs={"everyone": torch.arange(N)})
        assert_same(model, session.duals()["labelled"], problem)
    assert step >= 50
    assert session.duals()["labelled"].max() > 0.5


class Recorded:
    """An objective that notes the batches it is given and the state it meets before each of them."""

    def __init__(self, objective):
        self.objective = objective
        self.steps = []

    def start(self, problem):
        inner, steps = self.objective.start(problem), self.steps

        class Recording(Session):
            def start_epoch(self, epoch):
                inner.start_epoch(epoch)

            def loss(self, model: nn.Module, batch, unlabelled):
                steps.append((batch.index.clone(), copy.deepcopy(model), inner.duals()["labelled"]))
                return inner.loss(model, batch, unlabelled)

            def duals(self):
                return inner.duals()

        return Recording(problem)


def test_the_trainer_makes_the_steps_of_cooper():
    x, targets, eps = data("classification")
    training = Training(lr=LR, lr_decay=1.0, epochs=EPOCHS, batch_size=BATCH, device="cpu")
    learner = Network(lambda shape, outputs: MLP(shape, outputs, hidden=(10,)), training)
    recorded = Recorded(objective_for("classification"))
    fit = learner.fit(Examples.of(x.numpy(), targets.numpy().astype(np.float64), range(CLASSES)), recorded, streams(2))
    assert len(recorded.steps) >= 50

    problem = PerSample(copy.deepcopy(recorded.steps[0][1]), x, targets, PRIMARY["classification"], eps, 0.0)
    theirs = cooper_optimizer(problem)
    for index, model, duals in recorded.steps:
        assert_same(model, duals, problem)
        theirs.roll(compute_cmp_state_kwargs={"index": index})
    assert_same(fit.model, fit.duals["labelled"], problem)
