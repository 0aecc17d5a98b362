"""Constrained learning as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ally.constrained.convex import UNBOUNDED
from ally.constrained.diagnostics import STILL, find_ties
from ally.data import LabelCode, as_source, parse_labels
from ally.errors import InputError, ModelError, NoDuals
from ally.execution.memory import Scratch
from ally.learning.dual_head import FittedHead, RidgeHead
from ally.learning.fitted_network import FittedNetwork
from ally.learning.head_features import Labelled
from ally.learning.learner import Examples, Fitted, Learner
from ally.learning.linear import FittedLinear, LinearLearner
from ally.learning.network import Network
from ally.learning.objectives import ERM, PDCL, Objective, resolve_objective
from ally.learning.snapshot import View, view
from ally.learning.training import Training
from ally.models import MLP, ModelBuilder
from ally.rng import Streams, streams
from ally.types import AnyArray, FloatArray, IntArray, Task

UNUSED_IN_QUERIES = (
    "eps",
    "dual_lr",
    "dual_init",
    "secondary_loss",
    "objective",
    "validation",
    "classes",
    "random_state",
)
"""Parameters that belong to the objective or the call, not to the model."""
NO_DUALS = "has no dual variables; use 'pdcl', 'feasibility' or 'resilient'"


# scikit-learn has no type information, so its bases count as Any: hence the three marks below.
class _ConstrainedEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: parameters, training, embeddings and duals."""

    _task: Task

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        eps: Any = None,
        dual_lr: float | None = None,
        lr: float = 1e-3,
        epochs: int = 40,
        batch_size: int | None = None,
        patience: int | None = None,
        validation: Any = None,
        objective: str | Objective = "pdcl",
        secondary_loss: Any = None,
        dual_init: float = 0.0,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
        model: Literal["mlp", "linear"] = "mlp",
        C: float | None = None,
        dual_cap: float | None = None,
    ) -> None:
        self.hidden = hidden
        self.eps = eps
        self.dual_lr = dual_lr
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.patience = patience
        self.validation = validation
        self.objective = objective
        self.secondary_loss = secondary_loss
        self.dual_init = dual_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.model = model
        self.C = C
        self.dual_cap = dual_cap

    @property
    def duals_(self) -> FloatArray:
        """λ of the samples trained on, (n,)."""
        check_is_fitted(self)
        if self._duals is None:
            raise NoDuals.about("objective", self.objective, NO_DUALS)
        return self._duals

    @property
    def sensitivities_(self) -> FloatArray:
        """−λᵢ/n, (n,): how much the optimum (risk and penalty, in units of standardised targets) changes per unit of
        εᵢ; NaN where λ is at its bound and may be too low. Weighted samples count by their weights."""
        duals = self.duals_
        if not isinstance(self._fitted, FittedLinear):
            raise NoDuals(
                "the duals of a network are those of a point near which training ended, not of an optimum, so they are "
                "no sensitivities; use model='linear', whose duals are exact"
            )
        residual = self.report_.dual_residual
        assert residual is not None
        if self._dual_bound is None and (duals >= UNBOUNDED).any():
            raise NoDuals(
                "these constraints cannot be met, so there is no optimum that could change; raise eps, set dual_cap, "
                "or use objective='resilient'"
            )
        if residual > STILL:
            raise NoDuals(
                f"the duals are {residual:.2g} from their optimum, so they are no sensitivities; raise eps, or set "
                "dual_cap"
            )
        shares = np.ones(len(duals)) if self._weights is None else self._weights
        cap = UNBOUNDED if self._dual_bound is None else self._dual_bound
        return np.where(duals >= cap, np.nan, -duals * shares / shares.sum())

    def embed(self, X: Any) -> FloatArray:
        """f_φ(x), the backbone's output: (n, d)."""
        return np.asarray(self._view(X).embeddings.numpy())

    def predict_duals(self, X: Any) -> FloatArray:
        """λ ≥ 0 that samples would have if they were labelled, predicted from those of the training samples."""
        seen = self._view(X)
        return np.asarray(self._dual_head().duals(seen).numpy())

    def _dual_head(self) -> FittedHead:
        if self._head is None:
            raise NoDuals.about("objective", self.objective, NO_DUALS)
        return self._head

    def _training(self) -> Training:
        """The trainer's settings as one value."""
        return Training(
            self.lr, epochs=self.epochs, batch_size=self.batch_size, patience=self.patience, device=self.device
        )

    def as_learner(self, training: Training | None, device: str) -> tuple[Learner, tuple[str, ...]]:
        """The learner that stands for it in a query, trained by its own settings unless `training` is given, and notes
        about what of it is not used."""
        plain = type(self)().get_params()
        given = {name: value for name, value in self.get_params().items() if name in UNUSED_IN_QUERIES}
        unused = [name for name, own in given.items() if own is not plain[name] and repr(own) != repr(plain[name])]
        note = f"{', '.join(unused)} of the model are not used; pass them as objective=PDCL(...)"
        if self._is_linear:
            return LinearLearner(C=self.C), (note,) if unused else ()
        settings = self._training() if device == "auto" else replace(self._training(), device=device)
        return Network(self._network(), training or settings), (note,) if unused else ()

    @property
    def _is_linear(self) -> bool:
        if self.model not in ("mlp", "linear"):
            raise InputError.about("model", self.model, "; pass 'mlp' or 'linear'")
        return self.model == "linear"

    def _learner(self) -> Learner:
        if not self._is_linear:
            return Network(self._network(), self._training())
        if self.validation is not None:
            raise InputError.about(
                "validation", self.validation, "has nothing to stop early in model='linear'; pass None"
            )
        return LinearLearner(C=self.C, tighten=False)

    def _network(self) -> ModelBuilder:
        """Builds the network."""
        widths: Any = (self.hidden,) if isinstance(self.hidden, (int, np.integer)) else self.hidden
        if not hasattr(widths, "__iter__") or any(
            not isinstance(width, (int, np.integer)) or width < 1 for width in widths
        ):
            raise InputError.about("hidden", self.hidden, "must list positive widths; () is a linear model")
        return partial(MLP, hidden=tuple(widths))

    def _objective(self, rows: IntArray, n: int) -> Objective:
        """The objective for the samples trained on, of n; given by name, with the estimator's own settings."""
        objective = resolve_objective(self.objective)
        if not isinstance(self.objective, str) or not isinstance(objective, PDCL):
            return objective
        eps = self.eps
        if eps is not None and not isinstance(eps, (str, Mapping)) and np.ndim(eps) == 1:
            if len(eps) != n:
                raise InputError(f"eps has {len(eps)} values and X has {n} rows; pass one value per row")
            eps = np.asarray(eps)[rows]
        return replace(
            objective,
            eps=eps,
            dual_lr=objective.dual_lr if self.dual_lr is None else self.dual_lr,
            dual_init=self.dual_init,
            dual_cap=objective.dual_cap if self.dual_cap is None else self.dual_cap,
            secondary_loss=self.secondary_loss,
        )

    def _fit(self, X: Any, labels: FloatArray, code: LabelCode, sample_weight: Any = None) -> None:
        seeds = streams(self.random_state)
        classes = None if code.classes is None else tuple(code.classes.tolist())
        rows, held_out = self._split(X, labels, code, seeds)
        rows, weights = self._weighted(X, rows, sample_weight)
        source = as_source(X)
        learner, objective = self._learner().prepared(source, rows), self._objective(rows, len(labels))
        self._fitted: Fitted = learner.fit(
            Examples(source, rows, labels[rows], self._task, classes, weights),
            objective,
            seeds.child("training"),
            validation=held_out,
            progress=_print_progress if self.verbose else None,
        )
        self.report_ = self._fitted.report
        self.training_rows_, self._weights = rows, weights
        self._dual_bound = objective.dual_cap if isinstance(objective, PDCL) else None
        duals = self._fitted.duals.get("labelled")
        self._duals: FloatArray | None = None
        if duals is not None:
            self._duals = duals.numpy()
            self.report_ = replace(self.report_, notes=(*self.report_.notes, *find_ties(self._duals)))
        self._head: FittedHead | None = None
        if duals is not None:
            with Scratch() as scratch:
                seen = view(self._fitted, source, rows, scratch)
            self._head = RidgeHead().fit(Labelled(seen, torch.tensor(labels[rows]), duals), seeds.child("dual head"))

    def _split(self, X: Any, labels: FloatArray, code: LabelCode, seeds: Streams) -> tuple[IntArray, Examples | None]:
        """Rows to train on, and validation samples: none, a share of the samples, or ``(X, y)`` as given."""
        everyone = np.arange(len(labels))
        if self.validation is None:
            return everyone, None
        if isinstance(self.validation, (int, float, np.number)):
            if not 0 < self.validation < 1:
                raise InputError.about(
                    "validation", self.validation, "is not a share; pass a number between 0 and 1, or (X, y)"
                )
            train, held = train_test_split(
                everyone, test_size=float(self.validation), random_state=seeds.seed("validation") % 2**32
            )
            return np.sort(train), Examples.of(X[held], labels[held], code.classes)
        if not isinstance(self.validation, (tuple, list)) or len(self.validation) != 2:
            raise InputError.about("validation", self.validation, "; pass a share, or (X, y)")
        other, given = self.validation
        encoded = np.asarray([code.encode(label) for label in given])
        return everyone, Examples.of(
            validate_data(self, other, reset=False, accept_sparse="csr"), encoded, code.classes
        )

    def _weighted(self, X: Any, rows: IntArray, sample_weight: Any) -> tuple[IntArray, FloatArray | None]:
        """The rows to train on, and how much each counts; those of weight 0 are left out."""
        if sample_weight is None:
            return rows, None
        given = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        rows = rows[given[rows] > 0]
        if not len(rows):
            raise InputError("sample_weight is 0 for every sample to train on; give some a positive weight")
        if not isinstance(resolve_objective(self.objective), (ERM, PDCL)):
            raise InputError(f"sample_weight does not go with objective={self.objective!r}; use 'erm' or 'pdcl'")
        weights = given[rows]
        # Networks have no penalty to weigh against, so only the proportions count.
        least = 1.0 if self._is_linear else weights[0]
        return rows, None if np.all(weights == least) else weights

    def _view(self, X: Any) -> View:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr")
        source = as_source(X)
        with Scratch() as scratch:
            return view(self._fitted, source, np.arange(len(source)), scratch)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ConstrainedClassifier(ClassifierMixin, _ConstrainedEstimator):  # type: ignore[misc]
    """A classifier trained so that each sample's loss stays below ε (PDCL), with the dual variable of every constraint.

    Args:
        hidden: widths of the MLP; () is a linear model.
        eps: ε: a number, one per sample, a mapping from class, ``"auto"``, or None for the paper's 0.2 nats.
        dual_lr: η_d; None for the objective's own (0.05; 0.5 for ``"resilient"``). lr: η_p of Adam. epochs, batch_size,
            patience: see `Training`.
        validation: None, a share of the training samples, or ``(X, y)``; used for early stopping only.
        objective: ``"pdcl"``, ``"feasibility"``, ``"resilient"``, ``"erm"`` or an objective.
        secondary_loss: ℓ' by name or as a function ``(outputs, targets) -> (B,)``; None means ℓ' = ℓ.
        dual_init: λ₀.
        classes: all classes, if y may not show every one.
        random_state, device, verbose: as usual.
        model: ``"mlp"``, or ``"linear"``: logistic (ridge) regression, solved to optimality in parameters and duals.
            The settings of training are for the MLP.
        C: strength of the linear model's penalty; None chooses it by cross-validation.
        dual_cap: upper bound on λ; None for the objective's own (none; 1 for ``"resilient"``).

    Attributes:
        duals_: λ of the samples trained on, which are ``training_rows_`` of X. sensitivities_: −λ/n, exact, for
            ``model="linear"``. report_: slacks, and how far λ is from optimal. classes_, n_features_in_.
    """

    _task: Task = "classification"

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        eps: Any = None,
        dual_lr: float | None = None,
        lr: float = 1e-3,
        epochs: int = 40,
        batch_size: int | None = None,
        patience: int | None = None,
        validation: Any = None,
        objective: str | Objective = "pdcl",
        secondary_loss: Any = None,
        dual_init: float = 0.0,
        classes: Any = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
        model: Literal["mlp", "linear"] = "mlp",
        C: float | None = None,
        dual_cap: float | None = None,
    ) -> None:
        super().__init__(
            hidden,
            eps,
            dual_lr,
            lr,
            epochs,
            batch_size,
            patience,
            validation,
            objective,
            secondary_loss,
            dual_init,
            random_state,
            device,
            verbose,
            model,
            C,
            dual_cap,
        )
        self.classes = classes

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstrainedClassifier:
        """`sample_weight` (n,): a sample of weight 2 counts as two, in the risk and in its constraint; 0 leaves it
        out."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        code = LabelCode("classification", self.classes_)
        if self.classes is not None:
            parsed = parse_labels(y, len(y), task="classification", classes=self.classes)
            code = parsed.code
            assert code.classes is not None
            self.classes_ = code.classes
        self._fit(X, np.asarray([code.encode(label) for label in y.tolist()]), code, sample_weight)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C), in the order of ``classes_``."""
        probabilities = self._view(X).probabilities
        assert probabilities is not None
        p = probabilities.double().numpy()
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> AnyArray:
        numbers = self._view(X).predictions.numpy()
        return np.asarray(self.classes_[numbers])


class ConstrainedRegressor(RegressorMixin, _ConstrainedEstimator):  # type: ignore[misc]
    """A regressor trained so that each sample's squared error stays below ε, in units of standardised targets.

    Parameters and attributes as for `ConstrainedClassifier`, without classes; ``eps=None`` is the paper's 0.1.
    """

    _task: Task = "regression"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ConstrainedRegressor:
        """`sample_weight` (n,): a sample of weight 2 counts as two, in the risk and in its constraint; 0 leaves it
        out."""
        X, y = validate_data(self, X, y, accept_sparse="csr", y_numeric=True)
        code = LabelCode("regression", None)
        labels = np.asarray([code.encode(target) for target in np.asarray(y, dtype=np.float64)])
        self._fit(X, labels, code, sample_weight)
        return self

    def predict(self, X: Any) -> FloatArray:
        return np.asarray(self._view(X).predictions.numpy())


def dual_parts(model: Any) -> tuple[FittedNetwork, FittedHead]:
    """What a fitted estimator predicts duals with: its network and its dual head."""
    if not isinstance(model, _ConstrainedEstimator):
        raise ModelError(
            f"model is a {type(model).__name__}; pass a fitted ConstrainedClassifier or ConstrainedRegressor"
        )
    check_is_fitted(model)
    if not isinstance(model._fitted, FittedNetwork):
        raise ModelError("model='linear' has no network to follow the gradient through; use model='mlp'")
    return model._fitted, model._dual_head()


def _print_progress(stage: str, done: int, total: int) -> None:
    if done == total or done % max(1, total // 10) == 0:
        print(f"{stage} {done}/{total}", flush=True)
