"""Boosted trees of LightGBM and XGBoost in files: the model as text in its library's own format, settings as values.

LightGBM writes its model text, XGBoost its JSON. A fitted estimator is kept as a `BoostedClassifier` or
`BoostedRegressor`, which holds that text and gives it to the library when it first predicts. The library is imported
only for models that its user chose, by one of the names in `KINDS`, and only if it is installed.

Settings are plain values of the names in `SETTINGS`. LightGBM passes all others on to its native code as one text, and
some of them read files or connect to other machines: those are refused, and so is a text that could hold several.
"""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import Pipeline

from ally.errors import DataError, MissingPart, ModelError
from ally.learning.pipelines import last_step
from ally.types import AnyArray, FloatArray

Library: TypeAlias = Literal["lightgbm", "xgboost"]
KINDS: Mapping[str, Library] = {
    "lightgbm.sklearn.LGBMClassifier": "lightgbm",
    "lightgbm.sklearn.LGBMRegressor": "lightgbm",
    "xgboost.sklearn.XGBClassifier": "xgboost",
    "xgboost.sklearn.XGBRegressor": "xgboost",
    "xgboost.sklearn.XGBRFClassifier": "xgboost",
    "xgboost.sklearn.XGBRFRegressor": "xgboost",
}
"""Estimators that are kept, by import path."""
_BOTH = """n_estimators max_depth learning_rate objective subsample colsample_bytree reg_alpha reg_lambda random_state
    importance_type min_child_weight scale_pos_weight max_bin max_delta_step monotone_constraints max_cat_threshold"""
SETTINGS: Mapping[Library, frozenset[str]] = {
    "lightgbm": frozenset(
        f"""{_BOTH} boosting_type num_leaves subsample_for_bin class_weight min_split_gain min_child_samples
        subsample_freq bagging_fraction bagging_freq feature_fraction feature_fraction_bynode lambda_l1 lambda_l2
        min_data_in_leaf min_sum_hessian_in_leaf min_gain_to_split min_data_in_bin is_unbalance extra_trees path_smooth
        deterministic force_col_wise force_row_wise boost_from_average seed alpha drop_rate skip_drop max_drop
        cat_smooth cat_l2 min_data_per_group""".split()
    ),
    "xgboost": frozenset(
        f"""{_BOTH} base_score booster colsample_bylevel colsample_bynode device enable_categorical eval_metric gamma
        grow_policy interaction_constraints max_cat_to_onehot max_leaves missing multi_strategy num_parallel_tree
        sampling_method tree_method validate_parameters""".split()
    ),
}
"""What may be set in a file. How many processes work and how much is printed is said elsewhere (`NEUTRAL`)."""
NEUTRAL = ("n_jobs", "verbose", "verbosity", "silent")
PROBABILITIES = ("binary", "multiclass", "multiclassova", "binary:logistic", "multi:softprob")
"""Objectives of classifiers whose native prediction is a probability."""
WORD = re.compile(r"[\w.:@+-]{1,60}", re.ASCII)
"""A text that is one value to native code."""


def import_library(library: Library) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingPart(f"the model is one of {library}, which is not installed: pip install {library}") from error


def find_path(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"


class _BoostedTrees(BaseEstimator):  # type: ignore[misc]
    """Fitted trees as text.

    Args:
        library: which library reads the text.
        text: (bytes,) uint8.
        n_features: columns that it reads.
        missing: the value that XGBoost takes for a missing one.
    """

    def __init__(self, library: Library, text: AnyArray, n_features: int, missing: float = float("nan")) -> None:
        self.library = library
        self.text = text
        self.n_features = n_features
        self.missing = missing

    @property
    def n_features_in_(self) -> int:
        return self.n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any) -> Any:
        raise ModelError(f"these trees are read from a file; train the estimator of {self.library} that they came from")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        """Without what the library made of the text."""
        return {name: value for name, value in vars(self).items() if name != "_booster"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)

    def _predict_natively(self, X: Any) -> AnyArray:
        library = import_library(self.library)
        if "_booster" not in vars(self):
            content = self.text.tobytes()
            if self.library == "lightgbm":
                self._booster = library.Booster(model_str=content.decode())
            else:
                self._booster = library.Booster()
                self._booster.load_model(bytearray(content))
        if self.library == "xgboost":
            X = library.DMatrix(X, missing=self.missing, enable_categorical=True)
        return np.asarray(self._booster.predict(X))


class BoostedRegressor(RegressorMixin, _BoostedTrees):  # type: ignore[misc]
    def predict(self, X: Any) -> AnyArray:
        return self._predict_natively(X)


class BoostedClassifier(ClassifierMixin, _BoostedTrees):  # type: ignore[misc]
    """`classes` (C,) are the classes as the estimator was given them."""

    def __init__(
        self,
        library: Library,
        text: AnyArray,
        n_features: int,
        missing: float = float("nan"),
        classes: AnyArray = np.arange(2),
    ) -> None:
        super().__init__(library, text, n_features, missing)
        self.classes = classes

    @property
    def classes_(self) -> AnyArray:
        return self.classes

    def predict_proba(self, X: Any) -> FloatArray:
        p = self._predict_natively(X)
        return np.stack([1.0 - p, p], axis=1) if p.ndim == 1 else p

    def predict(self, X: Any) -> AnyArray:
        return np.asarray(self.classes[self.predict_proba(X).argmax(axis=1)])


def exchange_trees(estimator: Any) -> Any:
    """The estimator, or its last step in a pipeline, as text if it is one of `KINDS`; as it is otherwise."""
    last = last_step(estimator)
    if find_path(last) not in KINDS:
        return estimator
    kept = _as_text(last)
    if last is estimator:
        return kept
    exchanged: Pipeline = copy.copy(estimator)
    exchanged.steps = [*estimator.steps[:-1], (estimator.steps[-1][0], kept)]
    return exchanged


def _as_text(fitted: Any) -> Any:
    library = KINDS[find_path(fitted)]
    objective = fitted.objective_ if library == "lightgbm" else fitted.objective
    if library == "lightgbm":
        text = fitted.booster_.model_to_string().encode()
    else:
        text = bytes(fitted.get_booster().save_raw("json"))
    missing = float(getattr(fitted, "missing", np.nan))
    common = (library, np.frombuffer(text, np.uint8), int(fitted.n_features_in_), missing)
    classes = getattr(fitted, "classes_", None)
    if callable(objective) or (classes is not None and objective not in PROBABILITIES):
        raise ModelError(
            f"{type(fitted).__name__} has the objective {objective!r:.60}, whose predictions its library alone does "
            "not give, so it is not kept in a file; leave the objective at its default"
        )
    return BoostedRegressor(*common) if classes is None else BoostedClassifier(*common, classes=np.asarray(classes))


def strip_to_settings(unfitted: Any) -> None:
    """Leaves nothing but settings in an unfitted estimator of `KINDS`, and in those that it holds."""
    for each in (unfitted, *unfitted.get_params(deep=True).values()):
        if find_path(each) in KINDS:
            settings = each.get_params(deep=False)
            vars(each).clear()
            vars(each).update(settings)


def rebuild_settings(path: str, state: Any) -> Any:
    """An unfitted estimator of `KINDS` from the settings in a file, each checked."""
    library = KINDS[path]
    kind = getattr(import_library(library), path.rpartition(".")[2])
    if not isinstance(state, dict):
        raise DataError(f"the settings of {kind.__name__} are missing in the file; choose the model again")
    usual = kind().get_params()
    settings = {}
    for name, value in state.items():
        if name in NEUTRAL or value is None or (name in usual and _is_same(value, usual[name])):
            continue
        if name not in SETTINGS[library]:
            raise DataError(f"{kind.__name__} has {name}={value!r:.60}, a setting that is not kept in files")
        if not _is_plain(value, name):
            raise DataError(f"{kind.__name__} has {name}={value!r:.60}, which is not allowed there")
        settings[name] = value
    quiet = {name: state[name] for name in NEUTRAL if name != "n_jobs" and state.get(name) in (-1, 0, False)}
    return kind(**settings, **quiet)


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other or (value != value and other != other))


def _is_plain(value: Any, name: str) -> bool:
    """A number, a word, or a list of them; weights of classes by name."""
    if isinstance(value, str):
        return WORD.fullmatch(value) is not None
    if isinstance(value, (list, tuple)):
        return all(_is_plain(each, "") for each in value)
    if isinstance(value, dict):
        # Weights are looked up in Python; what else comes by name would be passed on.
        return name == "class_weight" and all(isinstance(weight, (int, float)) for weight in value.values())
    return isinstance(value, (bool, int, float, np.number, np.bool_))
