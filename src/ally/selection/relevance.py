r"""Which columns matter: one width for each column of a Gaussian kernel, from the labels.

With k(x, x') = exp(−Σ_j r_j (x_j − x'_j)²), a Gaussian process with noise σ² gives the labels the likelihood whose
logarithm, at the best scale of k, is −f up to a constant:

    f(r) = t (½ L log q + ½ log det A),   A = k(L, L) + σ² I,   q = tr(Yᵀ A⁻¹ Y) / (L t),

for centred targets Y (L, t). Few labels say little about many columns, so log r_j has a normal prior around a common
value: without evidence, columns count the same.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize

from ally.neighbours.loops import Double

FEWEST, MOST_LABELS = 10, 256
"""With fewer labels, columns count the same; of more, the first ones of a random order are used."""
MOST_COLUMNS = 64
"""Above that, columns count the same: vectors of so many numbers are made by encoders, whose columns mean nothing
alone."""
STEPS = 40
RANGE = 5.0
"""The most that log r_j, and the common value, may move."""
COMMON = 3.0
"""Standard deviation of the prior on the common value."""
GRAIN = 1 / 64
"""Scales are rounded to this step of their logarithm, since the last bits of a likelihood depend on the number of
threads."""


def column_scales(rows: Double, targets: Double, noise: float, spread: float) -> Double | None:
    """√r_j, (d,), with mean r of about 1, for labelled rows (L, d) and centred targets (L, t); None if all count the
    same. `spread` is the standard deviation of the prior on log r_j."""
    rows, targets = rows[:MOST_LABELS], targets[:MOST_LABELS]
    count, width = rows.shape
    if count < FEWEST or not 1 < width <= MOST_COLUMNS or spread == 0.0 or not np.square(targets).sum() > 0.0:
        return None
    varied = rows.std(0)
    if not varied.any():
        return None
    # Twice the sum of variances is the mean squared distance, so that r = 1 gives a kernel of medium width.
    rows = (rows - rows.mean(0)) / np.sqrt(2.0 * np.square(varied).sum())

    def value(z: Double) -> tuple[float, Double]:
        found, slope = fit(rows, targets, np.exp(z[:-1] + z[-1]), noise)
        slope = np.append(slope, slope.sum())
        pulls = z / np.append(np.full(width, spread**2), COMMON**2)
        return found + 0.5 * float(z @ pulls), slope + pulls

    bounds = [(-RANGE, RANGE)] * (width + 1)
    found = minimize(value, np.zeros(width + 1), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": STEPS})
    logs = found.x[:-1] - np.log(np.exp(found.x[:-1]).mean())
    return np.asarray(np.exp(np.round(0.5 * logs / GRAIN) * GRAIN))


def fit(rows: Double, targets: Double, r: Double, noise: float) -> tuple[float, Double]:
    """f(r) and its slope in log r_j, (d,).

    With H = (∂f / ∂k) ∘ k and its row sums h, Σ_ab H_ab (x_aj − x_bj)² = 2 (Σ_a h_a x_aj² − Σ_ab x_aj H_ab x_bj), so
    nothing of size L × L × d is built.
    """
    count, tasks = targets.shape
    scaled = rows * np.sqrt(r)
    norms = np.square(scaled).sum(1)
    kernel = np.exp(-np.maximum(norms[:, None] + norms[None, :] - 2.0 * scaled @ scaled.T, 0.0))
    factor = cholesky(kernel + noise * np.eye(count), lower=True, check_finite=False)
    solved = cho_solve((factor, True), targets, check_finite=False)
    inverse = cho_solve((factor, True), np.eye(count), check_finite=False)
    q = float((targets * solved).sum()) / (count * tasks)
    found = tasks * (0.5 * count * np.log(q) + float(np.log(np.diag(factor)).sum()))
    moves = (0.5 * tasks * inverse - 0.5 * solved @ solved.T / q) * kernel
    spreads = 2.0 * (moves.sum(1) @ np.square(scaled) - (scaled * (moves @ scaled)).sum(0))
    return found, -spreads
