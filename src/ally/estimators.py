"""Constrained learning as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from ally.errors import InputError, LabelError
from ally.execution.memory import Scratch
from ally.learning.dual_head import RidgeHead
from ally.learning.fit import Fit
from ally.learning.head_features import Labelled
from ally.learning.learner import Learner
from ally.learning.objectives import PDCL, Objective, resolve_objective
from ally.learning.snapshot import View, view
from ally.learning.training import Examples, Training
from ally.models import MLP, ModelBuilder
from ally.rng import streams
from ally.sources import Standardized, as_source, standardize
from ally.types import AnyArray, FloatArray, Task


class _ConstrainedEstimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: parameters, training, embeddings and duals."""

    _task: Task

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        eps: Any = None,
        dual_lr: float = 0.05,
        lr: float = 1e-3,
        epochs: int = 40,
        batch_size: int | None = None,
        patience: int = 10,
        validation: Any = None,
        objective: str | Objective = "pdcl",
        secondary_loss: Any = None,
        dual_init: float = 0.0,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
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

    def embed(self, X: Any) -> FloatArray:
        """f_φ(x), the backbone's output: (n, d)."""
        return np.asarray(self._view(X).embeddings.numpy())

    def predict_duals(self, X: Any) -> FloatArray:
        """λ ≥ 0 that samples would have if they were labelled, predicted from those of the training samples."""
        seen = self._view(X)
        if self._head is None:
            raise InputError(f"objective={self.objective!r} has no dual variables; use 'pdcl' or 'feasibility'")
        return np.asarray(self._head.duals(seen).numpy())

    def training(self) -> Training:
        """The trainer's settings as one value."""
        return Training(self.lr, epochs=self.epochs, batch_size=self.batch_size, patience=self.patience, device=self.device)

    def network(self) -> ModelBuilder:
        """Builds the network."""
        if any(not isinstance(width, (int, np.integer)) or width < 1 for width in self.hidden):
            raise InputError(f"hidden={self.hidden!r} must list positive widths; () is a linear model")
        return partial(MLP, hidden=tuple(self.hidden))

    def _objective(self) -> Objective:
        """The objective, with the estimator's eps, dual_lr, dual_init and secondary_loss where it was given by name."""
        objective = resolve_objective(self.objective)
        if isinstance(self.objective, str) and isinstance(objective, PDCL):
            return replace(objective, eps=self.eps, dual_lr=self.dual_lr, dual_init=self.dual_init, secondary_loss=self.secondary_loss)
        return objective

    def _fit(self, X: Any, y: FloatArray, classes: tuple[Any, ...] | None) -> None:
        seeds = streams(self.random_state)
        examples, held_out = self._split(X, y, classes)
        source = as_source(examples.x)
        self._scaler = standardize(source, np.arange(len(source)))
        learner = Learner(self.network(), self._task, classes, self.training())
        self._fitted: Fit = learner.fit(
            Examples(self._scaler.read(np.arange(len(source))), examples.y),
            self._objective(),
            seeds.child("training"),
            validation=None if held_out is None else Examples(self._scaled(held_out.x), held_out.y),
            progress=_print_progress if self.verbose else None,
        )
        self.report_ = self._fitted.report
        duals = self._fitted.duals.get("labelled")
        self._head = None
        if duals is not None:
            self.duals_ = duals.cpu().numpy()
            with Scratch() as scratch:
                seen = view(self._fitted, self._scaler, np.arange(len(source)), scratch)
            labelled = Labelled(seen, torch.tensor(examples.y), duals)
            self._head = RidgeHead().fit(labelled, seeds.child("dual head"))

    def _split(self, X: Any, y: FloatArray, classes: tuple[Any, ...] | None) -> tuple[Examples, Examples | None]:
        """Training and validation samples: none, a share of the training samples, or ``(X, y)`` as given."""
        if self.validation is None:
            return Examples(X, y), None
        if isinstance(self.validation, (int, float)):
            if not 0 < self.validation < 1:
                raise InputError(f"validation={self.validation} is not a share; pass a number between 0 and 1, or (X, y)")
            seed = streams(self.random_state).seed("validation") % 2**32
            train, held = train_test_split(np.arange(len(y)), test_size=self.validation, random_state=seed)
            return Examples(X[np.sort(train)], y[np.sort(train)]), Examples(X[held], y[held])
        other, labels = self.validation
        encoded = np.asarray(labels, dtype=np.float64) if classes is None else _encode(np.asarray(labels), np.asarray(classes))
        return Examples(X, y), Examples(validate_data(self, other, reset=False, accept_sparse="csr"), encoded)

    def _scaled(self, X: Any) -> AnyArray:
        source = self._scaler.of(as_source(X))
        return source.read(np.arange(len(source)))

    def _view(self, X: Any) -> View:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr")
        source: Standardized = self._scaler.of(as_source(X))
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
        dual_lr: η_d. lr: η_p of Adam. epochs, batch_size, patience: see `Training`.
        validation: None, a share of the training samples, or ``(X, y)``; used for early stopping only.
        objective: ``"pdcl"``, ``"feasibility"``, ``"erm"`` or an objective.
        secondary_loss: ℓ' by name or as a function ``(outputs, targets) -> (B,)``; None means ℓ' = ℓ.
        dual_init: λ₀.
        classes: all classes, if y may not show every one.
        random_state, device, verbose: as usual.

    Attributes:
        duals_: λ of the training samples. classes_, n_features_in_, report_.
    """

    _task: Task = "classification"

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        eps: Any = None,
        dual_lr: float = 0.05,
        lr: float = 1e-3,
        epochs: int = 40,
        batch_size: int | None = None,
        patience: int = 10,
        validation: Any = None,
        objective: str | Objective = "pdcl",
        secondary_loss: Any = None,
        dual_init: float = 0.0,
        classes: Any = None,
        random_state: Any = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        super().__init__(hidden, eps, dual_lr, lr, epochs, batch_size, patience, validation, objective, secondary_loss, dual_init,
                         random_state, device, verbose)  # fmt: skip
        self.classes = classes

    def fit(self, X: Any, y: Any) -> ConstrainedClassifier:
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_ = unique_labels(y) if self.classes is None else np.asarray(self.classes)
        self._fit(X, _encode(y, self.classes_), tuple(self.classes_.tolist()))
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

    def fit(self, X: Any, y: Any) -> ConstrainedRegressor:
        X, y = validate_data(self, X, y, accept_sparse="csr", y_numeric=True)
        self._fit(X, np.asarray(y, dtype=np.float64), None)
        return self

    def predict(self, X: Any) -> FloatArray:
        return np.asarray(self._view(X).predictions.numpy())


def network_of(model: Any) -> tuple[Any, Training | None]:
    """The network and the training settings of an estimator; any other model as it is."""
    if isinstance(model, _ConstrainedEstimator):
        return model.network(), model.training()
    return model, None


def _encode(y: AnyArray, classes: AnyArray) -> FloatArray:
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in numbers]
    if unknown:
        raise LabelError(f"label {unknown[0]!r} is not one of the classes {classes.tolist()!r}; declare it in `classes`")
    return np.asarray([numbers[label] for label in y.tolist()], dtype=np.float64)


def _print_progress(stage: str, done: int, total: int) -> None:
    if done == total or done % max(1, total // 10) == 0:
        print(f"{stage} {done}/{total}", flush=True)
