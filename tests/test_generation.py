import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_diabetes, load_digits
from torch import nn

from ally import ConstrainedClassifier, ConstrainedRegressor
from ally.data import as_source
from ally.errors import InputError, LabelError, ModelError, NonFiniteInput, NonFiniteScore, PoolExhausted
from ally.execution.memory import Scratch
from ally.generation import DualOf, ascend, bounds_of, draw, learn
from ally.generation.climb import Climb, Rules
from ally.generation.smooth import soften_by
from ally.learning.dual_head import PaperHead, RidgeHead
from ally.learning.fitted_network import FittedNetwork
from ally.learning.head_features import Labelled
from ally.learning.learner import FitReport
from ally.learning.losses import TargetScale
from ally.learning.objectives import PDCL
from ally.learning.snapshot import view
from ally.learning.training import Training
from ally.models import Split
from ally.rng import Streams
from ally.strategies import ALGORITHM_1

QUICK = Training(lr=2e-3, epochs=20, device="cpu")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X.reshape(-1, 1, 8, 8), y


@pytest.fixture(scope="module")
def some_labels(digits):
    y = digits[1].astype(object)
    y[150:] = None
    return y


@pytest.fixture(scope="module")
def learned(digits, some_labels):
    """By name of the head: an MLP trained on 150 digits."""
    heads = {"ridge": RidgeHead(), "paper": PaperHead(epochs=20)}
    return {
        name: learn(digits[0], some_labels, objective=PDCL(eps=0.01), head=head, training=QUICK, random_state=0)
        for name, head in heads.items()
    }


@pytest.fixture(scope="module")
def tables():
    """Fitted estimators with data, by task."""
    X, y = load_diabetes(return_X_y=True)
    classes = np.where(y > np.median(y), "high", "low")
    settings = {"hidden": (16,), "eps": 0.01, "epochs": 20, "random_state": 0, "device": "cpu"}
    return {
        "classification": (ConstrainedClassifier(**settings).fit(X[:200], classes[:200]), X),
        "regression": (ConstrainedRegressor(**settings).fit(X[:200], y[:200]), X),
    }


def finite_differences(dual, x, step):
    """The gradient of the sum over samples, one coordinate of all samples at a time."""
    gradient = torch.empty_like(x)
    flat, out = x.flatten(1), gradient.view(len(x), -1)
    for k in range(flat.shape[1]):
        shift = torch.zeros_like(flat)
        shift[:, k] = step
        up, down = (dual((flat + sign * shift).view_as(x)) for sign in (1, -1))
        out[:, k] = (up - down) / (2 * step)
    return gradient


def gradient_of(dual, x):
    point = x.clone().requires_grad_()
    return torch.autograd.grad(dual(point).sum(), point)[0]


@pytest.mark.parametrize("head", ["ridge", "paper"])
def test_gradient_of_images_equals_finite_differences(learned, digits, head):
    dual = DualOf(learned[head].dual.fit, learned[head].dual.head).double()
    # Between pixel values, where no unit sits exactly on its kink.
    x = torch.from_numpy(digits[0][200:208]) + 0.123
    exact = gradient_of(dual, x)
    assert exact.abs().amax(dim=(1, 2, 3)).min() > 0
    torch.testing.assert_close(exact, finite_differences(dual, x, 1e-6), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_gradient_of_tables_equals_finite_differences(tables, task):
    model, X = tables[task]
    dual = DualOf(model._fitted, model._head).double()
    x = torch.from_numpy(X[210:230])
    exact = gradient_of(dual, x)
    assert exact.abs().amax(1).min() > 0
    torch.testing.assert_close(exact, finite_differences(dual, x, 1e-8), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head", ["ridge", "paper"])
def test_digits_are_led_to_higher_duals(learned, digits, head):
    model = learned[head]
    rows = model.quietest(10)
    before = {name: value.clone() for name, value in model.dual.state_dict().items()}
    path = ascend(model.dual, digits[0][rows], bounds=model.bounds, steps=60, step_size=0.02, every=20)
    assert path.steps.tolist() == [0, 20, 40, 60]
    assert path.samples.shape == (4, 10, 1, 8, 8)
    assert path.probabilities.shape == (4, 10, 10)
    np.testing.assert_array_equal(path.samples[0], digits[0][rows])
    assert (path.samples >= 0).all()
    assert (path.samples <= 16).all()
    assert (path.duals[-1] > path.duals[0]).all()
    alone = np.asarray(path.jumps) == 0
    assert (np.diff(path.duals[:, alone], axis=0) >= 0).all()
    np.testing.assert_allclose(path.duals[-1], path.duals.max(0), rtol=1e-4)
    np.testing.assert_allclose(path.probabilities.sum(2), 1.0)
    np.testing.assert_array_equal(path.classes[path.probabilities.argmax(2)], path.predictions)
    assert all(torch.equal(value, before[name]) for name, value in model.dual.state_dict().items())


def test_doubt_grows_with_the_dual(learned, digits):
    model = learned["ridge"]
    path = ascend(model.dual, digits[0][model.quietest(10)], bounds=(0, 16), steps=60, step_size=0.02)
    surest = path.probabilities.max(2)
    assert surest[0].min() > 0.9
    assert surest[-1].mean() < 0.6


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_tables_stay_in_the_range_of_their_columns(tables, task):
    model, X = tables[task]
    bounds = bounds_of(X)
    path = ascend(model, X[210:216], bounds=bounds, steps=40, step_size=0.05)
    assert (path.samples >= X.min(0)).all()
    assert (path.samples <= X.max(0)).all()
    assert (path.duals[-1] > path.duals[0]).mean() > 0.5
    assert (path.duals[-1] >= path.duals[0]).all()
    for moment in (0, -1):
        np.testing.assert_allclose(path.duals[moment], model.predict_duals(path.samples[moment]), rtol=1e-4, atol=1e-6)
        if task == "classification":
            np.testing.assert_allclose(path.probabilities[moment], model.predict_proba(path.samples[moment]), atol=1e-5)
            assert path.predictions[moment].tolist() == model.predict(path.samples[moment]).tolist()
        else:
            np.testing.assert_allclose(path.predictions[moment], model.predict(path.samples[moment]), rtol=1e-5)


def test_samples_do_not_depend_on_each_other(learned, digits):
    """More than one block of samples gives what each gives alone."""
    dual = learned["ridge"].dual
    together = ascend(dual, digits[0][:1030], bounds=(0, 16), steps=2)
    apart = ascend(dual, digits[0][1020:1030], bounds=(0, 16), steps=2)
    assert len(together) == len(together.stops) == 1030
    np.testing.assert_allclose(together.samples[:, 1020:], apart.samples, atol=1e-5)
    np.testing.assert_allclose(together.duals[:, 1020:], apart.duals, rtol=1e-4)


def test_same_call_same_samples(learned, digits):
    first, second = (ascend(learned["paper"].dual, digits[0][:3], bounds=(0, 16), steps=6) for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)


def test_steps_have_the_stated_length(learned, digits):
    """In the middle of its range nothing is cut off: the first step is as long as asked."""
    model = learned["paper"]
    start = digits[0][:4].clip(2, 14)
    path = ascend(model.dual, start, bounds=(0, 16), steps=1, step_size=1e-3)
    moved = (path.samples[1] - path.samples[0]) / model.dual.scale.numpy()
    np.testing.assert_allclose(np.sqrt(np.square(moved).mean(axis=(1, 2, 3))), 1e-3, rtol=1e-9)


def test_ceiling(learned, digits):
    model = learned["ridge"]
    starts = digits[0][model.quietest(6)]
    free = ascend(model.dual, starts, bounds=(0, 16), steps=60, step_size=0.02)
    held = ascend(model.dual, starts, bounds=(0, 16), steps=60, step_size=0.02, ceiling=0.2)
    assert free.duals[-1].min() > 0.2
    assert held.duals[-1].max() <= 0.2 + 1e-9
    assert held.duals[-1].min() > 0.19
    assert "ceiling" in held.stops


def climb_from(height, start, steps, way=1.0, **rules):
    """Steps of length 0.1 on a function that is known; every jump goes the way given."""
    size = len(start)
    x, one = torch.tensor([start], dtype=torch.float64), torch.ones(size, dtype=torch.float64)
    climb = Climb(height, (size,), x, Rules(-100 * one, 100 * one, one, 0.1, **rules), lambda _: way * one)
    for step in range(1, steps + 1):
        climb.step(step)
    return climb


@pytest.mark.parametrize(
    ("height", "start"),
    [
        (lambda x: -10 * x[:, 0].abs() + x[:, -1], [0.31, 0.0]),
        (lambda x: -1000 * x[:, 0].abs() + x[:, -1], [0.31, 0.0]),
        (lambda x: -10 * x[:, :2].abs().amax(1) + x[:, -1], [0.31, 0.17, 0.0]),
        (lambda x: -10 * x[:, :3].abs().sum(1) + x[:, -1], [0.31, -0.2, 0.11, 0.0]),
    ],
)
def test_creases_are_followed_upwards(height, start):
    """The last coordinate rises along a crease of all others; plain gradient steps zigzag across it and get stuck."""
    climb = climb_from(height, start, 200)
    assert climb.x[0, :-1].abs().max() < 1e-3
    assert climb.x[0, -1] > 3.0


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_a_peak_is_found(scale):
    weights = torch.tensor([1.0, scale])
    for height in (lambda x: -(x.square() * weights).sum(1), lambda x: -(x.abs() * weights).sum(1)):
        climb = climb_from(height, [1.3, 1.0], 300)
        assert climb.x.abs().max() < 1e-2


HILLS = pytest.mark.parametrize(
    ("height", "start", "rest", "why"),
    [
        (lambda x: (-x[:, 0].square()).maximum(3 - (x[:, 0] - 4).abs()), 0.07, 0.0, "peak"),
        (lambda x: x[:, 0].clamp(2, 4), 0.0, 0.0, "flat"),
        (lambda x: (x[:, 0] - 2).relu().square().clamp(max=4), 1.0, 1.0, "flat"),
    ],
    ids=["a lower peak", "a plain", "units that are off"],
)


@HILLS
def test_a_sample_that_is_stuck_jumps_and_climbs_on(height, start, rest, why):
    stuck, free = (climb_from(height, [start], 200, jumps=jumps) for jumps in (0, 8))
    assert stuck.stops == [why]
    assert float(stuck.place) == pytest.approx(rest, abs=1e-3)
    assert stuck.jumped.tolist() == [0]
    assert float(free.highest) > float(stuck.highest) + 1.5
    assert free.jumped.item() >= 3


@HILLS
def test_jumps_that_lead_nowhere_are_undone(height, start, rest, why):
    climb = climb_from(height, [start], 200, way=-1.0, jumps=3)
    climb.settle()
    assert climb.jumped.tolist() == [3]
    assert climb.stops == [why]
    assert float(climb.place) == pytest.approx(rest, abs=1e-3)
    assert float(climb.highest) == float(height(climb.place)) >= float(height(torch.tensor([[start]])))


def test_a_jump_stays_in_its_range_and_below_the_ceiling():
    climb = climb_from(lambda x: x[:, 0].clamp(2, 4), [0.0], 300, jumps=30, top=2.5)
    climb.settle()
    assert climb.jumped.item() > 10
    assert climb.highest.item() <= 2.5
    assert climb.best.abs().max() <= 100


def test_steps_that_hardly_move_count_as_stuck():
    """Between the walls of a gully there is always a way up, but a short one."""

    def gully(x):
        return -1e4 * (x[:, 0] - torch.sin(40 * x[:, 1]) / 40).abs() + 0.01 * x[:, 1]

    climb = climb_from(gully, [0.0, 0.0], 60, jumps=1)
    assert climb.jumped.tolist() == [1]


def test_smoothed_steps_follow_the_covariance_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1, 2, 3)) * np.arange(1, 7).reshape(1, 2, 3)
    spread, slopes = torch.arange(1.0, 7.0, dtype=torch.float64), torch.from_numpy(rng.normal(size=(4, 6)))
    covariance = np.cov(X.reshape(50, 6) / spread.numpy(), rowvar=False, bias=True)
    np.testing.assert_allclose(soften_by(X, spread)(slopes), slopes.numpy() @ covariance)
    with pytest.raises(InputError, match="smooth holds 1 samples"):
        soften_by(X[:1], spread)
    with pytest.raises(InputError, match="samples of 6 numbers and a start has 5"):
        soften_by(X, spread[:5])


def test_smoothed_steps_follow_a_crease_too():
    data = np.random.default_rng(0).normal(size=(200, 3)) @ np.array([[1, 0.5, 0.3], [0, 1, 0.2], [0, 0, 1]])

    def height(x):
        return -10 * x[:, 0].abs() + x[:, -1]

    climb = climb_from(height, [0.31, 0.17, 0.0], 200, soften=soften_by(data, torch.ones(3, dtype=torch.float64)))
    assert climb.x[0, -1] > 3.0


def test_smoothed_images_change_as_images_differ(learned, digits):
    model = learned["paper"]
    starts = digits[0][model.quietest(10)]
    plain, smooth = (
        ascend(model.dual, starts, bounds=(0, 16), steps=60, step_size=0.02, smooth=data) for data in (None, digits[0])
    )

    main = np.linalg.svd(digits[0].reshape(-1, 64) - digits[0].reshape(-1, 64).mean(0), full_matrices=False)[2][:20]

    def beside_main_components(path):
        change = (path.samples[-1] - path.samples[0]).reshape(-1, 64)
        return 1 - np.square(change @ main.T).sum() / np.square(change).sum()

    assert beside_main_components(smooth) < 0.5 * beside_main_components(plain)
    assert (smooth.duals[-1] > smooth.duals[0]).all()
    assert smooth.samples.min() >= 0
    assert smooth.samples.max() <= 16
    assert "steps were smoothed" in smooth.notes[0]
    assert not any("smoothed" in note for note in plain.notes)
    assert "smoothed" in draw(smooth).get_suptitle()
    assert draw(plain).get_suptitle() == ""


@pytest.fixture(scope="module")
def as_in_the_paper(digits, some_labels):
    training = Training(lr=2e-3, epochs=100, patience=2, device="cpu")
    return learn(
        digits[0],
        some_labels,
        objective=ALGORITHM_1,
        head=PaperHead(),
        training=training,
        validation=30,
        random_state=0,
    )


@pytest.mark.parametrize("smooth", [False, True])
def test_nine_of_ten_starts_end_among_the_highest_tenth(as_in_the_paper, digits, smooth):
    model = as_in_the_paper
    path = ascend(model.dual, digits[0][model.quietest(20)], bounds=model.bounds, smooth=digits[0] if smooth else None)
    high = model.high()
    assert np.mean(np.expm1(model.pool.ranking) >= high) == pytest.approx(0.1, abs=0.01)
    assert (path.duals[0] < high).all()
    assert (path.duals[-1] >= high).mean() >= 0.9


def test_training_is_stopped_by_labels_that_are_held_out(as_in_the_paper, digits, some_labels):
    model = as_in_the_paper
    assert model.validation == 30
    assert model.report.samples == len(model.labelled.rows) == 120
    assert model.report.kept_epoch == model.report.epochs - 2 < 98
    assert model.report.validation_loss is not None
    held_out = np.setdiff1d(np.arange(len(digits[0])), np.concatenate([model.labelled.rows, model.pool.rows]))
    assert len(held_out) == 30
    assert held_out.max() < 150
    with pytest.raises(InputError, match="validation=150 of 150 labelled samples leaves none"):
        learn(digits[0], some_labels, validation=150)


def by_hand(backbone, head, x, duals, task="classification", kind=None):
    """A DualOf over a network with known weights."""
    report = FitReport(len(x), 1, 1, 0.0, None, None, None)
    outputs = head.out_features
    fit = FittedNetwork(
        Split(backbone, head).eval(),
        task,
        None if task == "regression" else tuple(range(outputs)),
        TargetScale(),
        report,
        {},
    )
    with Scratch() as scratch:
        seen = view(fit, as_source(x), np.arange(len(x)), scratch)
    labels = seen.predictions.double()
    return fit, (kind or RidgeHead()).fit(Labelled(seen, labels, torch.as_tensor(duals)), Streams(0))


def linear(weights):
    weights = torch.tensor(weights)
    layer = nn.Linear(weights.shape[1], weights.shape[0], bias=False)
    layer.weight = nn.Parameter(weights)
    return layer


def test_a_very_confident_start_still_rises():
    """Logits ±4x: at x = 10 both features of the head are at their floor, and the dual has its peak at x = 0."""
    x = np.linspace(-3, 3, 41, dtype=np.float32)[:, None]
    fit, head = by_hand(nn.Identity(), linear([[4.0], [-4.0]]), x, np.exp(-np.abs(x[:, 0])))
    path = ascend((fit, head), np.array([[10.0]]), bounds=(-20, 20), steps=60, step_size=0.01, jumps=0)
    assert np.log(path.probabilities[0].min()) < np.log(1e-12)
    assert path.duals[0] < path.duals[-1]
    assert abs(path.samples[-1, 0, 0]) < 0.05
    assert path.stops == ("peak",)


def test_dead_units_are_reported():
    x = np.linspace(0.1, 3, 41, dtype=np.float32)[:, None]
    backbone = nn.Sequential(linear([[1.0]]), nn.ReLU())
    fit, head = by_hand(backbone, linear([[1.0], [-1.0]]), x, np.exp(-x[:, 0]))
    path = ascend((fit, head), np.array([[-5.0], [2.0]]), bounds=(-6, 6), steps=10, jumps=0)
    assert path.stops[0] == "flat"
    assert path.samples[-1, 0, 0] == -5.0
    assert path.duals[-1, 1] > path.duals[0, 1]
    assert "1 of 2 samples stopped before step 10: the gradient vanished" in path.notes[0]
    restless = ascend((fit, head), np.array([[-5.0]]), bounds=(-6, 6), steps=10)
    assert restless.jumps[0] > 0
    assert restless.samples[-1, 0, 0] == -5.0, "nowhere is higher"
    assert restless.notes[0] == "1 of 1 samples were stuck and jumped; the last step shows each one's best point"


def test_a_corner_is_reported():
    """λ grows with x alone, and x may not pass 1."""
    x = np.linspace(-1, 1, 41, dtype=np.float32)[:, None]
    fit, head = by_hand(nn.Identity(), linear([[1.0]]), x, np.exp(x[:, 0]), "regression", PaperHead(epochs=40))
    path = ascend((fit, head), np.array([[0.9]]), bounds=(-1, 1), steps=50, step_size=0.01, jumps=0)
    assert path.samples[-1, 0, 0] == 1.0
    assert path.stops == ("corner",)


def test_a_feature_without_a_range_stays():
    x = np.random.default_rng(0).uniform(-1, 1, size=(60, 2)).astype(np.float32)
    x[:, 1] = 0.5
    pair = by_hand(nn.Identity(), linear([[2.0, 1.0], [-2.0, -1.0]]), x, np.exp(-np.abs(2 * x[:, 0] + x[:, 1])))
    path = ascend(pair, np.array([[0.9, 0.5]]), bounds=bounds_of(x), steps=30)
    assert (path.samples[:, 0, 1] == 0.5).all()
    assert path.duals[-1, 0] > path.duals[0, 0]


def test_equal_duals_cannot_be_raised():
    x = np.linspace(-1, 1, 9, dtype=np.float32)[:, None]
    pair = by_hand(nn.Identity(), linear([[1.0], [-1.0]]), x, np.zeros(9))
    with pytest.raises(InputError, match=r"all 9 labelled samples have the same λ.*lower eps"):
        ascend(pair, x, bounds=(-1, 1))


def test_a_network_that_breaks_is_an_error():
    class Root(nn.Module):
        def forward(self, x):
            return x.sqrt()

    x = np.linspace(0.1, 1, 30, dtype=np.float32)[:, None]
    pair = by_hand(Root(), linear([[1.0], [-1.0]]), x, np.exp(-x[:, 0]))
    with pytest.raises(NonFiniteScore, match=r"sample 1 .* at step 0"):
        ascend(pair, np.array([[0.5], [-0.5]]), bounds=(-1, 1))


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"bounds": (0, 8)}, InputError, "start 0 holds .* outside its bounds 0 to 8"),
        ({"bounds": (16, 0)}, InputError, "low one comes first"),
        ({"bounds": (0, np.inf)}, NonFiniteInput, "bounds hold"),
        ({"bounds": 5}, InputError, r"pass \(low, high\)"),
        ({"bounds": (np.zeros(3), 16)}, InputError, "shape"),
        ({"steps": 0}, InputError, "steps=0"),
        ({"every": 0}, InputError, "every=0"),
        ({"step_size": 0}, InputError, "step_size=0"),
        ({"ceiling": -1}, InputError, "ceiling=-1"),
        ({"jumps": -1}, InputError, "jumps=-1"),
    ],
)
def test_bad_settings(learned, digits, change, error, words):
    with pytest.raises(error, match=words):
        ascend(learned["ridge"].dual, digits[0][:2], **{"bounds": (0, 16), **change})


def test_bad_models_and_starts(learned, tables, digits):
    with pytest.raises(ModelError, match="model is a str"):
        ascend("mlp", digits[0][:2], bounds=(0, 16))
    X = tables["regression"][1]
    plain = ConstrainedRegressor(hidden=(4,), epochs=2, objective="erm").fit(X[:20], X[:20, 0])
    with pytest.raises(InputError, match="has no dual variables"):
        ascend(plain, X[:2], bounds=bounds_of(X))
    holes = digits[0][:2].copy()
    holes[1, 0, 0, 0] = np.nan
    with pytest.raises(NonFiniteInput, match="sample 1"):
        ascend(learned["ridge"].dual, holes, bounds=(0, 16))


def test_bounds_of():
    low, high = bounds_of(np.array([[1.0, 5.0], [3.0, 4.0]]))
    assert (low.tolist(), high.tolist()) == ([1.0, 4.0], [3.0, 5.0])
    low, high = bounds_of(np.full((2, 1, 3, 3), 7, dtype=np.uint8))
    assert (low.min(), high.max(), low.shape) == (0.0, 255.0, (1, 3, 3))
    low, high = bounds_of(np.arange(18.0).reshape(2, 1, 3, 3))
    assert (set(low.flat), set(high.flat)) == ({0.0}, {17.0})


def test_quietest(learned):
    model = learned["ridge"]
    rows = model.quietest(10)
    place = {row: k for k, row in enumerate(model.pool.rows.tolist())}
    shown = [int(model.pool.predictions[place[row]]) for row in rows.tolist()]
    assert sorted(shown) == list(range(10))
    for row, number in zip(rows.tolist(), shown, strict=True):
        of_class = model.pool.ranking[model.pool.predictions == number]
        assert model.pool.ranking[place[row]] == of_class.min()
    assert set(model.quietest(5, "labelled").tolist()) <= set(range(150))
    assert len(set(model.quietest(400).tolist())) == 400
    with pytest.raises(PoolExhausted):
        model.quietest(151, "labelled")


def test_learning_needs_duals(digits, some_labels):
    with pytest.raises(InputError, match="no dual for each label"):
        learn(digits[0][:200], some_labels[:200], objective="erm", training=Training(epochs=1, device="cpu"))


def test_table_of_a_progression(tables, learned, digits):
    model, X = tables["classification"]
    path = ascend(model, X[:3], bounds=bounds_of(X), steps=4, every=2)
    frame = path.table(starts=["a", "b", "c"])
    assert list(frame.columns[:7]) == ["step", "sample", "start", "dual", "prediction", "p(high)", "p(low)"]
    assert frame[["step", "sample"]].to_numpy().tolist() == [
        [step, sample] for step in (0, 2, 4) for sample in range(3)
    ]
    last = frame[(frame["step"] == 4) & (frame["sample"] == 1)].iloc[0]
    np.testing.assert_allclose(last[[f"x{k}" for k in range(10)]].to_numpy(dtype=float), path.samples[-1, 1])
    assert last["p(high)"] == path.probabilities[-1, 1, 0]
    assert last["dual"] == path.duals[-1, 1]
    names = [f"column {k}" for k in range(10)]
    assert list(path.table(names).columns[-10:]) == names
    images = ascend(learned["ridge"].dual, digits[0][:2], bounds=(0, 16), steps=1)
    assert isinstance(images.table(), pd.DataFrame)
    assert images.table().shape == (4, 4 + 10)


def test_generated_samples_for_training_carry_a_warning(learned, digits):
    model = learned["ridge"]
    rows = model.quietest(10)
    path = ascend(model.dual, digits[0][rows], bounds=(0, 16), steps=60, step_size=0.02)
    otherwise = int((path.predictions[-1] != digits[1][rows]).sum())
    with pytest.warns(
        UserWarning, match=f"nobody labelled these 10 generated samples.*disagrees with {otherwise} of these labels"
    ):
        X, y = path.as_training(digits[1][rows])
    np.testing.assert_array_equal(X, path.samples[-1])
    assert y.tolist() == digits[1][rows].tolist()
    with pytest.raises(LabelError, match="label of each start"), warnings.catch_warnings():
        path.as_training([1, 2])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures(learned, tables, digits, tmp_path, ending):
    images = ascend(learned["ridge"].dual, digits[0][:3], bounds=(0, 16), steps=4, every=2)
    figure = draw(images, tmp_path / f"images.{ending}")
    assert len(figure.axes) == 9
    caption = figure.axes[-1].get_xlabel()
    assert f"λ = {images.duals[-1, 2]:.3g}" in caption
    likeliest = images.probabilities[-1, 2].max()
    assert f"{images.predictions[-1, 2]} {100 * likeliest:.0f}%" in caption
    shown = figure.axes[-1].images[0].get_array()
    np.testing.assert_allclose(shown, images.samples[-1, 2, 0] / 16)
    for task, (model, X) in tables.items():
        path = ascend(model, X[:2], bounds=bounds_of(X), steps=4, every=2)
        figure = draw(path, tmp_path / f"{task}.{ending}")
        np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), path.duals[:, 0])
    start = b"\x89PNG" if ending == "png" else b"<?xml"
    assert all(file.read_bytes().startswith(start) for file in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 3


def test_colour_images_are_drawn_channels_last():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(40, 3, 5, 5)).astype(np.uint8)
    y = np.where(X[:, 0].mean((1, 2)) > 127, "bright", "dark").astype(object)
    model = learn(X, y, training=Training(epochs=3, device="cpu"), random_state=0)
    path = ascend(model.dual, X[:2], bounds=model.bounds, steps=2)
    shown = draw(path).axes[0].images[0].get_array()
    assert shown.shape == (5, 5, 3)
    np.testing.assert_allclose(shown[:, :, 0], X[0, 0] / 255)


def test_the_page_runs_as_written(tmp_path, monkeypatch):
    page = (Path(__file__).parent.parent / "docs" / "generation.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(code) == 3
    scope: dict[str, object] = {}
    with pytest.warns(UserWarning, match="nobody labelled"):
        exec("\n".join(code), scope)
    assert (tmp_path / "progression.png").stat().st_size > 10_000
    path = scope["path"]
    assert (path.duals[-1] > path.duals[0]).all()
