"""The conformance suite of learners.

    from ally.testing.learner import check_learner
    check_learner(MyLearner(), task="classification")

The contract is in `ally.learning.learner`. Each check trains on a small pool; if it fails, it raises `AssertionError`
and says what it found. Learners that do not take columns of numbers are checked on your own samples:
``check_learner(learner, X=texts, y=labels)``.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ally.data import BLOCK, Source, as_source
from ally.errors import AllyError, InputError, ModelError, OneClassError
from ally.learning.learner import Examples, Fitted, Learner
from ally.learning.objectives import ERM, PDCL
from ally.learning.snapshot import View
from ally.rng import Streams
from ally.types import FloatArray, IntArray, Task

POOL = 2 * BLOCK + 52
"""Three blocks."""
LABELLED = 45


@dataclass(frozen=True)
class Bench:
    """A learner, and a pool with labels to try it on."""

    learner: Learner
    task: Task
    X: Any
    labels: FloatArray
    """(n,) class numbers or targets; only the first `LABELLED` rows are used where few labels are wanted."""
    classes: tuple[Any, ...] | None

    @cached_property
    def source(self) -> Source:
        return as_source(self.X, objects=getattr(self.learner, "objects", False))

    @property
    def rows(self) -> IntArray:
        return np.arange(len(self.source))

    @cached_property
    def prepared(self) -> Learner:
        return self.learner.prepared(self.source, self.rows)

    @property
    def examples(self) -> Examples:
        few = np.arange(min(LABELLED, len(self.labels)))
        return Examples(self.source, few, self.labels[few], self.task, self.classes)

    @cached_property
    def fitted(self) -> Fitted:
        return self.fit()

    @cached_property
    def seen(self) -> View:
        return self.fitted.view(self.source, self.rows)

    def fit(self, examples: Examples | None = None, objective: Any = ERM(), **more: Any) -> Fitted:
        return self.prepared.fit(self.examples if examples is None else examples, objective, Streams(0), **more)


def is_a_frozen_learner(bench: Bench) -> None:
    assert isinstance(bench.learner, Learner), "it lacks a method of ally.learning.learner.Learner"
    before = repr(bench.learner)
    assert " at 0x" not in before, f"its repr is no configuration: {before}"
    assert bench.learner.supports(ERM(), bench.task) is None, bench.learner.supports(ERM(), bench.task)
    assert bench.fitted is not None
    assert repr(bench.learner) == before, "fitting changed the learner"


def points_are_vectors(bench: Bench) -> None:
    points = bench.prepared.points(bench.source, bench.rows[:7])
    assert points.dtype == torch.float32
    assert points.ndim == 2, f"points have shape {tuple(points.shape)}"
    assert len(points) == 7
    assert bool(torch.isfinite(points).all())


def a_fitted_learner_says_what_it_should(bench: Bench) -> None:
    fitted, seen, n = bench.fitted, bench.seen, len(bench.source)
    assert isinstance(fitted, Fitted), "it lacks an attribute of ally.learning.learner.Fitted"
    assert (fitted.task, fitted.classes) == (bench.task, bench.classes)
    assert seen.embeddings.dtype == torch.float32
    assert seen.embeddings.shape[0] == n
    assert bool(torch.isfinite(seen.embeddings).all())
    assert seen.predictions.shape == (n,)
    if bench.classes is None:
        assert seen.probabilities is None, "a regressor gives no probabilities"
        assert seen.predictions.dtype == torch.float64
        assert bool(torch.isfinite(seen.predictions).all())
    else:
        assert seen.predictions.dtype == torch.int64
        assert 0 <= int(seen.predictions.min()) <= int(seen.predictions.max()) < len(bench.classes)
    if seen.probabilities is not None and bench.classes is not None:
        assert seen.probabilities.dtype == torch.float32
        assert seen.probabilities.shape == (n, len(bench.classes))
        torch.testing.assert_close(seen.probabilities.sum(1), torch.ones(n), atol=1e-4, rtol=0)
        assert bool((seen.probabilities >= 0).all())


def predictions_are_classes_it_was_told(bench: Bench) -> None:
    found = bench.fitted.predict(bench.source)
    assert found.shape == (len(bench.source),)
    if bench.classes is not None:
        assert set(found.tolist()) <= set(bench.classes), "it predicts classes that do not exist"
    else:
        assert np.isfinite(found).all()


def training_twice_gives_the_same_bits(bench: Bench) -> None:
    _ensure_same(bench.fit().view(bench.source, bench.rows), bench.seen, "trained twice with the same streams")


def global_generators_are_left_alone(bench: Bench) -> None:
    ours, theirs = torch.random.get_rng_state(), pickle.dumps(np.random.get_state())  # noqa: NPY002
    bench.fit().view(bench.source, bench.rows[:5])
    assert torch.equal(torch.random.get_rng_state(), ours), "torch's global generator was used"
    assert pickle.dumps(np.random.get_state()) == theirs, "numpy's global generator was used"  # noqa: NPY002


def runs_of_blocks_give_the_same_bits(bench: Bench) -> None:
    for start, stop in ((0, BLOCK), (BLOCK, 2 * BLOCK), (2 * BLOCK, len(bench.source)), (0, 2 * BLOCK)):
        run = slice(start, stop)
        part = bench.fitted.view(bench.source, bench.rows[run], start=start)
        _ensure_same(part, bench.seen.at(torch.arange(len(bench.source))[run]), f"rows {start} to {stop} by themselves")


def looking_has_no_side_effects(bench: Bench) -> None:
    given = copy.deepcopy(bench.X)
    _ensure_same(bench.fitted.view(bench.source, bench.rows), bench.seen, "looked at twice")
    assert _equal(given, bench.X), "the samples were changed"


def a_pickled_learner_says_the_same(bench: Bench) -> None:
    fitted, source = pickle.loads(pickle.dumps((bench.fitted, bench.source)))
    _ensure_same(fitted.view(source, bench.rows), bench.seen, "pickled and back")
    assert repr(pickle.loads(pickle.dumps(bench.learner))) == repr(bench.learner)


def what_it_was_given_is_unchanged(bench: Bench) -> None:
    examples, labels = bench.examples, bench.labels.copy()
    given = copy.deepcopy(bench.X)
    bench.fit(examples)
    assert (bench.labels == labels).all(), "the labels were changed"
    assert _equal(given, bench.X), "the samples were changed"


def the_report_is_filled(bench: Bench) -> None:
    report = bench.fitted.report
    assert report.samples == len(bench.examples)
    assert report.epochs >= 1
    assert np.isfinite(report.train_loss)
    assert report.seconds > 0
    assert report.positive_duals is None, "an unconstrained fit has no duals"
    assert not bench.fitted.duals
    beside = bench.fit(validation=bench.examples.at(np.arange(10))).report.validation_loss
    assert beside is None or np.isfinite(beside)


def duals_belong_to_the_examples(bench: Bench) -> None:
    """A wrong label among clear ones has the highest dual. Without a bound, exact duals may be higher where another
    bends the model more: what a constraint costs is no measure of how wrong a label is."""
    if bench.learner.supports(PDCL(), bench.task) is not None:
        return
    wrong, examples = 7, bench.examples
    labels = examples.labels.copy()
    right = labels[wrong]
    labels[wrong] = (right + 1) % len(bench.classes) if bench.classes is not None else right + 8 * np.std(labels)
    bounded = PDCL(eps=0.01, dual_cap=10.0)
    fitted = bench.fit(Examples(examples.source, examples.rows, labels, bench.task, bench.classes), bounded)
    duals = fitted.duals["labelled"]
    assert duals.shape == (len(examples),), f"{tuple(duals.shape)} duals for {len(examples)} samples"
    assert bool(torch.isfinite(duals).all())
    assert bool((duals >= 0).all()), "a dual is negative"
    highest = int(duals.argmax())
    assert duals[wrong] >= 0.999 * duals[highest], (
        f"sample {wrong} has a wrong label and the dual {float(duals[wrong])}, sample {highest} {float(duals[highest])}"
    )
    share = float((duals > 0).double().mean())
    assert fitted.report.positive_duals is not None
    assert abs(fitted.report.positive_duals - share) < 1e-6
    assert fitted.report.slacks is not None
    if fitted.held_out is not None:
        assert len(fitted.held_out[1]) == len(examples)


def bad_labels_are_named(bench: Bench) -> None:
    examples = bench.examples
    _expect(InputError, lambda: bench.fit(examples.at(np.arange(0))), "no samples")
    if bench.classes is None:
        return
    same = np.zeros(len(examples))
    first = bench.classes[:1]
    _expect(
        OneClassError,
        lambda: bench.fit(Examples(examples.source, examples.rows, same, bench.task, first)),
        "labels of one class only",
    )
    # If another class was declared, a learner may cope; if it cannot, it says so.
    try:
        seen = bench.fit(Examples(examples.source, examples.rows, same, bench.task, bench.classes)).view(
            bench.source, bench.rows[:20]
        )
        assert seen.probabilities is None or bool(torch.isfinite(seen.probabilities).all())
    except OneClassError:
        pass


def a_class_without_labels_is_no_obstacle(bench: Bench) -> None:
    if bench.classes is None:
        return
    classes = (*bench.classes, type(bench.classes[0])(99))
    examples = bench.examples
    fitted = bench.fit(Examples(examples.source, examples.rows, examples.labels, bench.task, classes))
    seen = fitted.view(bench.source, bench.rows[:50])
    assert seen.probabilities is None or seen.probabilities.shape == (50, len(classes))


def an_ensemble_differs(bench: Bench) -> None:
    x = bench.fitted.inputs(bench.source, bench.rows[:BLOCK])
    if bench.classes is not None and bench.seen.probabilities is None:
        return
    if bench.fitted.spreads:
        drawn = list(bench.fitted.sampled(x, 5, 3))
        again = list(bench.fitted.sampled(x, 5, 3))
        assert all(torch.equal(one, other) for one, other in zip(drawn, again, strict=True)), "draws are not seeded"
    else:
        _expect(ModelError, lambda: bench.fitted.sampled(x, 5, 3), "samples of one learner without a spread")
        member = bench.prepared.fit(bench.examples, ERM(), Streams(1), member=1)
        drawn = [bench.fitted.outputs(x), member.outputs(x)]
    assert len(drawn) >= 2
    width = 1 if bench.classes is None else len(bench.classes)
    assert all(one.shape == (BLOCK, width) for one in drawn)
    assert any(not torch.equal(drawn[0], one) for one in drawn[1:]), "members of an ensemble agree to the last bit"


def other_features_are_refused(bench: Bench) -> None:
    if not isinstance(bench.X, np.ndarray) or bench.X.dtype == object:
        return
    other = as_source(np.concatenate([bench.X, bench.X], axis=1))
    _expect(InputError, lambda: bench.fitted.view(other, bench.rows[:5]), "samples with other features")


def it_can_be_packed_or_says_why_not(bench: Bench) -> None:
    try:
        facts, tensors = bench.fitted.packed()
    except ModelError:
        return
    assert isinstance(facts.get("kind"), str)
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors.values())


CHECKS: tuple[Callable[[Bench], None], ...] = (
    is_a_frozen_learner,
    points_are_vectors,
    a_fitted_learner_says_what_it_should,
    predictions_are_classes_it_was_told,
    training_twice_gives_the_same_bits,
    global_generators_are_left_alone,
    runs_of_blocks_give_the_same_bits,
    looking_has_no_side_effects,
    a_pickled_learner_says_the_same,
    what_it_was_given_is_unchanged,
    the_report_is_filled,
    duals_belong_to_the_examples,
    bad_labels_are_named,
    a_class_without_labels_is_no_obstacle,
    an_ensemble_differs,
    other_features_are_refused,
    it_can_be_packed_or_says_why_not,
)


def bench_for(learner: Learner, task: Task = "classification", X: Any = None, y: Any = None) -> Bench:
    """`y` are the labels of `X`, classes by name or targets; by default three clear classes, or a linear target."""
    if X is None:
        rng = np.random.default_rng(0)
        number = np.arange(POOL) % 3
        X = rng.normal(size=(POOL, 4)) + 4.0 * np.eye(3, 4)[number]
        y = number if task == "classification" else X @ np.asarray([1.0, -2.0, 0.5, 0.0]) + 3.0
    if task == "regression":
        return Bench(learner, task, X, np.asarray(y, dtype=np.float64), None)
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    return Bench(learner, task, X, numbers.astype(np.float64), tuple(classes.tolist()))


def check_learner(learner: Learner, task: Task = "classification", X: Any = None, y: Any = None) -> None:
    """Raises unless the learner keeps its contract. `X` should hold more than two blocks of samples."""
    bench = bench_for(learner, task, X, y)
    for check in CHECKS:
        check(bench)


def _ensure_same(one: View, other: View, what: str) -> None:
    assert torch.equal(one.embeddings, other.embeddings), f"{what}: the embeddings differ"
    assert torch.equal(one.predictions, other.predictions), f"{what}: the predictions differ"
    if one.probabilities is not None and other.probabilities is not None:
        assert torch.equal(one.probabilities, other.probabilities), f"{what}: the probabilities differ"
    assert (one.probabilities is None) == (other.probabilities is None), what


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool((np.asarray(one) == np.asarray(other)).all())
    return bool(pickle.dumps(one) == pickle.dumps(other))


def _expect(kind: type[AllyError], call: Callable[[], Any], what: str) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{what}: {kind.__name__} is expected")


__all__ = ["CHECKS", "Bench", "bench_for", "check_learner"]
