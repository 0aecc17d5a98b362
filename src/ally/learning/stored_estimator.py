"""Fitted estimators as bytes, by skops: nothing is pickled, and only types on a list are ever made again.

skops trusts the plain types of numpy, scipy and scikit-learn's public classes by itself. `TRUSTED` adds inner types of
scikit-learn that its estimators are made of. Classes of the user's own are trusted if they come from the module that
the user named as the model (``"module:builder"``).
"""

from __future__ import annotations

import base64
import zipfile
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from ally.errors import DataError, ModelError
from ally.learning.fitted_estimator import FittedEstimator, called, first_steps, last_step
from ally.learning.geometry import Geometry, Leaves, Nowhere, Standardised, Transformed
from ally.learning.learner import FitReport
from ally.learning.losses import TargetScale
from ally.names import KEPT_MODEL
from ally.sources import Scaler

TRUSTED = frozenset(
    {
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.MinkowskiDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
    }
)


def packed(fitted: FittedEstimator) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """As `Fitted.packed`."""
    facts: dict[str, Any] = {
        "kind": "estimator",
        "own": None,
        "columns": list(fitted.columns),
        "target": [fitted.scale.mean, fitted.scale.std],
        "shape": None if fitted.shape is None else list(fitted.shape),
    }
    tensors = {"estimator": _bytes(fitted.estimator, fitted.own)}
    if _untrusted(tensors["estimator"].numpy().tobytes(), None):
        facts["own"] = fitted.own
    geometry = fitted.geometry
    if isinstance(geometry, Standardised):
        facts["geometry"] = "inputs"
        if geometry.scaler is not None:
            tensors["input.mean"] = torch.from_numpy(np.ascontiguousarray(geometry.scaler.mean))
            tensors["input.scale"] = torch.from_numpy(np.ascontiguousarray(geometry.scaler.scale))
    elif isinstance(geometry, Transformed):
        facts["geometry"] = "transformed"
        facts["projected"] = None if geometry.projection is None else len(geometry.projection)
        tensors["geometry"] = _bytes(geometry.steps, fitted.own)
    else:
        facts["geometry"] = "leaves" if isinstance(geometry, Leaves) else "nowhere"
    return facts, tensors


def rebuilt(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedEstimator:
    """A fitted estimator from what `packed` gave."""
    own = facts.get("own")
    estimator = _read(tensors["estimator"], own)
    geometry: Geometry
    if facts["geometry"] == "leaves":
        geometry = Leaves(last_step(estimator), first_steps(estimator))
    elif facts["geometry"] == "transformed":
        geometry = Transformed.projected(_read(tensors["geometry"], own), facts["projected"])
    elif facts["geometry"] == "nowhere":
        geometry = Nowhere()
    else:
        means = [tensors[name].numpy() for name in ("input.mean", "input.scale") if name in tensors]
        geometry = Standardised(Scaler(*means) if means else None)
    return FittedEstimator(
        estimator,
        facts["task"],
        classes,
        tuple(int(column) for column in facts["columns"]),
        TargetScale(*map(float, facts["target"])),
        report,
        geometry=geometry,
        shape=None if facts["shape"] is None else tuple(int(side) for side in facts["shape"]),
        own=own,
    )


def as_text(estimator: Any) -> str:
    """An estimator, unfitted, as a text that settings can keep and `resolve_learner` takes for a model."""
    data = _bytes(clone(estimator), None).numpy().tobytes()
    return KEPT_MODEL + base64.b64encode(data).decode("ascii")


def from_text(text: str) -> Any:
    """The estimator that `as_text` wrote."""
    try:
        data = base64.b64decode(text.removeprefix(KEPT_MODEL), validate=True)
    except ValueError as error:
        raise DataError(f"the estimator that was kept is damaged ({error}); choose the model again") from error
    return _read(torch.frombuffer(bytearray(data), dtype=torch.uint8), None)


def _bytes(made: Any, own: str | None) -> torch.Tensor:
    """(size,) uint8."""
    import skops.io

    try:
        data = skops.io.dumps(made, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    except Exception as error:
        raise ModelError(
            f"{called(made)} cannot be written to a file without pickling ({error}); use another model, or one without "
            "functions of your own in its settings"
        ) from error
    odd = _untrusted(data, own)
    if odd:
        raise ModelError(
            f"{called(made)} holds {', '.join(odd)}, which is not a trusted type, so it is not written; give your "
            "model as 'module:builder', where the module is that of the type"
        )
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _read(tensor: torch.Tensor, own: str | None) -> Any:
    import skops.io

    data = tensor.numpy().tobytes()
    try:
        odd = _untrusted(data, own)
    except Exception as error:
        raise DataError(f"the estimator in the file cannot be read ({error}); train it again") from error
    if odd:
        raise DataError(
            f"the model holds {', '.join(odd)}, which is not a trusted type, so it is not read; train it again"
        )
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def _untrusted(data: bytes, own: str | None) -> list[str]:
    """Types in the bytes that are neither on the list nor of the user's own module."""
    import skops.io

    root = None if own is None else own.split(":")[0].split(".")[0]
    return [
        name
        for name in skops.io.get_untrusted_types(data=data)
        if name not in TRUSTED and (root is None or name.split(".")[0] != root)
    ]
