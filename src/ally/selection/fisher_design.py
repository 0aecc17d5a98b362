r"""The design so far: A, the inverse of the information, and AFA, both (kd, kd), updated as rows come and go.

With X (k×kd) the factor of a row, U = AXᵀ, Z = AFAXᵀ, K = XZ and M = (I ± XU)⁻¹ = NNᵀ,

    A   becomes  A ∓ uuᵀ              with u = UN,
    AFA becomes  AFA ∓ (puᵀ + upᵀ)    with p = (Z ∓ ½ UMK) N,

and tr(AF) changes by ∓ tr(MK).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ally.features.fisher import FisherFactors, FisherRows, total_information


@dataclass(frozen=True, eq=False)
class Step:
    """A row that was added or removed, in the form that other rows need to update themselves."""

    sign: float
    """1 if added, −1 if removed."""
    columns: torch.Tensor
    """(2·k·r, d): u and then p, class by class, as rows of length d."""


class FisherDesign:
    """A, AFA, and a bound on the largest eigenvalue of AF."""

    def __init__(self, matrix: torch.Tensor, pooled: torch.Tensor) -> None:
        self._matrix, self._pooled = matrix, pooled
        self._taken: list[tuple[FisherFactors, float]] = []
        self.renew()

    def renew(self) -> None:
        """Recomputes A and AFA from the information, so that their rounding is relative to their present size, not to
        an earlier, larger one."""
        for row, sign in self._taken:
            h = row.embeddings[0]
            self._matrix += torch.kron(sign * row.curvature[0], torch.outer(h, h))
        self._taken = []
        inverse = torch.linalg.inv(self._matrix)
        self.inverse = (0.5 * (inverse + inverse.T)).contiguous()
        self.spread = (self.inverse @ self._pooled @ self.inverse).contiguous()
        self.ceiling = float((self._pooled * self.spread).sum().clamp(min=0.0).sqrt())
        """No eigenvalue of AF is larger. It starts as the root of the sum of their squares."""

    def tighten(self) -> None:
        """Lowers the ceiling c in steps of a fifth while it holds, that is, while cA − AFA is positive definite."""
        while self.ceiling > 0.0:
            lower = 0.8 * self.ceiling
            if int(torch.linalg.cholesky_ex(torch.sub(lower * self.inverse, self.spread)).info) != 0:
                return
            self.ceiling = lower

    def take(self, row: FisherFactors, sign: float) -> tuple[float, Step]:
        """Adds (sign 1) or removes (−1) one row, h (1, d) and S (1, k, k). Returns how much the objective fell, and the
        step for other rows."""
        h, s = row.embeddings[0], row.roots[0]
        k, size = len(s), len(h)
        u, z = (((matrix.view(-1, size) @ h).view(-1, k) @ s.T) for matrix in (self.inverse, self.spread))
        across, cross = ((s @ (h @ x.view(k, size, k))) for x in (u, z))
        values, vectors = torch.linalg.eigh(torch.eye(k, dtype=h.dtype) + 0.5 * sign * (across + across.T))
        n = vectors / values.clamp(min=1.0 if sign > 0 else 2.0**-40).sqrt()
        middle = n @ n.T
        u, p = u @ n, (z - 0.5 * sign * u @ middle @ cross) @ n
        self._taken.append((row, sign))
        self.inverse.addmm_(u, u.T, alpha=-sign)
        self.spread.addmm_(torch.cat([p, u], dim=1), torch.cat([u, p], dim=1).T, alpha=-sign)
        columns = torch.cat([x.view(k, size, k).transpose(1, 2).reshape(-1, size) for x in (u, p)])
        return float(sign * (middle * cross.T).sum()), Step(sign, columns)


def first_design(
    parts: Sequence[torch.Tensor], count: int, labelled: FisherRows, classes: int, n: int, ridge: float
) -> FisherDesign:
    """The design before any pick, from the information (kd, kd) summed over the parts of `count` candidates.

    The labelled mean has weight L / (L + n). Measured against the last of C classes, λI becomes λ(I − 11ᵀ/C) ⊗ I.
    """
    pooled = sum(parts[1:], parts[0].clone())
    k = max(1, classes - 1)
    size = len(pooled) // k
    prior = torch.eye(k, dtype=pooled.dtype) - (0.0 if classes == 1 else 1.0 / classes)
    matrix = ridge * torch.kron(prior, torch.eye(size, dtype=pooled.dtype))
    if len(labelled):
        known = total_information(labelled)
        pooled += known
        matrix += known / (len(labelled) + n)
    return FisherDesign(matrix, pooled.div_(count + len(labelled)))
