"""Training shared by two real processes: the same network and duals as by one, up to rounding."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from ally.errors import AllyError, EngineError, ModelError
from ally.learning.learner import Examples
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, VAAL, Feasibility, Resilient
from ally.learning.objectives.regularizers import HalfSquaredNorm
from ally.learning.parallel import joined, shared_by
from ally.learning.training import Training
from ally.models import MLP, Split
from ally.rng import streams

pytestmark = pytest.mark.xdist_group("two processes")
LARGEST = 2e-5
"""Difference of any weight or dual after about a hundred steps in single precision; docs/scale.md says what it is."""


def plain(shape, outputs):
    return MLP(shape, outputs, hidden=(16,), dropout=0.0)


def linear(shape, outputs):
    return Split(nn.Flatten(), nn.Linear(shape[0], outputs))


def normed(shape, outputs):
    return Split(nn.Sequential(nn.Linear(shape[0], 12), nn.BatchNorm1d(12), nn.ReLU()), nn.Linear(12, outputs))


def samples(n=61, task="classification", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 6)).astype(np.float32)
    y = x @ np.random.default_rng(99).standard_normal((6, 3)) + rng.standard_normal((n, 3))
    return Examples.of(x, y.argmax(1), ("a", "b", "c")) if task == "classification" else Examples.of(x, 5 * y[:, 0])


WEIGHTED = replace(samples(), weights=np.linspace(0.5, 3, 61))
CONVEX = PDCL(eps=0.3, dual_lr=0.2, regularizer=HalfSquaredNorm(0.1))
CASES = {
    "convex": (linear, samples(), CONVEX, None),
    "convex, every slack": (linear, samples(), replace(CONVEX, slacks="all"), None),
    "convex, every slack once an epoch": (linear, samples(), replace(CONVEX, slacks="all", dual_every="epoch"), None),
    "mlp": (plain, samples(), PDCL(eps=0.3, dual_lr=0.2), None),
    "feasibility": (plain, samples(), Feasibility(eps=0.3, dual_lr=0.2), None),
    "resilient": (plain, samples(), Resilient(eps=0.3), None),
    "weights and validation": (plain, WEIGHTED, ERM(), samples(seed=1)),
    "numbers, level from a plain fit": (plain, samples(task="regression"), PDCL(eps="auto"), None),
}
REFUSED = {
    "VAAL looks at a batch as a whole": (plain, samples(), VAAL(), None),
    "batch norm looks at a batch as a whole": (normed, samples(), ERM(), None),
    "more than the 1 labelled": (plain, samples(1), ERM(), None),
    "one number per sample": (plain, samples(), PDCL(eps=[0.1] * 61), None),
    "lower lr": (plain, samples(), ERM(), None),
}


def fit(processes, build, data, objective, validation, **settings):
    training = Training(**{"lr": 0.01, "epochs": 12, "batch_size": 8, "device": "cpu", "patience": 3} | settings)
    return Network(build, replace(training, processes=processes)).fit(
        data, objective, streams(0), validation=validation
    )


def fits_of_two():
    """All fits in one go: processes take seconds to start."""
    torch.manual_seed(joined(2).rank)
    found = {name: fit(2, *case) for name, case in CASES.items()}
    said = {}
    for words, case in REFUSED.items():
        try:
            fit(2, *case, **({"lr": 1e30} if words == "lower lr" else {}))
        except AllyError as error:
            said[words] = str(error)
    return found, said


@pytest.fixture(scope="module")
def of_two():
    return shared_by(2, fits_of_two)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_train_as_one(of_two, name):
    one, two = fit(1, *CASES[name]), of_two[0][name]
    numbers = [*one.model.state_dict().values(), *one.duals.values()]
    others = [*two.model.state_dict().values(), *two.duals.values()]
    for number, other in zip(numbers, others, strict=True):
        torch.testing.assert_close(other, number, rtol=0, atol=LARGEST)
    assert (one.report.epochs, one.report.kept_epoch) == (two.report.epochs, two.report.kept_epoch)
    assert one.report.train_loss == pytest.approx(two.report.train_loss, abs=LARGEST)
    assert one.report.positive_duals == two.report.positive_duals
    if one.report.slacks is not None:
        assert one.report.slacks.violation == pytest.approx(two.report.slacks.violation, abs=LARGEST)


def test_the_duals_are_not_all_zero(of_two):
    assert (of_two[0]["convex"].duals["labelled"] > 0).any()


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_shared_is_said(of_two, words):
    assert words in of_two[1][words]


def end_one():
    if joined(2).rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    joined(2).all(0)


@pytest.mark.slow
def test_a_process_that_is_killed_ends_the_training():
    with pytest.raises(EngineError, match="training process 1 ended early"):
        shared_by(2, end_one)


def test_what_cannot_be_sent_is_said():
    with pytest.raises(ModelError, match="cannot be sent to other processes"):
        fit(2, lambda shape, outputs: plain(shape, outputs), samples(), ERM(), None)


@pytest.mark.slow
def test_a_fit_starts_its_processes_itself():
    case = CASES["mlp"]
    one, two = fit(1, *case), fit(2, *case)
    torch.testing.assert_close(two.duals["labelled"], one.duals["labelled"], rtol=0, atol=LARGEST)
