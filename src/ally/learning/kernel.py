r"""Gaussian process regression as a scikit-learn estimator, for targets that change smoothly with the features.

.. math:: k(x, z) = \exp\left(-\frac{\|x - z\|^2}{2 \ell^2}\right), \qquad
    y_i = s f(x_i) + \mathcal{N}(0, s^2 \nu / w_i)

on standardised columns. The length ℓ and the noise ν are the values in a grid that give the labels the highest
likelihood, and s is the best scale for them. A weight w counts a sample w times.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ally.types import AnyArray, FloatArray

LENGTHS = tuple(2.0**power for power in range(-4, 9))
"""Squared, in units of the mean squared distance between two samples."""
NOISES = tuple(10.0**power for power in np.arange(-4, 1.01, 0.5))


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Takes n³ operations for each length in the grid, and n d memory."""

    def fit(self, X: AnyArray, y: AnyArray, sample_weight: AnyArray | None = None) -> GaussianProcess:
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("all sample weights are zero; give some sample a positive weight")
        self.mean_ = np.average(X, axis=0, weights=weights)
        deviation = np.sqrt(np.average(np.square(X - self.mean_), axis=0, weights=weights))
        self.scale_ = np.where(deviation > 0, deviation, 1.0)
        self.rows_ = (X - self.mean_) / self.scale_
        self.offset_ = float(np.average(y, weights=weights))
        targets = y - self.offset_
        squared = cdist(self.rows_, self.rows_, "sqeuclidean")
        usual = float(weights @ squared @ weights) / float(weights.sum()) ** 2 or 1.0
        best = -np.inf
        for length in LENGTHS:
            kernel = np.exp(-squared / (2 * length * usual))
            noise, likelihood = _noise(kernel, targets, weights)
            if likelihood > best:
                best, self.length_, self.noise_ = likelihood, length * usual, noise
        kernel = np.exp(-squared / (2 * self.length_))
        root = np.sqrt(weights)
        inner = root[:, None] * kernel * root + self.noise_ * np.eye(len(y))
        self.dual_coef_ = root * cho_solve(cho_factor(inner), root * targets)
        return self

    def predict(self, X: AnyArray) -> FloatArray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        rows = (X - self.mean_) / self.scale_
        kernel = np.exp(-cdist(rows, self.rows_, "sqeuclidean") / (2 * self.length_))
        return np.asarray(kernel @ self.dual_coef_ + self.offset_)


def _noise(kernel: FloatArray, targets: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """The most likely noise in the grid for a kernel (n, n), and its log-likelihood up to a constant, as if every
    sample were there w times. One decomposition serves all: with R = diag(w)^(1/2), K + ν R⁻² = R⁻¹ (R K R + ν) R⁻¹."""
    root, count = np.sqrt(weights), float(weights.sum())
    values, vectors = eigh(root[:, None] * kernel * root)
    energy = np.square(vectors.T @ (root * targets))
    found: list[tuple[float, float]] = []
    for noise in NOISES:
        level = np.maximum(values, 0.0) + noise
        variance = max(float((energy / level).sum()) / count, np.finfo(float).tiny)
        volume = float(np.log(level).sum()) + (count - len(targets)) * np.log(noise)
        found.append((-0.5 * (count * np.log(variance) + volume), noise))
    likelihood, noise = max(found)
    return noise, likelihood
