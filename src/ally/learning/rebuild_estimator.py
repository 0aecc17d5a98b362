"""Estimators out of a file that this user's `ally` did not write: made anew from values that are checked.

Nothing is restored: each estimator is made by its own class with checked settings, and gets only the checked values
that it predicts with. That is known for ally's own learners and the trees of LightGBM and XGBoost. Any other estimator
is refused, and trained again.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.gaussian_process import kernels
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from ally.errors import DataError
from ally.learning.archive import StoredObject
from ally.learning.boosted_trees import KINDS, BoostedClassifier, BoostedRegressor, rebuild_settings
from ally.learning.kernel import GaussianProcess
from ally.learning.parameters import read_parameters, rebuild_value
from ally.learning.rebuild_boosted import rebuild_classifier, rebuild_regressor
from ally.learning.rebuild_trees import get_array, get_count, get_state, rebuild_predictor, rebuild_tree
from ally.types import AnyArray

FORESTS = {
    ExtraTreesClassifier: ExtraTreeClassifier,
    ExtraTreesRegressor: ExtraTreeRegressor,
    RandomForestClassifier: DecisionTreeClassifier,
    RandomForestRegressor: DecisionTreeRegressor,
}
"""Forests, and what they hold."""
BOOSTED = (GradientBoostingClassifier, GradientBoostingRegressor)
BY_HISTOGRAM = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
MOST_ROWS = 20_000
"""Of a Gaussian process: a block of samples is compared with all of them at once."""
CLASSIFIERS = (ExtraTreesClassifier, RandomForestClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier)


def rebuild_unfitted(record: Any) -> Any:
    """An estimator of scikit-learn, or boosted trees of LightGBM or XGBoost, as before any training."""
    if isinstance(record, StoredObject) and record.path in KINDS:
        return rebuild_settings(record.path, record.state)
    kinds = _list_estimators()
    if not isinstance(record, StoredObject) or record.path not in kinds:
        met = record.path if isinstance(record, StoredObject) else type(record).__name__
        raise DataError(
            f"the stored estimator holds {met!r:.200}, which is no estimator of scikit-learn; choose the model again, "
            "or train it again"
        )
    kind = kinds[record.path]
    return kind(**read_parameters(kind, {} if record.state is None else record.state, rebuild_unfitted))


@cache
def _list_estimators() -> Mapping[str, type]:
    """All that may be kept unfitted, by import path."""
    from sklearn.utils import all_estimators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listed = [kind for _, kind in all_estimators()]
    listed += [kernels.ConstantKernel, kernels.Product, kernels.RBF, GaussianProcess]
    return {_path(kind): kind for kind in listed}


def rebuild_fitted(record: Any, own: str | None = None) -> Any:
    """A fitted estimator; `own` is the import path ``module:builder`` of a model whose module its user trusts."""
    path = record.path if isinstance(record, StoredObject) else type(record).__name__
    if path in _REBUILDERS:
        return _REBUILDERS[path](record)
    module, _, name = path.rpartition(".")
    if own is not None and module == own.partition(":")[0]:
        return _rebuild_own(record, module, name, own)
    raise DataError(
        f"the model holds {path!r:.200}, which was not written by you on this machine and cannot be checked; train it "
        "again from its labels (ally retrain)"
    )


def _rebuild_forest(kind: Any) -> Callable[[StoredObject], Any]:
    def rebuild(record: StoredObject) -> Any:
        estimator, state = _make(kind, record)
        width, classes = _set_inputs(estimator, state), _set_classes(estimator, state)
        estimator.n_outputs_ = 1
        trees = state.get("estimators_")
        if not isinstance(trees, list) or not trees:
            raise DataError("the forest in the file has no trees; train it again")
        estimator.estimators_ = [_rebuild_member(FORESTS[kind], tree, width, classes) for tree in trees]
        estimator.estimator_ = FORESTS[kind]()
        return estimator

    return rebuild


def _rebuild_member(kind: Any, record: Any, width: int, classes: int) -> Any:
    """One tree of an ensemble; it counts the classes of the whole."""
    state = get_state(record, _path(kind))
    tree = kind(**read_parameters(kind, state, rebuild_unfitted))
    tree.n_features_in_, tree.n_outputs_, tree.max_features_ = width, 1, width
    if hasattr(kind, "predict_proba"):
        tree.classes_, tree.n_classes_ = np.arange(classes, dtype=np.float64), np.int64(classes)
    tree.tree_ = rebuild_tree(state.get("tree_"), width, classes)
    return tree


def _rebuild_boosted(kind: Any) -> Callable[[StoredObject], Any]:
    def rebuild(record: StoredObject) -> Any:
        estimator, state = _make(kind, record)
        width, classes = _set_inputs(estimator, state), _set_classes(estimator, state)
        if estimator.init is not None:
            raise DataError("the boosted trees in the file begin with a model of their own; train them again")
        at_once = classes if classes > 2 else 1
        stages = state.get("estimators_")
        if not isinstance(stages, np.ndarray) or stages.ndim != 2 or stages.shape[1] != at_once or not len(stages):
            raise DataError(f"the boosted trees in the file are not {at_once} at a time; train them again")
        estimator.n_trees_per_iteration_, estimator.max_features_ = at_once, width
        estimator.n_estimators_ = len(stages)
        estimator.estimators_ = np.empty(stages.shape, dtype=object)
        for place, tree in np.ndenumerate(stages):
            estimator.estimators_[place] = _rebuild_member(DecisionTreeRegressor, tree, width, 1)
        estimator._loss = estimator._get_loss(sample_weight=None)
        estimator.init_ = (
            _rebuild_prior(state.get("init_"), width, classes)
            if kind in CLASSIFIERS
            else _rebuild_constant(state.get("init_"), width)
        )
        return estimator

    return rebuild


def _rebuild_prior(record: Any, width: int, classes: int) -> DummyClassifier:
    prior = get_array(get_state(record, _path(DummyClassifier)), "class_prior_")
    _check_numbers(prior, (classes,), "class_prior_")
    start = DummyClassifier(strategy="prior")
    start._strategy, start.n_features_in_, start.n_outputs_, start.sparse_output_ = "prior", width, 1, False
    start.classes_, start.n_classes_, start.class_prior_ = np.arange(classes), classes, prior
    return start


def _rebuild_constant(record: Any, width: int) -> DummyRegressor:
    constant = get_array(get_state(record, _path(DummyRegressor)), "constant_")
    _check_numbers(constant, (1, 1), "constant_")
    start = DummyRegressor()
    start.n_features_in_, start.n_outputs_, start.constant_ = width, 1, constant
    return start


def _rebuild_histogram(kind: Any) -> Callable[[StoredObject], Any]:
    def rebuild(record: StoredObject) -> Any:
        estimator, state = _make(kind, record)
        width, classes = _set_inputs(estimator, state), _set_classes(estimator, state)
        if state.get("_preprocessor") is not None:
            raise DataError("the boosted trees in the file know categories, which are not checked; train them again")
        at_once = classes if classes > 2 else 1
        stages, start = state.get("_predictors"), get_array(state, "_baseline_prediction")
        _check_numbers(start, (1, at_once), "_baseline_prediction")
        if not isinstance(stages, list) or not all(isinstance(one, list) and len(one) == at_once for one in stages):
            raise DataError(f"the boosted trees in the file are not {at_once} at a time; train them again")
        estimator.n_trees_per_iteration_, estimator._n_features = at_once, width
        estimator.is_categorical_ = estimator._preprocessor = estimator._is_categorical_remapped = None
        estimator._predictors = [[rebuild_predictor(tree, width) for tree in stage] for stage in stages]
        estimator._baseline_prediction = start
        estimator._bin_mapper = _BinMapper()
        estimator._bin_mapper.is_categorical_ = np.zeros(width, dtype=np.uint8)
        estimator._bin_mapper.bin_thresholds_ = []
        estimator._loss = estimator._get_loss(sample_weight=None)
        return estimator

    return rebuild


def _rebuild_process(record: StoredObject) -> Any:
    estimator, state = _make(GaussianProcess, record)
    width = _set_inputs(estimator, state)
    rows = np.atleast_1d(get_array(state, "rows_"))
    _check_numbers(rows, (len(rows), width), "rows_")
    if len(rows) > MOST_ROWS:
        raise DataError(f"the Gaussian process in the file has {len(rows)} rows, and {MOST_ROWS} is the most")
    for name, shape in (("mean_", (width,)), ("scale_", (width,)), ("dual_coef_", (len(rows),))):
        _check_numbers(get_array(state, name), shape, name)
        setattr(estimator, name, state[name])
    estimator.rows_ = rows
    for name in ("offset_", "length_", "noise_"):
        value = np.asarray(state.get(name))
        _check_numbers(value, (), name)
        setattr(estimator, name, float(value))
    if estimator.length_ <= 0 or (estimator.scale_ <= 0).any():
        raise DataError("the Gaussian process in the file has a length of 0; train it again")
    return estimator


def _rebuild_own(record: StoredObject, module: str, name: str, own: str) -> Any:
    """An estimator of a class in the module that its user trusts, with plain values and what can be checked."""
    kind = vars(importlib.import_module(module)).get(name)
    if not isinstance(kind, type) or kind.__module__ != module:
        raise DataError(f"the model holds {record.path!r:.200}, which {module} does not define; train it again")
    settings = read_parameters(kind, record.state, partial(rebuild_fitted, own=own))
    others = {key: value for key, value in record.state.items() if key not in settings}
    estimator: Any = object.__new__(kind)
    vars(estimator).update(settings | rebuild_value(others, partial(rebuild_fitted, own=own)))
    return estimator


def _make(kind: Any, record: StoredObject) -> tuple[Any, dict[str, Any]]:
    """An estimator with the settings of a record, not yet fitted, and what else the record says."""
    state = get_state(record, _path(kind))
    return kind(**read_parameters(kind, state, rebuild_unfitted)), state


def _set_inputs(estimator: Any, state: dict[str, Any]) -> int:
    """Number and names of the columns; returns the number."""
    estimator.n_features_in_ = get_count(state, "n_features_in_")
    names = state.get("feature_names_in_")
    if names is not None:
        if not isinstance(names, np.ndarray) or names.shape != (estimator.n_features_in_,):
            raise DataError("the model in the file has other names than columns; train it again")
        if not all(isinstance(name, str) for name in names.tolist()):
            raise DataError("the model in the file has columns whose names are no text; train it again")
        estimator.feature_names_in_ = names
    return int(estimator.n_features_in_)


def _set_classes(estimator: Any, state: dict[str, Any]) -> int:
    """The classes of a classifier; returns how many numbers each leaf holds."""
    if not isinstance(estimator, CLASSIFIERS):
        return 1
    classes = get_array(state, "classes_")
    if classes.ndim != 1 or not len(classes) or classes.dtype.kind not in "Uiubf":
        raise DataError(f"the model in the file has classes of shape {classes.shape}; train it again")
    if len(classes) < 2 and not isinstance(estimator, tuple(FORESTS)):
        raise DataError("the boosted trees in the file know one class; train them again")
    estimator.classes_, estimator.n_classes_ = classes, len(classes)
    return len(classes)


def _check_numbers(values: AnyArray, shape: tuple[int, ...], name: str) -> None:
    if values.dtype.kind not in "fiu" or values.shape != shape or not np.isfinite(values).all():
        raise DataError(
            f"the model in the file has {name} of shape {values.shape}, not {shape} numbers; train it again"
        )


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


_REBUILDERS: Mapping[str, Callable[[StoredObject], Any]] = {
    **{_path(kind): _rebuild_forest(kind) for kind in FORESTS},
    **{_path(kind): _rebuild_boosted(kind) for kind in BOOSTED},
    **{_path(kind): _rebuild_histogram(kind) for kind in BY_HISTOGRAM},
    _path(GaussianProcess): _rebuild_process,
    _path(BoostedClassifier): rebuild_classifier,
    _path(BoostedRegressor): rebuild_regressor,
}
