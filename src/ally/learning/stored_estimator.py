"""Fitted estimators as bytes, by skops: nothing is pickled, and only listed types are ever rebuilt.

skops trusts the plain types of numpy, scipy and scikit-learn's public classes by itself. `TRUSTED` adds internal
scikit-learn types that its estimators contain. Classes of the user's own are trusted if they come from the module that
the user named as the model (``"module:builder"``).
"""

from __future__ import annotations

import base64
import zipfile
from typing import Any

import torch
from sklearn.base import clone

from ally.catalogue_names import KEPT_MODEL
from ally.errors import DataError, ModelError
from ally.learning.pipelines import called

TRUSTED = frozenset(
    {
        "ally.learning.kernel.GaussianProcess",
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


def as_text(estimator: Any) -> str:
    """An unfitted estimator as text, for settings; `resolve_learner` accepts it as a model."""
    data = as_bytes(clone(estimator), None).numpy().tobytes()
    return KEPT_MODEL + base64.b64encode(data).decode("ascii")


def from_text(text: str) -> Any:
    """The estimator that `as_text` wrote."""
    try:
        data = base64.b64decode(text.removeprefix(KEPT_MODEL), validate=True)
    except ValueError as error:
        raise DataError(f"the stored estimator is damaged ({error}); choose the model again") from error
    return from_bytes(torch.frombuffer(bytearray(data), dtype=torch.uint8), None)


def as_bytes(made: Any, own: str | None) -> torch.Tensor:
    """(size,) uint8 of an estimator, or of steps of a pipeline; `own` as in `untrusted`."""
    import skops.io

    try:
        data = skops.io.dumps(made, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    except Exception as error:
        raise ModelError(
            f"{called(made)} cannot be written to a file without pickling ({error}); use another model, or one without "
            "functions of your own in its settings"
        ) from error
    written = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    odd = untrusted(written, own)
    if odd:
        raise ModelError(
            f"{called(made)} holds {', '.join(odd)}, which is not a trusted type, so it is not written; give your "
            "model as 'module:builder', where the module is that of the type"
        )
    return written


def from_bytes(tensor: torch.Tensor, own: str | None) -> Any:
    """What `as_bytes` wrote."""
    import skops.io

    try:
        odd = untrusted(tensor, own)
    except Exception as error:
        raise DataError(f"the estimator in the file cannot be read ({error}); train it again") from error
    if odd:
        raise DataError(
            f"the model holds {', '.join(odd)}, which is not a trusted type, so it is not read; train it again"
        )
    data = tensor.numpy().tobytes()
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def untrusted(tensor: torch.Tensor, own: str | None) -> list[str]:
    """Types in the bytes that are neither listed nor from the module of `own`, the user's ``module:builder``."""
    import skops.io

    data = tensor.numpy().tobytes()
    root = None if own is None else own.split(":")[0].split(".")[0]
    return [
        name
        for name in skops.io.get_untrusted_types(data=data)
        if name not in TRUSTED and (root is None or name.split(".")[0] != root)
    ]
