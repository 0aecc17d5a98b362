r"""The empirical Lagrangian over a minibatch."""

from __future__ import annotations

import torch


def lagrangian(risk: torch.Tensor, slacks: torch.Tensor, duals: torch.Tensor) -> torch.Tensor:
    r"""A scalar whose gradient in θ is that of :math:`\hat L(\theta, \lambda)` on the batch.

    .. math:: \hat L = r + \frac1B \sum_i \lambda_i \left(\ell'_i - \varepsilon_i\right)

    Args:
        risk: r, a scalar: the mean loss (CERM), a regulariser R(f) (D-FSL), or their sum.
        slacks: s = ℓ' − ε, (B,).
        duals: λ, (B,), held constant.
    """
    return risk + torch.dot(duals.to(slacks.dtype), slacks) / len(slacks)
