from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy
from torch import nn

import ally
from ally.data import as_source
from ally.errors import InputError, ModelError
from ally.execution.memory import Scratch
from ally.learning.fitted_network import FittedNetwork
from ally.learning.learner import FitReport
from ally.learning.losses import TargetScale
from ally.learning.posterior import DisagreementReadout, MutualInformationReadout, PosteriorSamples, mutual_information
from ally.learning.snapshot import view
from ally.models import MLP, Split
from ally.scoring.bald import Disagreement, MutualInformation
from ally.selection import Top
from ally.strategies import Strategy
from conformance_params import params

REPORT = FitReport(
    samples=1, epochs=1, kept_epoch=1, train_loss=0.0, validation_loss=None, positive_duals=None, slacks=None
)
DROPPING = partial(MLP, hidden=(16,), dropout=0.3)


def fit_of(model, task="classification", scale=TargetScale()):
    return FittedNetwork(model.eval(), task, None, scale, REPORT, {})


def linear(weight, task="classification", scale=TargetScale()):
    """A network x ↦ x Wᵀ."""
    head = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.as_tensor(weight))
    return fit_of(Split(nn.Flatten(), head), task, scale)


def randoms(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def seeded(build, *args, seed=0, **more):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return build(*args, **more)


def pool(task="classification", n=2300, labelled=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = (X[:, 0] > 0) + (X[:, 1] > 0.5) if task == "classification" else X[:, 0] ** 2 + X[:, 1]
    y = y.astype(float)
    y[labelled:] = np.nan
    return X, y


def test_mutual_information_of_an_ensemble_equals_its_definition():
    weights, x = [2 * randoms(4, 3, seed=k) for k in range(6)], randoms(50, 3, seed=9)
    p = np.stack([softmax(x.astype(float) @ w.T.astype(float), axis=1) for w in weights], axis=1)
    expected = entropy(p.mean(1), axis=1) - entropy(p, axis=2).mean(1)
    found = MutualInformationReadout()([linear(w) for w in weights], torch.from_numpy(x), 0, 0)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(mutual_information(torch.from_numpy(p)), expected, rtol=1e-10)


def test_closed_forms():
    certain = 200 * np.eye(3, dtype=np.float32)
    disagreeing = [linear(np.roll(certain, k, axis=0)) for k in range(3)]
    x = torch.eye(3)
    np.testing.assert_allclose(MutualInformationReadout()(disagreeing, x, 0, 0), np.log(3), rtol=1e-6)
    alike = [linear(np.zeros((3, 3), np.float32)) for _ in range(4)]
    assert MutualInformationReadout()(alike, x, 0, 0).abs().max() < 1e-7


def test_regression_gives_the_variance_in_standardised_units():
    weights, x = [randoms(1, 3, seed=k) for k in range(5)], randoms(20, 3, seed=9)
    fits = [linear(w, "regression", TargetScale(1e6, 1e3)) for w in weights]
    expected = np.var([x @ w[0] for w in weights], axis=0)
    np.testing.assert_allclose(MutualInformationReadout()(fits, torch.from_numpy(x), 0, 0), expected, rtol=1e-4)
    np.testing.assert_allclose(
        PosteriorSamples()(fits, torch.from_numpy(x), 0, 0)[:, 2, 0], x @ weights[2][0], rtol=1e-5
    )


def test_dropout_converges_to_the_sum_over_all_masks():
    units, rate = 4, 0.4
    model = seeded(MLP, (3,), 3, hidden=(units,), dropout=rate)
    with torch.no_grad():
        model.head.weight *= 6
    x = torch.from_numpy(3 * randoms(12, 3))
    hidden = model.eval().backbone(x).detach().double()
    weight, bias = model.head.weight.detach().double(), model.head.bias.detach().double()
    masks = torch.tensor(list(product((0.0, 1.0), repeat=units)), dtype=torch.float64)
    chance = (masks * (1 - rate) + (1 - masks) * rate).prod(1)
    p = torch.stack([(hidden * mask / (1 - rate) @ weight.T + bias).softmax(1) for mask in masks], dim=1)
    mean = (chance[:, None] * p).sum(1)
    exact = entropy(mean, axis=1) - (chance * torch.special.entr(p).sum(2)).sum(1).numpy()
    found = MutualInformationReadout(samples=4000)([fit_of(model)], x, 0, 0)
    assert exact.max() > 0.1
    np.testing.assert_allclose(found, exact, atol=0.02)


@pytest.mark.parametrize(
    "layer", [nn.Dropout(0.4), nn.Dropout(0.4, inplace=True), nn.AlphaDropout(0.4), nn.Dropout1d(0.4)]
)
def test_a_mask_is_shared_by_all_rows_and_drops_as_the_layer_does(layer):
    backbone = nn.Sequential(nn.Unflatten(1, (6, 2)), layer, nn.Flatten())
    head = nn.Linear(12, 1, bias=False)
    x = torch.from_numpy(randoms(2, 12))
    found = PosteriorSamples(samples=2000)([fit_of(Split(backbone, head), "regression")], x[[0, 0, 1]], 0, 0)[..., 0]
    assert torch.equal(found[0], found[1])
    layer.train()
    by_row = seeded(lambda: head(backbone(x[1].repeat(20000, 1)))).detach()
    assert float(found[2].mean()) == pytest.approx(float(by_row.mean()), abs=0.1 * float(by_row.std()))
    assert float(found[2].std()) == pytest.approx(float(by_row.std()), rel=0.1)


def test_masks_are_shared_across_blocks():
    model = seeded(MLP, (4,), 3, hidden=(16,), dropout=0.5)
    X = np.tile(randoms(1, 4), (2100, 1))
    readouts = (PosteriorSamples(samples=6), MutualInformationReadout(samples=6))
    for seed in (12345, 2**63 - 1):
        with Scratch() as scratch:
            seen = view(fit_of(model), as_source(X), np.arange(2100), scratch, readouts=readouts, seed=seed).readouts
            samples = seen[readouts[0].name]
            torch.testing.assert_close(samples, samples[:1].expand_as(samples))
            assert samples[0].std(0).max() > 0.01
            np.testing.assert_allclose(seen[readouts[1].name], mutual_information(samples.double()), atol=1e-6)


def test_batch_norm_is_evaluated_and_nothing_is_left_behind():
    backbone = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5))
    model = Split(backbone, nn.Linear(8, 2))
    fit = fit_of(model)
    model.backbone[3].train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    state = torch.random.get_rng_state()
    for readout in (MutualInformationReadout(samples=3), PosteriorSamples(samples=3), DisagreementReadout()):
        readout([fit], torch.from_numpy(randoms(7, 3)), 5, 0)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_modes_and_hooks_are_restored_after_an_error():
    model = seeded(MLP, (3,), 2, hidden=(4,), dropout=0.5)
    fit = fit_of(model)
    with pytest.raises(RuntimeError):
        MutualInformationReadout()([fit], torch.zeros(2, 5), 0, 0)
    assert not any(module.training or module._forward_hooks for module in model.modules())


def test_transformer_layers_drop_too():
    layer = seeded(nn.TransformerEncoderLayer, 8, 2, 16, dropout=0.5, batch_first=True)
    model = Split(nn.Sequential(nn.Unflatten(1, (3, 8)), layer, nn.Flatten()), nn.Linear(24, 2))
    p = PosteriorSamples(samples=4)([fit_of(model)], torch.from_numpy(randoms(5, 24)), 0, 0)
    assert p.std(1).min() > 1e-4


def test_disagreement_counts_changed_classes():
    fit = linear(np.asarray([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
    x = torch.tensor([[2.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).repeat(3000, 1)
    found = DisagreementReadout(samples=4, rate=0.25)([fit], x, 3, 0).view(-1, 3).double()
    assert set(found[:, 0].tolist()) <= {0, 0.25, 0.5, 0.75, 1}
    assert float(found[:, 0].mean()) == pytest.approx(0.25 * 0.75, abs=0.02)
    assert float(found[:, 1].mean()) == pytest.approx(0.25, abs=0.02)
    assert float(found[:, 2].mean()) == 0


def test_disagreement_of_a_regression_is_a_standard_deviation():
    fit = linear(np.asarray([[1.0, 2.0]], dtype=np.float32), "regression")
    x = torch.tensor([[3.0, 1.0], [0.0, 0.0]])
    exact = np.sqrt((3**2 + 2**2) * 0.5 / 0.5)
    found = DisagreementReadout(samples=20000, rate=0.5)([fit], x, 0, 0)
    assert float(found[0]) == pytest.approx(exact, rel=0.02)
    assert float(found[1]) == 0


@pytest.mark.parametrize("score", [MutualInformation(samples=4), Disagreement()])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_equal_seeds_give_equal_ids_for_any_chunk(score, task):
    X, y = pool(task)
    ask = partial(ally.query, X, y, n=5, strategy=Strategy(score, Top()), model=DROPPING, task=task)
    whole, small, again = (
        ask(random_state=3),
        ask(random_state=3, chunk_size=100),
        ask(random_state=3, memory_budget=100),
    )
    for other in (small, again):
        assert other.ids.tolist() == whole.ids.tolist()
        assert other.scores.tolist() == whole.scores.tolist()
    assert ask(random_state=4).ids.tolist() != whole.ids.tolist()


def test_a_network_without_dropout_needs_members():
    X, y = pool(n=80)
    ask = partial(ally.query, X, y, n=5, model=partial(MLP, hidden=(4,)), task="classification", random_state=0)
    with pytest.raises(ModelError, match=r"MLP has no dropout .*functools.partial\(MLP, dropout=0.2\), or members > 1"):
        ask(strategy=Strategy(MutualInformation(members=1)))
    assert len(ask(strategy=Strategy(MutualInformation(members=2)))) == 5
    assert len(ask(strategy=Strategy(MutualInformation(samples=3, members=1)), model=DROPPING)) == 5


def test_settings_are_checked_when_given():
    for make in (
        lambda: MutualInformation(samples=1),
        lambda: MutualInformation(members=0),
        lambda: Disagreement(samples=0),
        lambda: Disagreement(rate=1.0),
    ):
        with pytest.raises(InputError):
            make()


def test_different_settings_are_different_readouts():
    names = {
        readout.name
        for score in (MutualInformation(), MutualInformation(samples=7), Disagreement())
        for readout in score.readouts
    }
    assert len(names) == 3


@pytest.mark.parametrize(("check", "strategy", "task"), params({"disagreement": Strategy(Disagreement(), Top())}))
def test_conformance(check, strategy, task):
    check(strategy, task)
