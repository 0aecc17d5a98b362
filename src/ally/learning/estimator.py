r"""Any scikit-learn estimator or pipeline as a learner.

An estimator that takes ``sample_weight`` minimises :math:`\sum_i w_i \ell_i` plus its own penalty. With
:math:`w_i = 1 + \lambda_i` that is the Lagrangian of PDCL, so the duals can be found around it (projected ascent, as in
Algorithm 1, with the estimator as the exact primal step):

.. math:: \lambda_i \leftarrow \left[\lambda_i + \eta_d\, t^{-1/16} (\ell_i - \varepsilon_i)\right]_+, \qquad t = 1, 2,
\dots

`Feasibility` takes :math:`w_i = \lambda_i`. Under `Resilient` λ also decays, towards its closed form.

*How far they are moved.* Logistic regression and ridge regression are solved to optimality (`exact_estimator`). Around
any other estimator whose losses are read from its training samples, λ moves until it is within `STILL` of its optimum,
by steps that grow; `FitReport.dual_residual` says how near it came. Where losses are held out, or with `dual_steps`, λ
moves a fixed number of times by the formula above, and the residual says how far that is from an optimum.

*Where the losses are read.* An estimator that memorises has no loss on its training data. Its losses come from
held-out folds, each predicted by a clone trained on the other folds with the same weights. `losses="auto"` does so for
all estimators except linear and naive Bayes ones (`SMOOTH`), whose number of parameters is bounded.

*Losses*: −log p of the label, and the squared error in units of standardised targets, as for networks. Estimators are
cloned for every fit; a ``random_state`` of None is set from the streams.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from ally.checks import check_count
from ally.constrained import Slacks, find_residuals, resolve_eps
from ally.constrained.convex import UNBOUNDED, Constraints, Design, cross_entropy, solve
from ally.constrained.diagnostics import STILL, find_trouble
from ally.data import Scaler, Source, fit_scaler
from ally.errors import AllyError, InputError, ModelError, OneClassError
from ally.learning.calibration import folds
from ally.learning.exact_estimator import ExactForm, find_exact_form, spread_over_features
from ally.learning.fitted_estimator import FittedEstimator, read_samples
from ally.learning.geometry import Geometry, Leaves, Nowhere, Standardised, Transformed, is_sparse, scaler_with_gaps
from ally.learning.learner import Examples, FitReport, Unlabelled
from ally.learning.losses import TargetScale
from ally.learning.objectives import ERM, PDCL, Feasibility, Objective, Resilient
from ally.learning.other_estimators import GivenLabels, LabelForm
from ally.learning.pipelines import called, first_steps, last_step, takes_nan
from ally.rng import Streams, seeded_torch
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

SMOOTH = ("sklearn.linear_model", "sklearn.naive_bayes", "sklearn.discriminant_analysis")
"""Modules of estimators whose losses are read from the samples they are trained on."""
LEAST_PROBABILITY = {"in-sample": 1e-12, "out-of-fold": 1e-3}
"""The largest loss is −log of this. Trees predict a probability of 0 in leaves with few samples."""
HARDLY = 1e-6
"""The weight of every sample in a feasibility problem while all λ are 0: the limit of vanishing weights, at which an
estimator minimises its own penalty."""
STEPS = {"in-sample": 10, "out-of-fold": 3}
"""How many times duals move where they are not moved to their optimum."""
EXACT = 1e-6
"""Tolerance of the exact solver."""
MOST_MOVES = 60
"""How often duals move at most to get to their optimum."""
GROW, SHRINK = 1.5, 0.5
"""What the step of a dual is multiplied by while its slack keeps its sign, and when it changes."""
SEEN_BEFORE = 20_000
"""At most this many texts or object rows are used to fit the first steps of a pipeline for distances."""


@dataclass(frozen=True)
class Estimator:
    """Attributes:
    estimator: an instance, never changed.
    regressor: the estimator for regression, if `estimator` is a classifier.
    dual_steps: how often the duals move; each takes a training, or one of every fold. None for `STEPS`.
    losses: where losses are read: ``"in-sample"``, ``"out-of-fold"``, or ``"auto"`` (see above).
    folds: number of folds.
    geometry: where distances are measured: ``"inputs"``, the standardised inputs (or the output of a pipeline's first
        steps, if the inputs are not numbers), or ``"leaves"``, the leaves of a forest that samples share.
    """

    estimator: Any
    regressor: Any = None
    dual_steps: int | None = None
    losses: Literal["auto", "in-sample", "out-of-fold"] = "auto"
    folds: int = 3
    geometry: Literal["inputs", "leaves"] = "inputs"
    numbered: bool | None = None
    measured: Geometry | None = field(default=None, repr=False, compare=False)
    """Where distances are measured, once `prepared`."""
    own: str | None = None
    """The import path that built the estimator, ``module:builder``, if it was given by one."""
    objects: ClassVar[bool] = True
    """Samples need not be numbers."""

    def __post_init__(self) -> None:
        for each in (self.estimator, self.regressor):
            if isinstance(each, type):
                raise ModelError(f"model is the class {each.__name__}; pass an instance, {each.__name__}()")
        if self.dual_steps is not None:
            check_count("dual_steps", self.dual_steps)
        check_count("folds", self.folds, least=2)
        if self.losses not in ("auto", "in-sample", "out-of-fold"):
            raise InputError.about("losses", self.losses, "; pass 'auto', 'in-sample' or 'out-of-fold'")
        if self.geometry not in ("inputs", "leaves"):
            raise InputError.about("geometry", self.geometry, "; pass 'inputs' or 'leaves'")
        if self.geometry == "leaves" and not isinstance(last_step(self.estimator), BaseForest):
            raise ModelError(f"{called(self.estimator)} is not a forest, so it has no leaves; use geometry='inputs'")

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        estimator = self._template(task)
        name = called(estimator)
        if not (is_classifier if task == "classification" else is_regressor)(estimator):
            kind, labels = ("classifier", "classes") if task == "classification" else ("regressor", "numbers")
            return f"{name} is not a {kind}, and the labels are {labels}; use a {kind}, or say task="
        plain = task == "classification" and not hasattr(estimator, "predict_proba")
        if isinstance(objective, PDCL):
            if objective.weighted and not weighable(estimator):
                return (
                    f"{name} does not take sample_weight, so it cannot be trained under constraints; use a strategy or "
                    "objective without duals, such as objective='erm'"
                )
            if plain:
                return f"{name} has no predict_proba, so its losses are not known; use objective='erm', or {_HAVE_IT}"
            if objective.secondary_loss is not None or objective.regularizer is not None:
                return f"{name} has its own loss and penalty; leave secondary_loss and regularizer at None"
        elif not isinstance(objective, ERM) or objective.regularizer is not None:
            others = ", 'pdcl', 'feasibility' or 'resilient'" if weighable(estimator) and not plain else ""
            return f"{type(objective).__name__} trains networks; train {name} by objective='erm'{others}"
        if plain and {"probabilities", "readouts"} & set(needs):
            return f"the strategy needs probabilities and {name} has no predict_proba; use {_HAVE_IT}"
        return None

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> Estimator:
        if self.measured is not None:
            return self
        if source.numeric:
            scaler = (scaler_with_gaps if takes_nan(self.estimator) else fit_scaler)(source, rows, chunk_size)
            flat = (np.array(np.broadcast_to(part, source.shape)).reshape(-1) for part in (scaler.mean, scaler.scale))
            return replace(self, measured=Standardised(Scaler(*flat)))
        steps = first_steps(self.estimator)
        if steps is None:
            return self
        some = rows[:: max(1, -(-len(rows) // SEEN_BEFORE))]
        X = read_samples(source, some, self.estimator)
        try:
            fitted = clone(steps).fit(X)
        except (TypeError, ValueError):
            # A step needs labels; distances then come from `embeddings=`, or are not available.
            return self
        return replace(self, measured=Transformed.of(fitted, X[:1] if not hasattr(X, "iloc") else X.iloc[:1]))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> Estimator:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return self._measured(source)(read_samples(source, rows, self.estimator))

    def fit(
        self,
        examples: Examples,
        objective: Objective,
        streams: Streams,
        *,
        validation: Examples | None = None,
        unlabelled: Unlabelled | None = None,
        progress: Progress | None = None,
        member: int = 0,
    ) -> FittedEstimator:
        """All members of an ensemble except the first are trained plainly on a bootstrap sample, stratified by
        class."""
        began = time.perf_counter()
        assert examples.outputs
        reason = self.supports(objective, examples.task)
        if reason is not None:
            raise ModelError(reason)
        if member:
            examples, objective = examples.at(_bootstrap(examples, streams)), ERM()
        if validation is not None and not len(validation):
            raise InputError("validation holds 0 samples; give at least one, or None")
        work = _Work(self, examples, streams, progress)
        fitted, report, duals = _constrained(work, objective) if isinstance(objective, PDCL) else _plain(work)
        beside = None
        if validation is not None:
            inputs = fitted.inputs(validation.source, validation.rows)
            beside = float(work.losses(fitted, inputs, validation.labels, 1e-12).mean())
        notes = (*(f"{called(fitted.estimator)} warns: {text}" for text in work.warned), *work.notes)
        report = replace(report, validation_loss=beside, seconds=time.perf_counter() - began, notes=notes)
        return replace(fitted, report=report, duals=duals, held_out=work.said_of_held_out())

    def _template(self, task: Task) -> Any:
        return self.regressor if task == "regression" and self.regressor is not None else self.estimator

    def _measured(self, source: Source) -> Geometry:
        if self.measured is not None:
            return self.measured
        if not source.numeric:
            raise ModelError(
                f"the samples for {called(self.estimator)} are not numbers, so there are no distances between them; "
                "begin a pipeline with steps that turn them into numbers, or pass embeddings="
            )
        return Standardised()


_HAVE_IT = "a classifier that has it, for instance CalibratedClassifierCV(yours)"


def weighable(estimator: Any) -> bool:
    """Whether it takes ``sample_weight``."""
    return bool(has_fit_parameter(last_step(estimator), "sample_weight"))


class _Work:
    """One fit: clones of the estimator trained on weighted samples, and their losses."""

    def __init__(self, learner: Estimator, examples: Examples, streams: Streams, progress: Progress | None) -> None:
        self.learner, self.examples, self.streams, self.progress = learner, examples, streams, progress
        self.template = learner._template(examples.task)
        self.X = read_samples(examples.source, examples.rows, self.template)
        self.form = LabelForm.of(examples.labels, examples.classes, self.template, learner.numbered)
        self.y = self.form.give().y
        self.scale = TargetScale.of(examples.labels) if examples.task == "regression" else TargetScale()
        self.trainings = 0
        self.warned: dict[str, None] = {}
        self.notes: tuple[str, ...] = ()

    @property
    def out_of_fold(self) -> bool:
        if self.learner.losses == "auto":
            return len(self.y) > 1 and not type(last_step(self.template)).__module__.startswith(SMOOTH)
        return len(self.y) > 1 and self.learner.losses == "out-of-fold"

    def train(self, places: IntArray | None = None, weights: FloatArray | None = None) -> FittedEstimator:
        """A clone trained on the samples at `places`, or on all."""
        X = self.X if places is None else self._at(places)
        given = self.form.give(places)
        y = given.y
        estimator = _seeded(clone(self.template), self.streams)
        settings = {}
        if weights is not None:
            prefix = f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
            settings[f"{prefix}sample_weight"] = weights if places is None else weights[places]
        self.trainings += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                with _checked_once(estimator), seeded_torch(self.streams.seed("estimator torch")):
                    estimator.fit(X, y, **settings)
            except AllyError:
                raise
            except Exception as error:
                if self.examples.classes is None or len(np.unique(y)) > 1:
                    raise ModelError(
                        f"{called(estimator)} cannot be trained on these {len(y)} samples: {error}"
                    ) from error
                if places is None:
                    only = self.examples.classes[given.numbers[y[0]]]
                    raise OneClassError(
                        f"all {len(y)} labels are {only!r} so far, and {called(estimator)} needs at least two "
                        "classes; label another class first, or use a model that takes one, such as 'extra-trees'"
                    ) from error
                estimator = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(y), 1)), y)
        self.warned |= dict.fromkeys(str(one.message).strip().split("\n")[0] for one in caught)
        for name in _parameters(estimator, "n_jobs"):
            # Threads would add up predictions in varying order.
            estimator.set_params(**{name: None})
        if self.progress is not None:
            self.progress("train", self.trainings, max(self.trainings, self.expected))
        return self._wrapped(estimator, given)

    expected = 1
    """How many trainings there will be."""
    held_out: torch.Tensor | None = None
    """The latest predictions for held-out samples."""

    def losses(self, fitted: FittedEstimator, X: Any, labels: FloatArray, least: float) -> FloatArray:
        """(n,) for labels as numbers, or targets; 0 or 1 where there are no probabilities."""
        if self.examples.task == "regression":
            found = np.square(fitted.outputs(X).numpy()[:, 0] - self.scale.apply(labels))
        elif hasattr(fitted.estimator, "predict_proba"):
            own = fitted.outputs(X).numpy()[np.arange(len(labels)), np.asarray(labels, dtype=np.int64)]
            found = -np.log(np.clip(own, least, None))
        else:
            found = fitted._numbers(fitted.estimator.predict(X)) != np.asarray(labels, dtype=np.int64)
        unknown = int((~np.isfinite(found)).sum())
        if unknown:
            raise ModelError(
                f"{called(fitted.estimator)} predicts values that are not finite for {unknown} of {len(labels)} "
                "labelled samples, so their losses are not known; drop features that are constant, or use another model"
            )
        return np.asarray(found, dtype=np.float64)

    def read_losses(self, weights: FloatArray | None) -> FloatArray:
        """(n,) of all samples, each held out where the estimator memorises."""
        labels = self.examples.labels
        if not self.out_of_fold:
            return self.losses(self.train(None, weights), self.X, labels, LEAST_PROBABILITY["in-sample"])
        found = np.empty(len(labels))
        self.held_out = torch.empty(len(labels), self.examples.outputs).double()
        for number in range(min(self.learner.folds, len(labels))):
            held_out = np.flatnonzero(self._fold == number)
            X = self._at(held_out)
            fitted = self.train(np.flatnonzero(self._fold != number), weights)
            if isinstance(fitted.estimator, DummyClassifier):
                X = np.zeros((len(held_out), 1))
            self.held_out[torch.from_numpy(held_out)] = fitted.outputs(X)
            found[held_out] = self.losses(fitted, X, labels[held_out], LEAST_PROBABILITY["out-of-fold"])
        return found

    @property
    def _fold(self) -> IntArray:
        """The same folds in every step, classes (or the range of the targets) spread over them."""
        return folds(self.examples.labels, min(self.learner.folds, len(self.y)), self.streams.numpy("estimator folds"))

    def said_of_held_out(self) -> tuple[torch.Tensor | None, torch.Tensor] | None:
        """As `Fitted.held_out`."""
        outputs = self.held_out
        if outputs is None:
            return None
        if self.examples.classes is None:
            return None, self.scale.invert(outputs.squeeze(1))
        return outputs.float(), outputs.argmax(1)

    def _at(self, places: IntArray) -> Any:
        return self.X.iloc[places] if hasattr(self.X, "iloc") else self.X[places]

    def _wrapped(self, estimator: Any, given: GivenLabels) -> FittedEstimator:
        examples = self.examples
        columns: tuple[int, ...] = ()
        if examples.classes is not None:
            own = np.asarray(getattr(estimator, "classes_", np.unique(given.y))).tolist()
            columns = tuple(given.numbers[name] for name in own)
        geometry: Geometry
        if self.learner.geometry == "leaves" and isinstance(last_step(estimator), BaseForest):
            geometry = Leaves(last_step(estimator), first_steps(estimator))
        elif self.learner.measured is None and not examples.source.numeric:
            steps = first_steps(estimator)
            geometry = Nowhere() if steps is None else Transformed.of(steps, self._at(np.arange(1)))
        else:
            geometry = self.learner._measured(examples.source)
        report = FitReport(len(examples), self.trainings, self.trainings, 0.0, None, None, None)
        return FittedEstimator(
            estimator,
            examples.task,
            examples.classes,
            columns,
            self.scale,
            report,
            geometry=geometry,
            shape=examples.source.shape,
            own=self.learner.own,
        )


_Fit = tuple[FittedEstimator, FitReport, dict[str, torch.Tensor]]


def _plain(work: _Work) -> _Fit:
    fitted = work.train()
    loss = float(work.losses(fitted, work.X, work.examples.labels, LEAST_PROBABILITY["in-sample"]).mean())
    return fitted, replace(fitted.report, train_loss=loss), {}


def _constrained(work: _Work, objective: PDCL) -> _Fit:
    """λ by the exact solver where it solves the estimator's own problem, else by moves of λ around trainings."""
    examples, learner = work.examples, work.learner
    eps = resolve_eps(
        objective.eps,
        torch.from_numpy(np.asarray(examples.labels)),
        task=examples.task,
        classes=examples.classes,
        reference_loss=lambda: float(work.read_losses(None).mean()),
    ).numpy()
    cap = UNBOUNDED if objective.dual_cap is None else objective.dual_cap
    slope = objective.slope if isinstance(objective, Resilient) else math.inf
    to_optimum = objective.weighted and learner.dual_steps is None and not work.out_of_fold
    form = find_exact_form(last_step(work.template), work.y) if to_optimum else None
    if form is not None:
        fitted, duals, losses, residual = _solve_exactly(work, form, Constraints(eps, cap, _risk(objective), slope))
    else:
        move = _move_until_still if to_optimum else _move_often
        fitted, duals, losses = move(work, objective, eps, cap, slope)
        residual = float(find_residuals(duals, losses - eps, cap, slope).max())
    if to_optimum:
        work.notes += find_trouble(duals, losses - eps, residual)
    report = replace(
        fitted.report,
        train_loss=float(losses.mean()),
        positive_duals=float((duals > 0).mean()),
        capped_duals=float((duals >= cap).mean()),
        dual_residual=residual,
        slacks=Slacks.of(torch.from_numpy(losses - eps)),
        dual_epoch=work.trainings,
    )
    return fitted, report, {"labelled": torch.from_numpy(duals)}


_Moved = tuple[FittedEstimator, FloatArray, FloatArray]
"""The estimator trained with λ, λ (n,), and the losses (n,)."""


def _solve_exactly(
    work: _Work, form: ExactForm, constraints: Constraints
) -> tuple[FittedEstimator, FloatArray, FloatArray, float]:
    """As `_Moved`, and the residual of the solution."""
    fitted = work.train()
    estimator = last_step(fitted.estimator)
    steps = first_steps(fitted.estimator)
    features = work.X if steps is None else steps.transform(work.X)
    design = Design(features if is_sparse(features) else np.asarray(features, dtype=np.float64))
    targets: AnyArray = work.scale.apply(work.examples.labels)
    outputs = 1
    if form.loss is cross_entropy:
        targets, outputs = np.searchsorted(estimator.classes_, work.y), len(estimator.classes_)
    penalty = form.penalty / (len(work.y) if form.weights is None else float(form.weights.sum()))
    found = solve(design.rows, targets, form.loss, outputs, penalty, constraints, tolerance=EXACT, weights=form.weights)
    form.write_into(estimator, *spread_over_features(design, found), work.scale)
    return fitted, found.duals, found.losses, found.residual


def _move_until_still(work: _Work, objective: PDCL, eps: FloatArray, cap: float, slope: float) -> _Moved:
    """Projected ascent until no λ would move by more than `STILL`; the nearest to that if it does not get there. The
    step of a sample grows while its slack keeps its sign and shrinks when it changes: λ is far from 0 for a few."""
    work.expected = MOST_MOVES
    weigh = _weights(objective)
    duals = np.full(len(eps), float(objective.dual_init))
    rates, before = np.full(len(eps), objective.dual_lr), np.zeros(len(eps))
    nearest, least = None, np.inf
    for _ in range(MOST_MOVES):
        fitted = work.train(None, weigh(duals))
        losses = work.losses(fitted, work.X, work.examples.labels, LEAST_PROBABILITY["in-sample"])
        residual = float(find_residuals(duals, losses - eps, cap, slope).max())
        if nearest is None or residual < least:
            nearest, least = (fitted, duals, losses), residual
        if residual <= STILL:
            break
        ascent = losses - eps - duals / slope
        turned = ascent * before
        rates = np.where(turned > 0, GROW * rates, np.where(turned < 0, SHRINK * rates, rates))
        duals, before = np.clip(duals + rates * ascent, 0.0, cap), ascent
    assert nearest is not None
    return nearest


def _move_often(work: _Work, objective: PDCL, eps: FloatArray, cap: float, slope: float) -> _Moved:
    """A fixed number of moves, by the steps of the objective."""
    learner = work.learner
    steps = learner.dual_steps or STEPS["out-of-fold" if work.out_of_fold else "in-sample"]
    work.expected = steps * (learner.folds if work.out_of_fold else 1) + 1
    weigh = _weights(objective)
    duals = np.full(len(eps), float(objective.dual_init))
    losses: FloatArray | None = None
    for step in range(1, steps + 1):
        if losses is None or objective.weighted:
            losses = work.read_losses(weigh(duals))
        moved = objective.move_duals(duals, losses - eps, step)
        if objective.weighted and np.array_equal(moved, duals):
            break
        duals = moved
    fitted = work.train(None, weigh(duals))
    if not work.out_of_fold:
        losses = work.losses(fitted, work.X, work.examples.labels, LEAST_PROBABILITY["in-sample"])
    assert losses is not None
    return fitted, duals, losses


def _risk(objective: PDCL) -> float:
    return 0.0 if isinstance(objective, Feasibility) else 1.0


def _weights(objective: PDCL) -> Callable[[FloatArray], FloatArray | None]:
    """The sample weights for λ; None if all are equal."""
    if not objective.weighted:
        return lambda duals: None
    if isinstance(objective, Feasibility):
        return lambda duals: duals if duals.any() else np.full(len(duals), HARDLY)
    return lambda duals: 1.0 + duals if duals.any() else None


def _seeded(estimator: Any, streams: Streams) -> Any:
    """Set every ``random_state`` that is None from the streams."""
    for name in _parameters(estimator, "random_state"):
        estimator.set_params(**{name: streams.seed(f"estimator {name}") % 2**31})
    return estimator


def _parameters(estimator: Any, name: str) -> list[str]:
    """Names of the parameters called `name`, of the estimator and all that it holds: those at None for random_state,
    those that are set for n_jobs."""
    if not hasattr(estimator, "get_params"):
        return []
    given = estimator.get_params(deep=True)
    return sorted(
        key
        for key, value in given.items()
        if key.split("__")[-1] == name and (value is None) == (name == "random_state")
    )


def _bootstrap(examples: Examples, streams: Streams) -> IntArray:
    """Places drawn with replacement, (n,), ascending; each class by itself, so that none is lost."""
    rng = streams.numpy("bootstrap")
    strata = [np.arange(len(examples))]
    if examples.classes is not None:
        strata = [np.flatnonzero(examples.labels == number) for number in np.unique(examples.labels)]
    return np.sort(np.concatenate([rng.choice(part, len(part)) for part in strata]))


@contextmanager
def _checked_once(estimator: Any) -> Iterator[None]:
    """scikit-learn checks the settings of each of the hundreds of trees that an ensemble makes by its own settings."""
    alike = isinstance(estimator, BaseForest | BaseGradientBoosting) and getattr(estimator, "init", None) is None
    if not alike:
        yield
        return
    estimator._validate_params()
    with config_context(skip_parameter_validation=True):
        yield
