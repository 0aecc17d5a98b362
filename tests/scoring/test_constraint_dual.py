"""Duals in closed form: of classes, of numbers, and what is said where there are none."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import entropy, norm

import ally
from ally.constrained import AbsoluteError, CrossEntropy, MarginViolation, ProbabilityShortfall, SquaredError
from ally.errors import InputError
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring import ConstraintDual, DualByTask, Margin
from ally.testing.pools import blobs


def scored(score, snapshot):
    return score(snapshot, Streams(0))


def with_probabilities(make_snapshot, p):
    snapshot = make_snapshot(n=len(p))
    return replace(snapshot, candidates=replace(snapshot.candidates, probabilities=torch.as_tensor(p).float()))


def numbers(make_snapshot, spread=None):
    s = make_snapshot(n=6)
    read = {} if spread is None else {DualByTask().readouts[0].name: torch.tensor(spread)}
    return Snapshot(
        "regression", View(s.candidates.rows, s.candidates.embeddings, None, torch.zeros(6), read), s.labelled
    )


def test_the_default_of_classes_is_the_margin_bit_for_bit(make_snapshot):
    snapshot = make_snapshot()
    found = scored(DualByTask(), snapshot)
    assert torch.equal(found.scores, scored(Margin(), snapshot).scores)
    assert torch.equal(found.duals, found.scores)
    assert (found.report, found.notes) == ({"constraint": "MarginViolation"}, ())


def test_ties_at_the_cap_keep_the_bits_of_the_margin(make_snapshot):
    snapshot = with_probabilities(make_snapshot, np.full((4, 3), np.float32(1 / 3)))
    assert float(scored(Margin(), snapshot).scores[0]) > 1, "float32 thirds add up to more than 1"
    assert torch.equal(scored(ConstraintDual(), snapshot).scores, scored(Margin(), snapshot).scores)


@pytest.mark.parametrize(
    ("constraint", "values"),
    [
        (MarginViolation(), lambda p, y: 1 - p[y] + np.delete(p, y).max()),
        (ProbabilityShortfall(), lambda p, y: 1 - p[y]),
        (CrossEntropy(), lambda p, y: -np.log(p[y])),
    ],
)
@pytest.mark.parametrize(("level", "slope", "cap"), [(0.0, 1.0, 1.0), (0.3, 2.0, 0.7)])
def test_duals_of_classes_are_those_of_the_definition(make_snapshot, constraint, values, level, slope, cap):
    snapshot = make_snapshot(n=50)
    p = snapshot.candidates.probabilities.double().numpy()
    duals = np.asarray([[min(slope * max(values(row, y) - level, 0.0), cap) for y in range(p.shape[1])] for row in p])
    mean = scored(ConstraintDual(constraint, level, slope, cap, "mean"), snapshot).duals
    np.testing.assert_allclose(mean, (p * duals).sum(1), rtol=1e-5, atol=1e-6)
    predicted = scored(ConstraintDual(constraint, level, slope, cap, "predicted"), snapshot).duals
    np.testing.assert_allclose(predicted, duals[np.arange(len(p)), p.argmax(1)], rtol=1e-5, atol=1e-6)


def test_known_uncertainties_are_special_cases(make_snapshot):
    snapshot = make_snapshot()
    p = snapshot.candidates.probabilities.double().numpy()
    top = np.sort(p, axis=1)
    by_entropy = scored(ConstraintDual(CrossEntropy(), cap=1e3, label="mean"), snapshot).duals
    np.testing.assert_allclose(by_entropy, entropy(p, axis=1), rtol=1e-5)
    gini = scored(ConstraintDual(ProbabilityShortfall(), label="mean"), snapshot).duals
    np.testing.assert_allclose(gini, 1 - np.square(p).sum(1), rtol=1e-5)
    margin = scored(ConstraintDual(label="mean"), snapshot).duals
    np.testing.assert_allclose(margin, 1 - top[:, -1] * (top[:, -1] - top[:, -2]), rtol=1e-5)
    likelier_wrong = scored(ConstraintDual(CrossEntropy(), np.log(2), slope=1e6), snapshot).duals
    np.testing.assert_allclose(likelier_wrong, top[:, -1] < 0.5, atol=1e-5)


def test_an_impossible_label_has_a_finite_dual(make_snapshot):
    snapshot = with_probabilities(make_snapshot, np.eye(3))
    for constraint in (CrossEntropy(), MarginViolation(), ProbabilityShortfall()):
        assert scored(ConstraintDual(constraint, cap=1e3, label="mean"), snapshot).scores.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("constraint", "power"), [(AbsoluteError(), 1), (SquaredError(), 2)])
@pytest.mark.parametrize("level", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("slope", "cap"), [(1 / 3, 1.0), (1.0, 5.0)])
def test_the_mean_dual_of_a_number_is_the_integral(constraint, power, level, slope, cap):
    spreads = np.asarray([0.1, 0.5, 1.0, 3.0, 20.0])
    first, last = level ** (1 / power), (level + cap / slope) ** (1 / power)
    for spread, found in zip(spreads, constraint.average_dual(torch.tensor(spreads), level, slope, cap), strict=True):
        rising = quad(
            lambda r, t=spread: slope * (r**power - level) * norm.pdf(r, scale=t),
            first,
            max(first, min(last, 40 * spread)),
            epsabs=1e-12,
        )[0]
        assert float(found) == pytest.approx(2 * (rising + cap * norm.sf(last / spread)), abs=1e-8)


def test_spreads_are_in_units_of_their_median(make_snapshot):
    spread = [0.0, 1.0, 1.0, 1.0, 2.0, 50.0]
    found, larger = (scored(DualByTask(), numbers(make_snapshot, [c * s for s in spread])) for c in (1.0, 1e3))
    np.testing.assert_allclose(found.duals, larger.duals, rtol=1e-6)
    c = 3.0
    t = np.asarray(spread[1:])
    expected = t / c * np.sqrt(2 / np.pi) * (1 - np.exp(-(c**2) / (2 * t**2))) + 2 * norm.cdf(-c / t)
    np.testing.assert_allclose(found.duals, [0.0, *expected], rtol=1e-6)
    assert (found.report, found.notes) == ({"constraint": "AbsoluteError"}, ())


def test_where_most_spreads_are_zero_the_others_set_the_unit(make_snapshot):
    found = scored(DualByTask(), numbers(make_snapshot, [0.0, 0.0, 0.0, 0.0, 2.0, 4.0]))
    assert found.duals[:4].tolist() == [0.0] * 4
    assert 0 < float(found.duals[4]) < float(found.duals[5]) < 1


@pytest.mark.parametrize("spread", [None, [0.0] * 6])
def test_without_a_spread_all_score_alike_and_a_note_says_so(make_snapshot, spread):
    found = scored(DualByTask(), numbers(make_snapshot, spread))
    assert found.scores.tolist() == [1] * 6
    assert (found.report, found.duals) == ({"constraint": None}, None)
    assert found.notes == (
        "the model gives no uncertainty for its predictions: all candidates weigh the same, and the selection decides "
        "alone",
    )


def test_without_probabilities_all_score_alike_and_a_note_says_so(make_snapshot):
    s = make_snapshot()
    found = scored(DualByTask(), replace(s, candidates=replace(s.candidates, probabilities=None)))
    assert set(found.scores.tolist()) == {1}
    assert found.duals is None
    assert found.notes[0].startswith("the model gives no probabilities: all candidates weigh the same")


def test_a_cap_below_every_violation_is_said_to_rank_nothing(make_snapshot):
    found = scored(ConstraintDual(cap=1e-9, slope=1.0), make_snapshot())
    assert found.notes[0].startswith("every dual of MarginViolation is at its cap")
    loose = scored(ConstraintDual(level=2.0), make_snapshot())
    assert set(loose.scores.tolist()) == {0}
    assert loose.notes[0].startswith("every dual of MarginViolation is 0: no violation is above level=2")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"slope": 0}, "slope=0 must be a finite number > 0"),
        ({"slope": -1.0}, "slope=-1.0 must be a finite number > 0"),
        ({"cap": 0}, "cap=0 must be a finite number > 0"),
        ({"cap": -2}, "cap=-2 must be a finite number > 0"),
        ({"slope": 1e-308, "cap": 1e308}, "out of reach of float64; raise slope or lower cap"),
        ({"level": float("nan")}, "level=nan must be a finite number >= 0"),
        ({"label": "true"}, "label='true'; pass 'predicted', 'mean' or None"),
        ({"constraint": "margin"}, "constraint='margin' is not a constraint; pass one such as"),
        ({"constraint": AbsoluteError(), "label": "predicted"}, "a predicted number has no error"),
    ],
)
def test_settings_are_checked(wrong, words):
    with pytest.raises(InputError, match=words):
        ConstraintDual(**wrong)


def test_a_constraint_is_for_its_task():
    assert ConstraintDual().tasks == {"classification"}
    assert ConstraintDual(AbsoluteError()).tasks == {"regression"}
    with pytest.raises(InputError, match="pass a ConstraintDual with a constraint for regression"):
        DualByTask(numbers=ConstraintDual(MarginViolation()))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_query_shows_the_dual_of_each_sample(task):
    scene = blobs(task)
    q = ally.query(scene.X, scene.y, n=4, model="extra-trees", random_state=0)
    assert q.why["dual"].between(0, 1).all()
    if task == "classification":
        strategy = ally.Strategy(Margin())
        scores = ally.query(scene.X, scene.y, n=40, strategy=strategy, model="extra-trees", random_state=0)
        margins = dict(zip(scores.ids.tolist(), scores.scores.tolist(), strict=True))
        assert [margins[id] for id in q.ids.tolist() if id in margins] == [
            dual for id, dual in zip(q.ids.tolist(), q.why["dual"], strict=True) if id in margins
        ]
