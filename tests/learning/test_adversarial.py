"""Learning Loss, VAAL and WAAL: their equations on hand cases, and that what they train does what it is for."""

import copy
import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F

from ally.data import as_source
from ally.errors import InputError
from ally.execution.memory import Scratch
from ally.learning.learner import Examples, Unlabelled
from ally.learning.losses import PRIMARY, cross_entropy
from ally.learning.network import Network
from ally.learning.objectives import ERM, Batch, Problem, UnlabelledBatch
from ally.learning.objectives.learning_loss import LOSS_PREDICTION, LearningLoss, ranking_loss, read_layers
from ally.learning.objectives.vaal import VAAL, BetaVAE, negative_elbo
from ally.learning.objectives.waal import WAAL, critic_gap, gradient_penalty
from ally.learning.snapshot import Snapshot, view
from ally.learning.training import Training
from ally.models import MLP, ResNet18, Split
from ally.rng import seeded_torch, streams
from ally.scoring.adversarial import CriticUncertainty, Discriminator, PredictedLoss, loss_bound

PAIRS = {
    "learning-loss": (LearningLoss(stop_gradient_after=2, width=16), PredictedLoss()),
    "vaal": (VAAL(latent=4, width=16, unlabelled_batch=16), Discriminator()),
    "waal": (WAAL(width=16, unlabelled_batch=16), CriticUncertainty()),
}
SHAPES = {"vectors": (64,), "images": (1, 8, 8)}


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    return ((x - x.mean()) / x.std()).astype(np.float32), y


def fit(objective, x, y, labelled, unlabelled, *, seed=0, task="classification", build=None, **settings):
    training = Training(**{"device": "cpu", "epochs": 4} | settings)
    classes = tuple(range(10)) if task == "classification" else None
    build = build or (lambda shape, outputs: MLP(shape, outputs, hidden=(32, 32)))
    return Network(build, training).fit(
        Examples.of(x[labelled], y[labelled], classes),
        objective,
        streams(seed),
        unlabelled=Unlabelled(as_source(x), np.asarray(unlabelled)),
    )


def scores(score, trained, x):
    with Scratch() as scratch:
        seen = view(trained, as_source(x), np.arange(len(x)), scratch, readouts=score.readouts)
    return score(Snapshot(trained.task, seen, seen), streams(0)).scores


def parameters(module):
    return torch.cat([value.detach().flatten().double() for value in module.state_dict().values()])


def problem(targets, task="regression"):
    return Problem(targets, task, None, PRIMARY[task], lambda regularizer: 0.0)


def test_the_ranking_loss_is_the_papers():
    predicted, losses = torch.tensor([0.3, -1.0, 2.0, 0.5]), torch.tensor([2.0, 0.1, 0.7, 1.0])
    first = max(0.0, -1 * (0.3 - 0.5) + 1.5)
    second = max(0.0, +1 * (-1.0 - 2.0) + 1.5)
    assert ranking_loss(predicted, losses, 1.5).item() == pytest.approx((first + second) / 2)
    assert first > 0
    assert second == 0


def test_equal_losses_count_as_not_greater():
    assert ranking_loss(torch.tensor([1.0, 0.0]), torch.ones(2), 0.5).item() == pytest.approx(1.5)


def test_the_middle_of_an_odd_batch_has_no_partner():
    predicted, losses = torch.tensor([0.0, 9.0, 0.2]), torch.tensor([0.0, 5.0, 1.0])
    assert ranking_loss(predicted, losses, 1.0).item() == pytest.approx(0.8)


def test_a_batch_of_one_has_no_ranking_loss():
    predicted = torch.tensor([3.0], requires_grad=True)
    value = ranking_loss(predicted, torch.ones(1), 1.0)
    value.backward()
    assert value.item() == 0.0
    assert predicted.grad.item() == 0.0


@pytest.mark.parametrize("seed", [0, 1])
def test_predicted_losses_rank_the_losses_of_unseen_digits(digits, seed):
    x, y = digits
    order = np.random.default_rng(seed).permutation(len(x))
    labelled, rest = order[:150], np.sort(order[150:])
    trained = fit(LearningLoss(), x, y, labelled, rest, seed=seed, epochs=30)
    losses = cross_entropy(trained.embed(torch.from_numpy(x[rest]))[1], torch.from_numpy(y[rest]))
    assert spearmanr(scores(PredictedLoss(), trained, x[rest]), losses).statistic > 0.4


@pytest.mark.parametrize("stop", [0, 1, 3, None])
def test_the_gradient_into_the_backbone_stops(stop):
    torch.manual_seed(0)
    model = MLP((6,), 1, hidden=(8, 8))
    session = LearningLoss(stop_gradient_after=stop).start(problem(torch.randn(12)))
    batch = Batch(torch.arange(12), torch.randn(12, 6), session.problem.targets)
    for epoch in range(1, 6):
        session.start_epoch(epoch)
        model.zero_grad()
        session.loss(model, batch, None).backward()
        joint = model.backbone[1].weight.grad.clone()
        predictor = next(session.modules()[LOSS_PREDICTION].parameters()).grad.abs().sum()
        model.zero_grad()
        session.problem.loss(model(batch.x), batch.targets).mean().backward()
        assert torch.allclose(joint, model.backbone[1].weight.grad) == (stop is not None and epoch > stop)
        assert predictor > 0
        session.after_step(epoch, lambda: None)


class Functional(nn.Module):
    """A backbone without children."""

    def forward(self, x):
        return x.flatten(1)


class Sequence(nn.Module):
    """A recurrent layer gives a tuple, which is passed over, and the embedding is computed outside its children."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 5)
        self.recurrent = nn.GRU(5, 7, batch_first=True)

    def forward(self, x):
        return self.recurrent(self.embed(x))[0].mean(1)


@pytest.mark.parametrize(
    ("build", "shape", "names", "sizes"),
    [
        (lambda shape, n: MLP(shape, n, hidden=(9, 8, 7)), (64,), ("2", "4"), [9, 8, 7]),
        (lambda shape, n: MLP(shape, n, hidden=()), (64,), (), [64]),
        (lambda shape, n: Split(Functional(), nn.Linear(64, n)), (64,), (), [64]),
        (
            lambda shape, n: Split(nn.Sequential(nn.Sequential(nn.Linear(64, 5), nn.Linear(5, 3))), nn.Linear(3, n)),
            (64,),
            ("0.0",),
            [5, 3],
        ),
        (lambda shape, n: ResNet18(shape, n, planes=(4, 5, 6, 7)), (1, 8, 8), ("2", "5", "7"), [4, 5, 6, 7]),
        (lambda shape, n: Split(Sequence(), nn.Linear(7, n)), (8, 8), ("embed",), [13, 7]),
    ],
    ids=["mlp", "linear", "no-children", "nested", "resnet", "sequence"],
)
def test_layers_are_spread_over_the_backbone_and_hooks_are_removed(digits, build, shape, names, sizes):
    x, y = digits
    x = x.reshape(-1, *shape)
    trained = fit(LearningLoss(width=8), x, y, np.arange(33), np.arange(33, 40), build=build, epochs=2, batch_size=16)
    module = trained.modules[LOSS_PREDICTION]
    assert module.names == names
    with torch.no_grad():
        assert [
            feature.shape[1] for feature in read_layers(trained.model.backbone, module.names, torch.from_numpy(x[:5]))
        ] == sizes
    assert np.isfinite(scores(PredictedLoss(), trained, x[:20]).numpy()).all()
    assert not any(part._forward_hooks for part in trained.model.modules())


def test_reading_the_layers_leaves_each_part_in_its_mode():
    model = Split(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU()), nn.Linear(5, 1)).train()
    model.backbone[1].eval()
    session = LearningLoss().start(problem(torch.zeros(1)))
    before = copy.deepcopy(model.state_dict())
    session.loss(model, Batch(torch.arange(1), torch.randn(1, 6), torch.zeros(1)), None)
    assert [part.training for part in model.backbone] == [True, False, True]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(("objective", "score"), PAIRS.values(), ids=PAIRS)
def test_networks_are_kept_with_the_best_epoch(digits, objective, score):
    x, y = digits
    held_out = Examples.of(x[200:260], y[200:260], range(10))

    def trained(epochs, validation=None):
        training = Training(device="cpu", epochs=epochs, patience=3, lr=0.02)
        learner = Network(lambda shape, outputs: MLP(shape, outputs, hidden=(32,)), training)
        pool = Unlabelled(as_source(x), np.arange(40, 200))
        return learner.fit(
            Examples.of(x[:40], y[:40], range(10)), objective, streams(0), validation=validation, unlabelled=pool
        )

    stopped = trained(60, held_out)
    assert stopped.report.kept_epoch < stopped.report.epochs
    again = trained(stopped.report.kept_epoch)
    assert all(
        torch.equal(parameters(stopped.modules[name]), parameters(module)) for name, module in again.modules.items()
    )


def test_hooks_are_removed_when_the_backbone_fails():
    backbone = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    with pytest.raises(RuntimeError):
        read_layers(backbone, ["0"], torch.randn(2, 4))
    assert not any(part._forward_hooks for part in backbone.modules())


def test_the_negative_elbo_is_that_of_the_gaussians():
    x, decoded = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.5, 0.0]])
    mean, log_variance = torch.tensor([[0.3, -1.0]]), torch.tensor([[0.2, -0.7]])
    prior = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
    kl = torch.distributions.kl_divergence(torch.distributions.Normal(mean, (0.5 * log_variance).exp()), prior).sum(1)
    likelihood = torch.distributions.Normal(decoded, 1.0).log_prob(x).sum(1) + math.log(2 * math.pi)
    torch.testing.assert_close(negative_elbo(x, decoded, mean, log_variance, 3.0), -likelihood + 3.0 * kl)


@pytest.mark.parametrize("shape", [(5,), (1, 8, 8), (3, 9, 14), (2, 4, 4), (3, 7)])
def test_the_vae_gives_back_the_shape_it_takes(shape):
    x = 100 + 30 * torch.randn(6, *shape)
    vae = BetaVAE(x, latent=3, width=16)
    assert vae(x).shape == (6, 3)
    assert vae.decoder(torch.randn(6, 3)).shape == x.shape
    assert vae.scaled(x).std() == pytest.approx(1.0, rel=0.01)
    assert any(isinstance(part, nn.Conv2d) for part in vae.modules()) == (len(shape) == 3 and min(shape[1:]) >= 8)


def unseen_classes(digits):
    """Labels of the digits below 5 only; the pool holds all ten."""
    x, y = digits
    order = np.random.default_rng(0).permutation(len(x))
    labelled = order[y[order] < 5][:200]
    return x, y, labelled, np.setdiff1d(order, labelled)


@pytest.mark.parametrize(
    ("shape", "epochs"),
    [
        pytest.param(SHAPES["vectors"], 30, id="vectors"),
        pytest.param(SHAPES["images"], 20, id="images", marks=pytest.mark.slow),
    ],
)
def test_the_discriminator_finds_classes_the_labelled_set_lacks(digits, shape, epochs):
    x, y, labelled, rest = unseen_classes(digits)
    x = x.reshape(-1, *shape)
    trained = fit(VAAL(width=64), x, y, labelled, rest, epochs=epochs)
    assert roc_auc_score(y[rest] >= 5, scores(Discriminator(), trained, x[rest])) > 0.85


@pytest.mark.slow
def test_the_vae_plays_against_the_discriminator(digits):
    x, y, labelled, rest = unseen_classes(digits)

    def separation(adversary):
        trained = fit(VAAL(adversary=adversary, width=64), x, y, labelled, rest, epochs=25)
        rows = np.concatenate([labelled, rest])
        return roc_auc_score(np.isin(rows, rest), scores(Discriminator(), trained, x[rows]))

    assert separation(30.0) < separation(0.0) - 0.1


def test_without_the_adversary_the_discriminator_does_not_touch_the_vae(digits):
    x, y = digits
    vaes = []
    for steps in (1, 3):
        trained = fit(VAAL(adversary=0.0, discriminator_steps=steps, width=16), x, y, np.arange(40), np.arange(40, 90))
        vaes.append((parameters(trained.modules["vae"]), parameters(trained.modules["discriminator"])))
    assert torch.equal(vaes[0][0], vaes[1][0])
    assert not torch.equal(vaes[0][1], vaes[1][1])


def test_the_vae_descends_the_papers_sum():
    """ELBO of both sides, and −log D of both: the VAE wants unlabelled latents taken for labelled ones."""
    ours, theirs, targets = torch.randn(5, 6), 2 + torch.randn(9, 6), torch.zeros(5)
    values = []
    for adversary in (0.0, 2.0):
        with seeded_torch(1):
            session = VAAL(adversary=adversary, beta=0.5, latent=3, width=16).start(problem(targets))
            game = session._build(torch.cat([ours, theirs]))
            values.append(session._vae_loss(game, game.vae.scaled(torch.cat([ours, theirs])), 5))
    labelled, unlabelled = (torch.sigmoid(game.discriminator(game.vae(side))) for side in (ours, theirs))
    torch.testing.assert_close(values[1] - values[0], -2.0 * (labelled.log().mean() + unlabelled.log().mean()))


def test_the_discriminator_descends_the_papers_sum_and_leaves_the_vae():
    ours, theirs, targets = torch.randn(32, 6), 2 + torch.randn(32, 6), torch.zeros(32)
    with seeded_torch(1):
        session = VAAL(latent=3, width=16, lr=1e-3).start(problem(targets))
        game = session._build(torch.cat([ours, theirs]))
        game.vae_step.step = lambda: None

        def value():
            with torch.no_grad():
                labelled, unlabelled = (torch.sigmoid(game.discriminator(game.vae(side))) for side in (ours, theirs))
                return -(labelled.log().mean() + (1 - unlabelled).log().mean()).item()

        vae, before = copy.deepcopy(game.vae.state_dict()), value()
        for _ in range(300):
            session._play(ours, theirs)
    assert before == pytest.approx(2 * math.log(2), abs=0.2)
    assert value() < 0.6 * before
    assert all(torch.equal(kept, vae[name]) for name, kept in game.vae.state_dict().items())


def test_vaal_trains_the_task_as_erm_does(digits):
    x, y = digits

    def weights(objective):
        build = lambda shape, outputs: MLP(shape, outputs, hidden=(16,), dropout=0.3)  # noqa: E731
        return parameters(fit(objective, x, y, np.arange(50), np.arange(50, 120), build=build).model)

    assert torch.equal(weights(VAAL(width=16)), weights(ERM()))


def test_integer_samples_cannot_be_reconstructed():
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 5, (40, 6)))
    source, rows = as_source(torch.utils.data.TensorDataset(tokens)), np.arange(20)
    learner = Network(
        lambda shape, outputs: Split(nn.Sequential(nn.Embedding(5, 4), nn.Flatten()), nn.Linear(24, outputs)),
        Training(device="cpu", epochs=2),
    )
    for objective in (VAAL(), LearningLoss(), WAAL()):
        given = Examples(source, rows, rows % 2, "classification", (0, 1)), objective, streams(0)
        if isinstance(objective, VAAL):
            with pytest.raises(InputError, match=r"VAAL reconstructs its samples, and these are torch\.int64"):
                learner.fit(*given, unlabelled=Unlabelled(source, rows + 20))
        else:
            assert learner.fit(*given, unlabelled=Unlabelled(source, rows + 20)).modules


class Still(nn.Module):
    """A backbone that embeds a sample as itself."""

    def forward(self, x):
        return x


@pytest.mark.parametrize(("shift", "penalty"), [((2.0,), 10.0), ((0.5,), 10.0), ((1.2, -1.6), 30.0)])
def test_the_critic_approaches_the_wasserstein_distance(shift, penalty):
    """W₁ of a translation by Δ is Δ. A two-sided penalty lets a slope s win sΔ − penalty (s − 1)², so s = 1 + Δ / (2
    penalty)."""
    distance = float(np.linalg.norm(shift))
    rng = np.random.default_rng(0)
    ours = torch.from_numpy(rng.normal(size=(400, len(shift))).astype(np.float32))
    theirs = torch.from_numpy((rng.normal(size=(400, len(shift))) + np.asarray(shift)).astype(np.float32))
    theirs += ours.mean(0) + torch.tensor(shift) - theirs.mean(0)
    with seeded_torch(0):
        model = Split(Still(), nn.Linear(len(shift), 1))
        session = WAAL(penalty=penalty, critic_steps=1, width=32, lr=2e-3).start(problem(torch.zeros(400)))
        for step in range(400):
            index = torch.randperm(400)[:128]
            batch = Batch(index, ours[index], torch.zeros(128))
            session.loss(model, batch, UnlabelledBatch(index, theirs[torch.randperm(400)[:128]]))
            if step == 0:
                start = critic_gap(session.modules()["critic"], ours, theirs).item()
    found = critic_gap(session.modules()["critic"], ours, theirs).item()
    assert found == pytest.approx(distance * (1 + distance / (2 * penalty)), rel=0.08)
    assert abs(start - distance) > 2 * abs(found - distance)


def test_the_gradient_penalty_of_a_linear_critic():
    critic = nn.Linear(2, 1)
    critic.weight.data = torch.tensor([[3.0, 4.0]])
    value = gradient_penalty(critic, torch.randn(5, 2), torch.randn(9, 2), torch.Generator().manual_seed(0))
    assert value.item() == pytest.approx(16.0)
    critic.weight.data.zero_()
    value = gradient_penalty(critic, torch.randn(5, 2), torch.randn(9, 2), torch.Generator().manual_seed(0))
    value.backward()
    assert value.item() == pytest.approx(1.0)
    assert torch.isfinite(critic.weight.grad).all()


@pytest.mark.slow
def test_the_features_of_waal_come_closer(digits):
    x, y, labelled, rest = unseen_classes(digits)

    def distance(weight):
        trained = fit(WAAL(weight=weight), x, y, labelled, rest, epochs=20)
        ours, theirs = (trained.embed(torch.from_numpy(x[rows]))[0] for rows in (labelled, rest))
        return float((ours.mean(0) - theirs.mean(0)).norm() / torch.cat([ours, theirs]).norm(dim=1).mean())

    assert distance(0.1) < 0.6 * distance(0.0)


def test_the_loss_of_waal_is_the_papers():
    torch.manual_seed(0)
    model = MLP((4,), 1, hidden=(5,))
    session = WAAL(weight=0.3).start(problem(torch.randn(6)))
    batch, other = (
        Batch(torch.arange(6), torch.randn(6, 4), session.problem.targets),
        UnlabelledBatch(torch.arange(9), torch.randn(9, 4)),
    )
    value = session.loss(model, batch, other)
    critic = session.modules()["critic"]
    gap = critic(model.backbone(other.x)).mean() - critic(model.backbone(batch.x)).mean()
    torch.testing.assert_close(value, F.mse_loss(model(batch.x).squeeze(1), batch.targets) + 0.3 * gap)


def test_the_critic_score_prefers_the_uncertain_and_the_unlike(digits):
    x, y, labelled, rest = unseen_classes(digits)
    trained = fit(WAAL(), x, y, labelled, rest, epochs=20)
    entropy = torch.distributions.Categorical(logits=trained.embed(torch.from_numpy(x[rest]))[1]).entropy()
    assert spearmanr(scores(CriticUncertainty(weight=0.0), trained, x[rest]), entropy).statistic > 0.5
    assert roc_auc_score(y[rest] >= 5, scores(CriticUncertainty(weight=100.0), trained, x[rest])) > 0.8


def test_the_bounds_of_waal():
    p = torch.tensor([[0.5, 0.25, 0.25], [1 / 3, 1 / 3, 1 / 3], [0.98, 0.01, 0.01]], dtype=torch.float64)
    l1, l2 = -p.log().sum(1), p.log().square().sum(1).sqrt()
    for bound, expected in {"l1": l1, "l2": l2, "mean": (l1 + l2) / 2, "worst": -p.log().amin(1)}.items():
        torch.testing.assert_close(loss_bound(p.log(), bound), expected)
        assert loss_bound(p.log(), bound).argsort().tolist() == [1, 0, 2]


def test_a_bound_stays_finite_where_probabilities_round_to_zero():
    model = Split(Still(), nn.Linear(3, 3))
    model.head.weight.data, model.head.bias.data = 1e4 * torch.eye(3), torch.zeros(3)
    trained = fit(
        WAAL(),
        np.eye(3, dtype=np.float32)[np.arange(9) % 3],
        np.arange(9) % 3,
        np.arange(6),
        np.arange(6, 9),
        epochs=1,
        build=lambda shape, outputs: Split(Still(), nn.Linear(3, 10)),
    )
    trained = copy.copy(trained)
    object.__setattr__(trained, "model", model)
    assert torch.isfinite(scores(CriticUncertainty(), trained, np.eye(3, dtype=np.float32))).all()


@pytest.mark.parametrize(("objective", "score"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_equal_seeds_give_equal_networks_and_leave_the_global_generator(digits, objective, score, shape, task):
    x, y = digits
    x = x.reshape(-1, *shape)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(len(found))
        before = torch.random.get_rng_state()
        trained = fit(objective, x, y, np.arange(40), np.arange(40, 120), seed=seed, task=task, epochs=3)
        assert torch.equal(torch.random.get_rng_state(), before)
        assert all(not module.training for module in trained.modules.values())
        found.append(
            torch.cat([parameters(trained.model), *(parameters(module) for module in trained.modules.values())])
        )
        if task in score.tasks:
            values = scores(score, trained, x[40:120])
            assert torch.isfinite(values).all()
            assert values.std() > 0
            assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


@pytest.mark.parametrize(("objective", "score"), PAIRS.values(), ids=PAIRS)
def test_batches_of_one_and_odd_batches(digits, objective, score):
    x, y = digits
    for labelled, size in ((1, 8), (3, 1), (7, 3)):
        trained = fit(objective, x, y, np.arange(labelled), [20], batch_size=size)
        assert torch.isfinite(scores(score, trained, x[:9])).all()


@pytest.mark.parametrize(("objective", "score"), PAIRS.values(), ids=PAIRS)
def test_double_precision(digits, objective, score):
    x, y = digits
    double = lambda shape, outputs: MLP(shape, outputs, hidden=(16,)).double()  # noqa: E731
    trained = fit(objective, x, y, np.arange(40), np.arange(40, 120), build=double)
    assert {p.dtype for module in trained.modules.values() for p in module.parameters()} == {torch.float64}
    assert torch.isfinite(scores(score, trained, x[:9])).all()


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (PredictedLoss(), r"the predicted loss needs .* \(it trained: none\); use objective=LearningLoss\(\)"),
        (Discriminator(), r"the discriminator needs .*; use objective=VAAL\(\)"),
        (CriticUncertainty(), r"the critic needs .*; use objective=WAAL\(\)"),
    ],
)
def test_the_objective_must_train_what_the_score_reads(digits, score, message):
    x, y = digits
    trained = fit(ERM(), x, y, np.arange(40), np.arange(40, 60))
    with pytest.raises(InputError, match=message):
        scores(score, trained, x[:5])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LearningLoss(weight=-1), "weight=-1 must be a finite number >= 0"),
        (lambda: LearningLoss(stop_gradient_after=0.6), "stop_gradient_after=0.6 must be a whole number of at least 0"),
        (lambda: LearningLoss(layers=0), "layers=0 must be a whole number of at least 1"),
        (lambda: VAAL(beta=math.nan), "beta=nan must be a finite number >= 0"),
        (lambda: VAAL(latent=0), "latent=0 must be a whole number of at least 1"),
        (lambda: WAAL(critic_steps=0), "critic_steps=0 must be a whole number of at least 1"),
        (lambda: WAAL(lr=0), "lr=0 must be a finite number > 0"),
        (lambda: CriticUncertainty(bound="l3"), "bound='l3'; pass"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(InputError, match=message):
        make()
