"""How the trainer behaves: reproducible, isolated, and faithful to the epoch it keeps."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from ally.constrained import Multipliers, lagrangian
from ally.data import as_source
from ally.errors import InputError, ModelError, OneClassError, TrainingDiverged, UnknownName
from ally.learning.fitted_network import evaluate, to_tensor
from ally.learning.learner import Examples, Unlabelled
from ally.learning.losses import absolute_error, brier, cross_entropy, squared_error
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, Feasibility, Resilient, Session
from ally.learning.objectives.base import forward
from ally.learning.training import Training
from ally.models import MLP, Split, model_builder
from ally.rng import streams

CLASSES = ("a", "b", "c")


def examples(n=60, task="classification", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 6)).astype(np.float32)
    scores = np.tanh(x @ np.random.default_rng(99).standard_normal((6, 3))) + 0.4 * rng.standard_normal((n, 3))
    if task == "classification":
        return Examples.of(x, scores.argmax(1), CLASSES)
    return Examples.of(x, 5 * scores[:, 0] + 2)


def features(data):
    return data.source.read(data.rows)


def mlp(shape, outputs):
    return MLP(shape, outputs, hidden=(16,), dropout=0.2)


def normed(shape, outputs):
    return Split(nn.Sequential(nn.Linear(shape[0], 12), nn.BatchNorm1d(12), nn.ReLU()), nn.Linear(12, outputs))


def learner(build=mlp, **settings):
    training = Training(**{"lr": 0.01, "epochs": 6, "batch_size": 16, "device": "cpu"} | settings)
    return Network(build, training)


def state(fit):
    return {name: value.clone() for name, value in fit.model.state_dict().items()} | {
        f"λ {k}": v for k, v in fit.duals.items()
    }


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def report_of(fit):
    return dataclasses.replace(fit.report, seconds=0.0)


OBJECTIVES = {
    "erm": ERM(),
    "pdcl": PDCL(eps=0.3, dual_lr=0.2),
    "pdcl-all": PDCL(eps=0.3, dual_lr=0.2, slacks="all"),
    "feasibility": Feasibility(eps=0.3, dual_lr=0.2),
    "resilient": Resilient(eps=0.3),
}


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_equal_seeds_give_equal_bits(task, objective):
    data = examples(task=task)
    torch.manual_seed(1)
    first = learner().fit(data, objective, streams(5))
    torch.manual_seed(2)
    second = learner().fit(data, objective, streams(5))
    other = learner().fit(data, objective, streams(6))
    assert same(state(first), state(second))
    assert report_of(first) == report_of(second)
    assert not torch.equal(first.model.head.weight, other.model.head.weight)
    assert ("labelled" in first.duals) == (not isinstance(objective, ERM))


@pytest.mark.parametrize("objective", [ERM(), PDCL(eps="auto")], ids=["erm", "auto"])
def test_global_generators_are_left_alone(objective):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    before, legacy = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    learner().fit(examples(), objective, streams(0))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert (np.random.get_state()[1] == legacy).all()  # noqa: NPY002


def test_global_generators_are_left_alone_by_a_failed_fit():
    before = torch.random.get_rng_state()
    with pytest.raises(TrainingDiverged):
        learner(lr=1e30).fit(examples(), ERM(), streams(0))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("build", [mlp, normed])
@pytest.mark.parametrize(
    "objective", [PDCL(eps=0.1, dual_lr=0.5), PDCL(eps=0.1, dual_lr=0.5, slacks="all")], ids=["minibatch", "all"]
)
def test_kept_parameters_and_duals_are_of_the_best_epoch(build, objective):
    data, held_out = examples(), examples(40, seed=1)
    fit = learner(build, lr=0.02, epochs=40, patience=5).fit(data, objective, streams(0), validation=held_out)
    kept = fit.report.kept_epoch
    assert kept < fit.report.epochs < 40
    assert same(state(fit), state(learner(build, lr=0.02, epochs=kept).fit(data, objective, streams(0))))
    last = learner(build, lr=0.02, epochs=fit.report.epochs).fit(data, objective, streams(0))
    assert not torch.equal(fit.duals["labelled"], last.duals["labelled"])
    assert not torch.equal(fit.model.head.weight, last.model.head.weight)


def test_early_duals_beside_the_last_network():
    data, held_out, objective = examples(), examples(40, seed=1), PDCL(eps=0.1, dual_lr=0.5, slacks="all")
    stopped = learner(lr=0.02, epochs=40, patience=2).fit(data, objective, streams(0), validation=held_out)
    both = learner(lr=0.02, epochs=40, patience=2, keep="last").fit(data, objective, streams(0), validation=held_out)
    last = learner(lr=0.02, epochs=40).fit(data, objective, streams(0))
    assert torch.equal(both.duals["labelled"], stopped.duals["labelled"])
    assert torch.equal(both.model.head.weight, last.model.head.weight)
    assert not torch.equal(stopped.duals["labelled"], last.duals["labelled"])
    report = both.report
    assert (report.epochs, report.kept_epoch, report.dual_epoch) == (40, 40, stopped.report.kept_epoch)
    assert stopped.report.dual_epoch == stopped.report.kept_epoch


def test_keep_is_one_of_two():
    with pytest.raises(InputError, match="keep='first'; pass 'best' or 'last'"):
        Training(keep="first")


def test_the_kept_epoch_has_the_lowest_validation_loss():
    data, held_out = examples(), examples(40, seed=1)
    settings = {"lr": 0.05, "patience": 5}
    fit = learner(epochs=40, **settings).fit(data, ERM(), streams(0), validation=held_out)
    losses = []
    for epoch in range(1, fit.report.epochs + 1):
        model = learner(epochs=epoch, **settings).fit(data, ERM(), streams(0)).model
        losses.append(
            cross_entropy(evaluate(model, torch.from_numpy(features(held_out))), torch.from_numpy(held_out.labels))
            .mean()
            .item()
        )
    assert fit.report.kept_epoch == 1 + int(np.argmin(losses))
    assert fit.report.validation_loss == pytest.approx(min(losses), rel=1e-6)


@pytest.mark.parametrize("patience", [1, 4])
def test_patience_stops_early(patience):
    seen = []
    fit = learner(lr=0.05, epochs=60, patience=patience).fit(
        examples(), ERM(), streams(0), validation=examples(40, seed=1), progress=lambda *call: seen.append(call)
    )
    assert fit.report.epochs == fit.report.kept_epoch + patience < 60
    assert seen == [("train", epoch, 60) for epoch in range(1, fit.report.epochs + 1)]


def test_without_validation_the_last_epoch_is_kept():
    fit = learner(lr=0.05, epochs=25, patience=1).fit(examples(), PDCL(), streams(0))
    assert (fit.report.epochs, fit.report.kept_epoch, fit.report.validation_loss) == (25, 25, None)


@pytest.mark.parametrize("share", [-0.1, 0.6, np.nan])
def test_a_share_to_hold_out_is_at_most_a_half(share):
    with pytest.raises(InputError, match=r"validation_share=.* is not a share; pass a number from 0 to 0.5, or None"):
        Training(validation_share=share)


@pytest.mark.parametrize(("task", "share"), [("classification", 0.2), ("regression", 0.35)])
def test_a_share_of_the_labels_stops_training(task, share):
    data = examples(60, task)
    fit = learner(epochs=60, lr=0.05, patience=2, validation_share=share).fit(data, PDCL(eps=0.1), streams(0))
    unknown = fit.duals["labelled"].isnan().numpy()
    assert unknown.sum() == 60 - fit.report.samples == round(60 * share)
    assert fit.report.epochs == fit.report.kept_epoch + 2 < 60
    alone = learner(epochs=60, lr=0.05, patience=2).fit(
        data.at(~unknown), PDCL(eps=0.1), streams(0), validation=data.at(unknown)
    )
    assert torch.equal(alone.duals["labelled"], fit.duals["labelled"][~torch.from_numpy(unknown)])
    assert same(
        {n: v for n, v in state(fit).items() if n[0] != "λ"}, {n: v for n, v in state(alone).items() if n[0] != "λ"}
    )
    given = learner(epochs=60, lr=0.05, patience=2, validation_share=share).fit(
        data, PDCL(eps=0.1), streams(0), validation=examples(20, task, seed=1)
    )
    assert given.report.samples == 60


def test_the_only_label_of_a_class_is_never_held_out():
    data = examples(60)
    labels = np.where(np.arange(60) == 7, 2, data.labels % 2)
    for seed in range(5):
        fit = learner(epochs=1, validation_share=0.5).fit(
            Examples.of(features(data), labels, CLASSES), PDCL(), streams(seed)
        )
        assert not fit.duals["labelled"][7].isnan()
        held_out = labels[fit.duals["labelled"].isnan().numpy()]
        assert len(held_out) == 30
        assert abs((held_out == 0).sum() - (labels == 0).sum() / 2) <= 1


def test_empty_validation_is_refused():
    with pytest.raises(InputError, match="validation holds 0 samples"):
        learner().fit(examples(), ERM(), streams(0), validation=examples().at([]))


def test_a_module_is_copied_and_never_modified():
    torch.manual_seed(0)
    module = normed((6,), 3)
    before = copy.deepcopy(module.state_dict())
    fit = learner(model_builder(module, (6,))).fit(examples(), PDCL(), streams(0))
    assert fit.model is not module
    assert same(dict(module.state_dict()), before)
    assert module.training
    assert all(parameter.grad is None for parameter in module.parameters())
    assert not torch.equal(fit.model.head.weight, module.head.weight)
    assert fit.model.backbone[1].num_batches_tracked > 0


@pytest.mark.parametrize("build", [normed, model_builder(normed((6,), 3), (6,))], ids=["builder", "module"])
def test_no_state_leaks_between_fits(build):
    alone = state(learner(build).fit(examples(), PDCL(), streams(0)))
    far = Examples.of(100 + features(examples()), examples().labels, CLASSES)
    learner(build, epochs=20).fit(far, PDCL(), streams(1))
    assert same(state(learner(build).fit(examples(), PDCL(), streams(0))), alone)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("objective", [ERM(), PDCL()], ids=["erm", "pdcl"])
def test_divergence_is_an_error(task, objective):
    with pytest.raises(
        TrainingDiverged, match=r"the training loss is (nan|inf) in epoch \d+ \(lr=1e\+30\); lower lr or dual_lr"
    ):
        learner(lr=1e30).fit(examples(task=task), objective, streams(0))


def test_one_class_is_an_error():
    with pytest.raises(OneClassError, match=r"all 60 .*'a', and a classifier needs at least two classes"):
        learner().fit(Examples.of(features(examples()), np.zeros(60), ("a",)), ERM(), streams(0))


def test_no_samples_is_an_error():
    with pytest.raises(InputError, match="0 labelled samples"):
        learner().fit(examples().at([]), ERM(), streams(0))


def test_duals_move_once_per_three_epochs():
    objective = PDCL(eps=0.0, dual_lr=0.5, primal_steps=3, dual_decay=0.5)
    data = examples()
    duals = {epoch: learner(epochs=epoch).fit(data, objective, streams(0)).duals["labelled"] for epoch in range(1, 8)}
    assert (duals[1] == 0).all()
    assert (duals[2] == 0).all()
    assert (duals[3] > 0).all()
    assert torch.equal(duals[4], duals[3])
    assert torch.equal(duals[5], duals[3])
    assert (duals[6] > duals[3]).all()
    assert torch.equal(duals[7], duals[6])


def test_with_all_slacks_duals_move_after_every_three_steps():
    objective = PDCL(eps=0.0, dual_lr=0.5, primal_steps=3, slacks="all")
    data = examples(32)
    duals = {epoch: learner(epochs=epoch).fit(data, objective, streams(0)).duals["labelled"] for epoch in range(1, 5)}
    assert (duals[1] == 0).all()
    assert (duals[2] > 0).all()
    assert (duals[3] > duals[2]).all()
    assert torch.equal(duals[4], duals[3])


def test_with_all_slacks_duals_may_move_once_an_epoch():
    """After every T_p passes over the samples, from the slacks of the network as it is then."""
    objective = PDCL(eps=0.0, dual_lr=0.5, dual_decay=0.0, primal_steps=2, slacks="all", dual_every="epoch")
    data = examples(32)
    fits = {epoch: learner(epochs=epoch).fit(data, objective, streams(0)) for epoch in range(1, 5)}
    duals = {epoch: fit.duals["labelled"] for epoch, fit in fits.items()}
    assert (duals[1] == 0).all()
    losses = cross_entropy(
        evaluate(fits[2].model, torch.from_numpy(features(data))), torch.as_tensor(data.labels, dtype=torch.int64)
    )
    torch.testing.assert_close(duals[2], 0.5 * losses)
    assert torch.equal(duals[3], duals[2])
    assert (duals[4] > duals[3]).all()


@pytest.mark.parametrize("primal_steps", [1, 3])
def test_with_one_batch_an_epoch_both_readings_of_algorithm_1_are_the_same(primal_steps):
    data, trains = examples(32), learner(epochs=7, batch_size=32)
    objectives = (
        PDCL(eps=0.1, dual_lr=0.5, primal_steps=primal_steps, slacks="all", dual_every=every)
        for every in ("step", "epoch")
    )
    one, other = (trains.fit(data, objective, streams(0)) for objective in objectives)
    assert same(state(one), state(other))


def test_settings_that_came_later_are_shown_only_where_they_were_chosen():
    """Experiments know an objective by its repr."""
    assert repr(PDCL()) == (
        "PDCL(eps=None, dual_lr=0.05, dual_init=0.0, dual_decay=0.0625, dual_cap=None, primal_steps=1, "
        "slacks='minibatch', secondary_loss=None, regularizer=None, weighted=True)"
    )
    assert repr(PDCL(dual_every="epoch")).endswith("weighted=True, dual_every='epoch')")
    assert repr(Feasibility()) == repr(PDCL()).replace("PDCL", "Feasibility")


def test_of_epochs_with_equal_validation_losses_the_last_is_kept():
    class Still(nn.Module):
        """Outputs that no training changes."""

        def __init__(self):
            super().__init__()
            self.backbone, self.head = nn.Identity(), nn.Linear(6, 3)
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)
            self.head.register_forward_hook(lambda layer, x, y: y - y)

    fit = Network(lambda shape, outputs: Still(), Training(epochs=6, patience=2), standardized=False).fit(
        examples(), ERM(), streams(0), validation=examples(20, seed=1)
    )
    assert (fit.report.kept_epoch, fit.report.epochs) == (6, 6)


def test_dual_steps_diminish_with_the_moves():
    """With a frozen network the t-th move adds dual_lr · t^-power · slack."""
    objective = PDCL(eps=0.0, dual_lr=0.5, dual_decay=0.5)
    one, two, three = (
        learner(still, epochs=epochs).fit(examples(), objective, streams(0)).duals["labelled"] for epochs in (1, 2, 3)
    )
    torch.testing.assert_close(two - one, one * 2**-0.5, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(three - two, one * 3**-0.5, rtol=1e-4, atol=1e-5)


class Slope:
    """Descends the bias of the head with gradient 1, so that Adam moves it by the step size exactly."""

    class Descent(Session):
        def loss(self, model, batch, unlabelled):
            return model.head.bias.sum()

    def start(self, problem):
        return self.Descent(problem)


def test_primal_steps_shrink_by_the_epoch():
    module = MLP((6,), 3, hidden=())
    fit = learner(model_builder(module, (6,)), lr=0.1, lr_decay=0.5, epochs=5, batch_size=20).fit(
        examples(), Slope(), streams(0)
    )
    moved = (module.head.bias - fit.model.head.bias).detach()
    torch.testing.assert_close(moved, torch.full((3,), 3 * 0.1 * (1 - 0.5**5) / 0.5), rtol=1e-5, atol=1e-6)


class Scale(nn.Module):
    """Trainable in name: its parameter has no effect."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + 0 * self.unused


def still(shape, outputs):
    head = nn.Linear(shape[0], outputs).requires_grad_(False)
    return Split(Scale(), head)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("held_out", [False, True], ids=["all-epochs", "early-stopped"])
def test_auto_eps_is_a_multiple_of_the_unconstrained_loss(task, held_out):
    data, validation = examples(task=task), examples(40, task=task, seed=1) if held_out else None
    settings = {"lr": 0.05, "epochs": 30, "patience": 3}
    reference = learner(**settings).fit(data, ERM(), streams(0), validation=validation).report
    assert (reference.kept_epoch < 30) == held_out
    auto = learner(**settings).fit(data, PDCL(eps="auto"), streams(0), validation=validation)
    given = learner(**settings).fit(data, PDCL(eps=1.15 * reference.train_loss), streams(0), validation=validation)
    assert same(state(auto), state(given))
    assert report_of(auto) == report_of(given)


def thousandfold(outputs, targets):
    return 1000 * cross_entropy(outputs, targets)


@pytest.mark.parametrize(
    ("task", "loss"), [("classification", brier), ("classification", thousandfold), ("regression", absolute_error)]
)
@pytest.mark.parametrize("held_out", [False, True], ids=["all-epochs", "early-stopped"])
def test_auto_eps_is_of_the_loss_that_is_constrained(task, loss, held_out):
    data, validation = examples(task=task), examples(40, task=task, seed=1) if held_out else None
    trains = learner(lr=0.05, epochs=30, patience=3)
    plain = trains.fit(data, ERM(), streams(0), validation=validation)
    targets = torch.from_numpy(
        data.labels if task == "classification" else plain.scale.apply(data.labels).astype(np.float32)
    )
    mean = loss(plain.embed(torch.from_numpy(features(data)))[1], targets).mean().item()
    assert abs(mean / plain.report.train_loss - 1) > 0.1
    if loss is thousandfold:
        assert mean == pytest.approx(1000 * plain.report.train_loss, rel=1e-5)
    auto = trains.fit(data, PDCL(eps="auto", secondary_loss=loss), streams(0), validation=validation)
    given = trains.fit(data, PDCL(eps=1.15 * mean, secondary_loss=loss), streams(0), validation=validation)
    torch.testing.assert_close(auto.duals["labelled"], given.duals["labelled"], rtol=1e-3, atol=1e-3)
    assert auto.report.slacks.largest == pytest.approx(given.report.slacks.largest, rel=1e-3)


@pytest.mark.parametrize(
    ("task", "objective", "loss"),
    [
        ("classification", PDCL(eps=np.linspace(0.2, 1.0, 60), dual_lr=0.5), cross_entropy),
        ("classification", PDCL(eps={"a": 0.3, "b": 0.6, "c": 0.9}, dual_lr=0.5, slacks="all"), cross_entropy),
        ("regression", PDCL(eps=np.linspace(0.1, 0.6, 60), dual_lr=0.5, secondary_loss="absolute"), absolute_error),
    ],
)
def test_the_report_can_be_recomputed(task, objective, loss):
    data = examples(task=task)
    fit = learner(epochs=15).fit(data, objective, streams(0), validation=examples(40, task=task, seed=1))
    targets = torch.from_numpy(
        data.labels if task == "classification" else fit.scale.apply(data.labels).astype(np.float32)
    )
    eps = (
        np.asarray(objective.eps)
        if isinstance(objective.eps, tuple)
        else np.array([objective.eps[CLASSES[k]] for k in data.labels])
    )
    outputs = fit.embed(torch.from_numpy(features(data)))[1]
    slacks = loss(outputs, targets) - torch.from_numpy(eps).float()
    duals, report = fit.duals["labelled"], fit.report
    primary = cross_entropy if task == "classification" else squared_error
    assert report.samples == len(duals) == 60
    assert report.train_loss == pytest.approx(primary(outputs, targets).mean().item(), rel=1e-5)
    assert report.positive_duals == pytest.approx((duals > 0).float().mean().item())
    assert 0 < report.positive_duals < 1
    assert report.slacks.largest == pytest.approx(slacks.max().item(), rel=1e-5)
    assert report.slacks.violation == pytest.approx(slacks.clamp(min=0).mean().item(), rel=1e-4)
    assert report.slacks.violated == pytest.approx((slacks > 0).float().mean().item())
    assert not fit.model.training


def test_erm_reports_no_constraints():
    fit = learner().fit(examples(), ERM(), streams(0))
    assert fit.duals == {}
    assert (fit.report.positive_duals, fit.report.slacks) == (None, None)


class Confident:
    """Mean cross-entropy with a bound on the entropy of every unlabelled sample; notes what it is given."""

    def __init__(self, eps=0.5, dual_lr=0.1):
        self.eps, self.dual_lr = eps, dual_lr
        self.drawn = []

    def start(self, problem):
        return _ConfidentSession(problem, self)


class _ConfidentSession(Session):
    unlabelled_batch = 16

    def __init__(self, problem, objective):
        super().__init__(problem)
        self.objective = objective
        self.labelled = Multipliers(len(problem.targets))
        self.unlabelled = Multipliers(problem.n_unlabelled)

    def loss(self, model, batch, unlabelled):
        self.objective.drawn.append(unlabelled)
        losses = self.problem.loss(forward(model, batch.x), batch.targets)
        risk = lagrangian(losses.mean(), losses - self.objective.eps, self.labelled.values[batch.index])
        entropy = torch.distributions.Categorical(logits=forward(model, unlabelled.x)).entropy()
        slacks = entropy - self.objective.eps
        value = lagrangian(risk, slacks, self.unlabelled.values[unlabelled.index])
        self.labelled.ascend(batch.index, losses - self.objective.eps, self.objective.dual_lr)
        self.unlabelled.ascend(unlabelled.index, slacks, self.objective.dual_lr)
        return value

    def duals(self):
        return {"labelled": self.labelled.values.clone(), "unlabelled": self.unlabelled.values.clone()}


def pool(n=50, size=200, seed=7):
    rng = np.random.default_rng(seed)
    return Unlabelled(as_source(rng.standard_normal((size, 6)).astype(np.float32)), np.sort(rng.permutation(size)[:n]))


def test_an_objective_over_unlabelled_samples():
    objective, unlabelled = Confident(), pool(50)
    fit = learner(epochs=13).fit(examples(), objective, streams(0), unlabelled=unlabelled)
    steps = 13 * 4
    assert len(objective.drawn) == steps
    assert {len(batch.index) for batch in objective.drawn} <= {12, 13}
    counts = torch.bincount(torch.cat([batch.index for batch in objective.drawn]), minlength=50)
    assert counts.max() - counts.min() <= 1
    assert counts.min() == 13
    for batch in objective.drawn[:5]:
        assert (batch.x.numpy() == unlabelled.source.read(unlabelled.rows[batch.index.numpy()])).all()
    assert not torch.equal(
        torch.cat([b.index for b in objective.drawn[:4]]), torch.cat([b.index for b in objective.drawn[4:8]])
    )
    assert fit.duals["labelled"].shape == (60,)
    assert fit.duals["unlabelled"].shape == (50,)
    assert (fit.duals["unlabelled"] > 0).any()
    assert fit.report.positive_duals == pytest.approx((torch.cat(list(fit.duals.values())) > 0).float().mean().item())


def test_unlabelled_constraints_shape_the_network():
    unlabelled = pool(50)
    x = unlabelled.source.read(unlabelled.rows)

    def entropy(objective):
        fit = learner(epochs=30).fit(examples(), objective, streams(0), unlabelled=unlabelled)
        return torch.distributions.Categorical(logits=fit.embed(torch.from_numpy(x))[1]).entropy().mean()

    assert entropy(Confident(eps=0.1, dual_lr=0.2)) < 0.7 * entropy(ERM())


def test_unlabelled_duals_are_kept_with_the_best_epoch():
    data, unlabelled, held_out = examples(), pool(50), examples(40, seed=1)
    fit = learner(lr=0.05, epochs=40, patience=4).fit(
        data, Confident(), streams(0), validation=held_out, unlabelled=unlabelled
    )
    kept = fit.report.kept_epoch
    assert kept < fit.report.epochs
    assert same(
        state(fit), state(learner(lr=0.05, epochs=kept).fit(data, Confident(), streams(0), unlabelled=unlabelled))
    )


@pytest.mark.parametrize("n", [1, 5, 16, 17])
def test_few_unlabelled_samples_are_drawn_evenly(n):
    objective = Confident()
    learner(epochs=17).fit(examples(), objective, streams(0), unlabelled=pool(n))
    counts = torch.bincount(torch.cat([batch.index for batch in objective.drawn]), minlength=n)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    "unlabelled", [None, Unlabelled(as_source(np.zeros((3, 6))), np.empty(0, np.int64))], ids=["none", "no-rows"]
)
def test_an_objective_over_unlabelled_samples_needs_some(unlabelled):
    with pytest.raises(
        InputError, match="_ConfidentSession draws unlabelled samples and none are available; use another objective"
    ):
        learner().fit(examples(), Confident(), streams(0), unlabelled=unlabelled)


def test_unlabelled_rows_do_not_matter_to_other_objectives():
    without = learner().fit(examples(), PDCL(), streams(0))
    assert same(state(without), state(learner().fit(examples(), PDCL(), streams(0), unlabelled=pool())))


@pytest.mark.parametrize("slacks", ["minibatch", "all"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_double_precision_modules(task, slacks):
    double = learner(lambda shape, outputs: MLP(shape, outputs, hidden=(16,)).double())
    single = learner(lambda shape, outputs: MLP(shape, outputs, hidden=(16,)))
    objective = PDCL(eps=0.3, dual_lr=0.2, slacks=slacks)
    data, held_out = examples(task=task), examples(30, task=task, seed=1)
    fit = double.fit(data, objective, streams(0), validation=held_out)
    assert {parameter.dtype for parameter in fit.model.parameters()} == {torch.float64}
    assert fit.duals["labelled"].dtype == torch.float32
    assert [part.dtype for part in fit.embed(to_tensor(features(data), "cpu", torch.float64))] == [torch.float32] * 2
    rounded = single.fit(data, objective, streams(0), validation=held_out)
    torch.testing.assert_close(fit.duals["labelled"], rounded.duals["labelled"], rtol=1e-3, atol=1e-4)


def test_a_frozen_backbone_stays_as_it_is():
    torch.manual_seed(0)
    module = MLP((6,), 3, hidden=(16,))
    module.backbone.requires_grad_(False)
    fit = learner(model_builder(module, (6,))).fit(examples(), PDCL(eps=0.3), streams(0))
    assert same(dict(fit.model.backbone.state_dict()), dict(module.backbone.state_dict()))
    assert not torch.equal(fit.model.head.weight, module.head.weight)
    assert not any(parameter.requires_grad for parameter in fit.model.backbone.parameters())
    assert (fit.duals["labelled"] > 0).any()


def test_a_wholly_frozen_network_is_an_error():
    with pytest.raises(ModelError, match="MLP has no trainable parameters; leave at least the head trainable"):
        learner(lambda shape, outputs: MLP(shape, outputs).requires_grad_(False)).fit(examples(), ERM(), streams(0))


@pytest.mark.parametrize(("n", "size"), [(33, 32), (34, 32), (9, 8), (60, 7)])
def test_batches_cover_all_samples_and_are_near_equal(n, size):
    sizes = []

    class Watch:
        def start(self, problem):
            session = ERM().start(problem)
            inner = session.loss

            def loss(model, batch, unlabelled):
                sizes.append(batch.index)
                assert torch.equal(batch.targets, problem.targets[batch.index])
                return inner(model, batch, unlabelled)

            session.loss = loss
            return session

    learner(normed, epochs=1, batch_size=size).fit(examples(n), Watch(), streams(0))
    lengths = [len(index) for index in sizes]
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert torch.cat(sizes).sort().values.tolist() == list(range(n))


def test_the_optimiser_can_be_given():
    data = examples()
    adam = learner().fit(data, ERM(), streams(0))
    assert same(state(learner(optimizer="adam").fit(data, ERM(), streams(0))), state(adam))
    made = []

    def build(parameters, lr):
        made.append(torch.optim.SGD(parameters, lr=lr, momentum=0.9))
        return made[-1]

    own = learner(optimizer=build, lr_decay=0.5).fit(data, ERM(), streams(0))
    assert same(state(learner(optimizer="sgd", lr_decay=0.5).fit(data, ERM(), streams(0))), state(own))
    assert not same(state(own), state(adam))
    assert made[0].param_groups[0]["lr"] == pytest.approx(0.01 * 0.5**5)
    with pytest.raises(UnknownName, match="unknown optimizer 'sdg'; did you mean 'sgd'"):
        Training(optimizer="sdg")
    with pytest.raises(InputError, match="optimizer gave a list"):
        learner(optimizer=lambda parameters, lr: list(parameters)).fit(data, ERM(), streams(0))
    with pytest.raises(InputError, match="augment=3 is not a function"):
        Training(augment=3)


@pytest.mark.parametrize("slacks", ["minibatch", "all"])
def test_the_loss_can_be_given_and_constraints_are_in_its_units(slacks):
    data, objective = examples(), PDCL(eps=0.1, dual_lr=0.2, slacks=slacks)
    fit = learner(loss="brier", epochs=10).fit(data, objective, streams(0))
    own = learner(loss=lambda outputs, targets: brier(outputs, targets), epochs=10).fit(data, objective, streams(0))
    assert same(state(fit), state(own))
    losses = brier(fit.embed(torch.from_numpy(features(data)))[1], torch.from_numpy(data.labels))
    assert fit.report.train_loss == pytest.approx(float(losses.mean()), rel=1e-5)
    assert fit.report.slacks.largest == pytest.approx(float(losses.max()) - 0.1, rel=1e-4)
    plain = learner(epochs=10).fit(data, objective, streams(0))
    assert not same(state(fit), state(plain))
    with pytest.raises(InputError, match=r"loss gave \(\) for a batch of 15"):
        learner(loss=lambda outputs, targets: outputs.sum()).fit(data, ERM(), streams(0))


def test_augmentation_changes_training_batches_only():
    data, held_out, seen = examples(), examples(20, seed=1), []

    def shift(x):
        seen.append(x.clone())
        return x + torch.rand(1)

    plain = learner().fit(data, ERM(), streams(0), validation=held_out)
    fit = learner(augment=shift).fit(data, ERM(), streams(0), validation=held_out)
    assert same(state(fit), state(learner(augment=shift).fit(data, ERM(), streams(0), validation=held_out)))
    assert not same(state(fit), state(plain))
    rows = {tuple(row) for row in features(data).tolist()}
    assert {tuple(row) for batch in seen for row in batch.tolist()} == rows
    view = fit.view(data.source, data.rows)
    torch.testing.assert_close(view.embeddings, fit.model.backbone(torch.from_numpy(features(data))).detach())
    with pytest.raises(InputError, match=r"augment gave \(15, 5\) for a batch of shape \(15, 6\)"):
        learner(augment=lambda x: x[:, 1:]).fit(data, ERM(), streams(0))


def test_settings_that_were_not_given_are_not_shown():
    assert repr(Training()) == (
        "Training(lr=0.001, lr_decay=0.97, epochs=40, batch_size=None, patience=10, keep='best', device='auto')"
    )
    assert "optimizer='sgd'" in repr(Training(optimizer="sgd"))
