"""Fitted estimators as bytes, by skops: nothing is pickled, and only listed types are ever rebuilt.

Bytes that this user's `ally` wrote on this machine carry a signature, made with a key in the state folder. Skops reads
them back, whatever estimator of scikit-learn they hold. Bytes from anywhere else are never given to skops:
`rebuild_fitted` makes ally's own learners anew from them, value by checked value, and refuses everything else.

skops trusts the plain types of numpy, scipy and scikit-learn's public classes by itself. `TRUSTED` adds internal
scikit-learn types that its estimators contain. Classes of the user's own are trusted if they come from the very module
that the user named as the model (``"module:builder"``).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import zipfile
from collections.abc import Collection, Mapping
from typing import Any

import torch
from sklearn.base import clone

from ally.catalogue_names import KEPT_MODEL
from ally.errors import DataError, ModelError, StateUnavailable
from ally.learning.archive import read_archive
from ally.learning.boosted_trees import KINDS, exchange_trees, strip_to_settings
from ally.learning.model_header import FORMS
from ally.learning.other_estimators import holds_skorch
from ally.learning.pipelines import called
from ally.learning.rebuild_estimator import rebuild_fitted, rebuild_unfitted
from ally.state import load_key

TRUSTED = frozenset(
    {
        "ally.learning.boosted_trees.BoostedClassifier",
        "ally.learning.boosted_trees.BoostedRegressor",
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


KEY = "models.key"
_PROCESS_KEY = secrets.token_bytes(32)
"""Where the state folder cannot be used, a process reads back what it wrote itself."""


def as_text(estimator: Any) -> str:
    """An unfitted estimator as text, for settings; `resolve_learner` accepts it as a model."""
    unfitted = clone(estimator)
    _refuse_skorch(unfitted)
    strip_to_settings(unfitted)
    text = KEPT_MODEL + base64.b64encode(_write_archive(unfitted, None, KINDS).numpy().tobytes()).decode("ascii")
    try:
        from_text(text)
    except DataError as error:
        raise ModelError(
            f"{called(unfitted)} cannot be kept in a file ({error}); give your model as 'module:builder'"
        ) from error
    return text


def from_text(text: str) -> Any:
    """The estimator that `as_text` wrote."""
    try:
        data = base64.b64decode(text.removeprefix(KEPT_MODEL), validate=True)
    except ValueError as error:
        raise DataError(f"the stored estimator is damaged ({error}); choose the model again") from error
    return rebuild_unfitted(read_archive(data))


def as_bytes(made: Any, own: str | None) -> torch.Tensor:
    """(size,) uint8 of a fitted estimator, or of steps of a pipeline; `own` as in `untrusted`."""
    _refuse_skorch(made)
    return _write_archive(exchange_trees(made), own)


def _refuse_skorch(estimator: Any) -> None:
    if holds_skorch(estimator):
        raise ModelError(
            f"{called(estimator)} is a network of skorch, which only its own code can rebuild, so it is not kept in a "
            "file; give the network itself as 'module:builder', a function (shape, outputs) that returns its module"
        )


def _write_archive(made: Any, own: str | None, also: Collection[str] = ()) -> torch.Tensor:
    """(size,) uint8; the types in `also` may be in it too."""
    import skops.io

    try:
        data = skops.io.dumps(made, compression=zipfile.ZIP_DEFLATED, compresslevel=1)
    except Exception as error:
        raise ModelError(
            f"{called(made)} cannot be written to a file without pickling ({error}); use another model, or one without "
            "functions of your own in its settings"
        ) from error
    written = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    odd = [name for name in untrusted(written, own) if name not in also]
    if odd:
        raise ModelError(
            f"{called(made)} holds {', '.join(odd)}, which is not a trusted type, so it is not written; give your "
            "model as 'module:builder', where the module is that of the type"
        )
    return written


def from_bytes(tensor: torch.Tensor, own: str | None, *, mine: bool) -> Any:
    """What `as_bytes` wrote: by skops if this user's `ally` did, else made anew from checked values."""
    data = tensor.numpy().tobytes()
    if not mine:
        return rebuild_fitted(read_archive(data), own)
    import skops.io

    odd = untrusted(tensor, own)
    if odd:
        raise DataError(
            f"the model holds {', '.join(odd)}, which is not a trusted type, so it is not read; train it again"
        )
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


def sign_parts(facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> str:
    """The mark of an estimator that this user's `ally` wrote on this machine, over all that it is made from."""
    try:
        key = load_key(KEY)
    except StateUnavailable:
        key = _PROCESS_KEY
    form = FORMS["estimator"]
    signed = {name: facts[name] for name in form if name in facts and name != "signature"}
    mark = hmac.new(key, json.dumps(signed, sort_keys=True).encode(), hashlib.sha256)
    for name, tensor in sorted(tensors.items()):
        mark.update(hashlib.sha256(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()).digest())
        mark.update(hashlib.sha256(tensor.numpy().tobytes()).digest())
    return mark.hexdigest()


def is_signed(facts: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> bool:
    """Whether this user's `ally` wrote it on this machine."""
    signature = facts.get("signature")
    return signature is not None and hmac.compare_digest(
        signature.encode("utf-8", "replace"), sign_parts(facts, tensors).encode()
    )


def untrusted(tensor: torch.Tensor, own: str | None) -> list[str]:
    """Types in the bytes that are neither listed nor from the module of `own`, the user's ``module:builder``."""
    import skops.io

    module = None if own is None else own.partition(":")[0]
    return [
        name
        for name in skops.io.get_untrusted_types(data=tensor.numpy().tobytes())
        if name not in TRUSTED and (module is None or name.rpartition(".")[0] != module)
    ]
