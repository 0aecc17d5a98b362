r"""Fisher information of the last layer, in factored form.

A sample's information about the weights is :math:`W \otimes hh^\top` with :math:`W = S^\top S` (C×C). Adding the same
vector to the weights of every class does not change the softmax, so :math:`W\mathbf 1 = 0`. Measuring every class
against the last one therefore loses nothing, and only the leading k×k part of W is needed, k = C − 1 (`FisherRows`).
Regression has C = k = 1 and W = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from ally.data import blocks
from ally.learning.snapshot import View


@dataclass(frozen=True, eq=False)
class FisherFactors:
    r"""The Fisher information of x is :math:`W \otimes hh^\top` with :math:`W = S^\top S`.

    `embeddings` h (n, d) and `roots` S (n, r, C), both float64. For regression C = 1 and S = 1.
    """

    embeddings: torch.Tensor
    roots: torch.Tensor

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def curvature(self) -> torch.Tensor:
        """W = SᵀS, (n, C, C)."""
        return self.roots.mT @ self.roots

    def mean(self) -> torch.Tensor:
        """Mean over rows of W ⊗ hhᵀ, (C·d, C·d)."""
        classes, size = self.roots.shape[2], self.embeddings.shape[1]
        total = self.embeddings.new_zeros(classes * size, classes * size)
        for block in blocks(len(self)):
            add_information(total, FisherFactors(self.embeddings[block], self.roots[block]))
        return mirrored(total, size) / max(1, len(self))


@dataclass(frozen=True, eq=False)
class FisherRows:
    """Samples whose factors are computed on demand, because a root is C times as large as the probabilities it comes
    from."""

    embeddings: torch.Tensor
    """(n, d) in any precision."""
    probabilities: torch.Tensor | None
    """(n, C), or None for regression."""
    apart: torch.Tensor | None = None
    """(c,) the classes kept apart; all others are merged into one, the last. None keeps every class."""

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def unknowns(self) -> int:
        """k, the number of classes measured against the last one; 1 for regression."""
        if self.probabilities is None:
            return 1
        return self.probabilities.shape[1] - 1 if self.apart is None else len(self.apart)

    def shares(self, which: slice | torch.Tensor) -> torch.Tensor | None:
        """Probabilities of some rows, (n, k + 1) float64 that sum to 1; None for regression."""
        if self.probabilities is None:
            return None
        p = merged(self.probabilities[which].double(), self.apart)
        return p / p.sum(1, keepdim=True)

    def take(self, which: slice | torch.Tensor, scale: float = 1.0) -> FisherFactors:
        """Factors of some rows, with S (n, k, k) upper triangular; `scale` multiplies the information."""
        h, p = self.embeddings[which].double(), self.shares(which)
        return FisherFactors(h, scale**0.5 * (h.new_ones(len(h), 1, 1) if p is None else triangle(p)))

    def copy(self, which: slice) -> FisherRows:
        """A copy of some rows."""
        return FisherRows(self.embeddings[which].clone(), self.shares(which))


def together(rows: Sequence[FisherRows]) -> FisherRows:
    """The rows concatenated, with all classes kept apart."""
    p = [part.probabilities for part in rows if part.probabilities is not None]
    return FisherRows(torch.cat([part.embeddings for part in rows]), torch.cat(p) if p else None)


def fisher_factors(view: View) -> FisherFactors:
    r"""Factors for all classes: :math:`S = \mathrm{diag}(\sqrt p) - \sqrt p\, p^\top`, so that :math:`S^\top S =
    \mathrm{diag}(p) - pp^\top`."""
    h = view.embeddings.double()
    if view.probabilities is None:
        return FisherFactors(h, h.new_ones(len(h), 1, 1))
    p = view.probabilities.double()
    return FisherFactors(h, torch.diag_embed(p.sqrt()) - p.sqrt()[:, :, None] * p[:, None, :])


def triangle(p: torch.Tensor) -> torch.Tensor:
    r"""(n, k + 1) → (n, k, k): the upper triangular root of diag(p) − ppᵀ without its last row and column.

    With :math:`q_a = \sum_{b>a} p_b`, the last class included, its row a is
    :math:`\sqrt{p_a q_a / (p_a + q_a)}\,(e_a - \sum_{a<b\le k} p_b e_b / q_a)`.
    """
    total = p.flip(1).cumsum(1).flip(1)
    rest, share = total[:, 1:], p[:, :-1]
    size = torch.where(total[:, :-1] > 0.0, share * rest / total[:, :-1], 0.0).sqrt()
    beyond = torch.where(rest > 0.0, size / rest, 0.0)
    return torch.diag_embed(size) - (beyond[:, :, None] * share[:, None, :]).triu(1)


def merged(p: torch.Tensor, classes: torch.Tensor | None) -> torch.Tensor:
    """(n, C) → (n, c + 1): the probabilities of c classes, then that of all others."""
    if classes is None:
        return p
    other = torch.ones(p.shape[1], dtype=torch.bool)
    other[classes] = False
    return torch.cat([p[:, classes], p[:, other].sum(1, keepdim=True)], dim=1)


def most_uncertain_classes(p: torch.Tensor, count: int) -> torch.Tensor:
    """The `count` classes with the largest Σ p(1 − p) over the rows of p (n, C), in ascending order; ties go to the
    first."""
    total = p.new_zeros(p.shape[1], dtype=torch.float64)
    for block in blocks(len(p)):
        part = p[block].double()
        total += (part * (1.0 - part)).sum(0)
    return torch.sort(total, descending=True, stable=True).indices[:count].sort().values


def total_information(rows: FisherRows) -> torch.Tensor:
    """Σ W ⊗ hhᵀ over all rows, (k·d, k·d)."""
    size = rows.embeddings.shape[1]
    total = torch.zeros(rows.unknowns * size, rows.unknowns * size, dtype=torch.float64)
    for block in blocks(len(rows)):
        add_information(total, rows.take(block))
    return mirrored(total, size)


def add_information(total: torch.Tensor, part: FisherFactors) -> None:
    """Adds Σ W ⊗ hhᵀ to the blocks of `total` on and above the diagonal, with one matrix product per class."""
    h, w = part.embeddings, part.curvature
    size = h.shape[1]
    for c in range(w.shape[1]):
        weighted = (w[:, c, c:, None] * h[:, None, :]).view(len(h), -1)
        total[c * size : (c + 1) * size, c * size :].addmm_(h.T, weighted)


def mirrored(total: torch.Tensor, size: int) -> torch.Tensor:
    """Fills in the part below the diagonal, in place, d rows at a time."""
    for start in range(0, len(total), size):
        row = total[start : start + size]
        diagonal = row[:, start : start + size]
        diagonal.copy_(diagonal.triu() + diagonal.triu(1).T)
        total[start + size :, start : start + size] = row[:, start + size :].T
    return total
