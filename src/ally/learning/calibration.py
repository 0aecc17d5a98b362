r"""Temperature scaling (Guo et al., 2017): softmax(z / T) with T fitted to samples that the network was not trained on.

On its training data, a network is nearly always right and far too confident. T minimises the negative log-likelihood of
held-out labels, a convex function of 1 / T, with labels smoothed by 1 / (m + 2), Laplace's rule of succession: a few
held-out samples that are all predicted correctly do not justify certainty.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from ally.learning.snapshot import HeldOut
from ally.types import FloatArray, IntArray

COLDEST, HOTTEST = 0.1, 100.0
HALVINGS = 50


def temperature(held_out: HeldOut) -> float:
    r"""T between `COLDEST` and `HOTTEST`, by bisection of the slope in β = 1 / T, mean of E_p[z] − Σ_c t_c z_c with p =
    softmax(βz)."""
    z = logits(held_out.probabilities)
    smoothing = 1.0 / (len(z) + 2)
    given = z[torch.arange(len(z)), held_out.labels]
    wanted = float(((1.0 - smoothing) * given + smoothing * z.mean(1)).mean())
    low, high = math.log(COLDEST), math.log(HOTTEST)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        expected = float(((z / math.exp(middle)).softmax(1) * z).sum(1).mean())
        low, high = (middle, high) if expected > wanted else (low, middle)
    return math.exp(0.5 * (low + high))


def tempered(probabilities: torch.Tensor, temperature: float) -> torch.Tensor:
    """softmax(log p / T), (n, C) → (n, C) float64."""
    return (logits(probabilities) / temperature).softmax(1)


def logits(probabilities: torch.Tensor) -> torch.Tensor:
    """log p, (n, C) float64; values below the smallest single-precision number are clipped to it."""
    return probabilities.double().clamp(min=torch.finfo(torch.float32).tiny).log()


def folds(labels: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """The fold of each sample, (L,), at random, with every class spread evenly over the folds."""
    fold = np.empty(len(labels), dtype=np.int64)
    fold[np.lexsort((rng.random(len(labels)), labels))] = np.arange(len(labels)) % count
    return fold
