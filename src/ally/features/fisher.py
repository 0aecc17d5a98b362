r"""Fisher information of the last layer, in factored form."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ally.learning.snapshot import View
from ally.sources import blocks


@dataclass(frozen=True)
class FisherFactors:
    r"""The Fisher information of x is :math:`W \otimes hh^\top` with :math:`W = S^\top S`.

    `embeddings` h (n, d) and `roots` S (n, C, C), both float64. For regression C = 1 and S = 1.
    """

    embeddings: torch.Tensor
    roots: torch.Tensor

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def curvature(self) -> torch.Tensor:
        """W = SᵀS, (n, C, C)."""
        return self.roots.transpose(1, 2) @ self.roots

    def mean(self) -> torch.Tensor:
        """Mean over rows of W ⊗ hhᵀ, (C·d, C·d): one d×d product per pair of classes."""
        w, h = self.curvature, self.embeddings
        classes, size = w.shape[1], h.shape[1]
        total = h.new_zeros(classes, size, classes, size)
        for block in blocks(len(self)):
            for c in range(classes):
                for e in range(c, classes):
                    total[c, :, e] += (h[block] * w[block, c, e, None]).T @ h[block]
        for c in range(classes):
            for e in range(c):
                total[c, :, e] = total[e, :, c]
        return total.view(classes * size, classes * size) / max(1, len(self))


def fisher_factors(view: View) -> FisherFactors:
    r"""For softmax outputs :math:`S = \mathrm{diag}(\sqrt p) - \sqrt p\, p^\top`, so that :math:`S^\top S = \mathrm{diag}(p) - pp^\top`."""
    embeddings = view.embeddings.double()
    if view.probabilities is None:
        return FisherFactors(embeddings, embeddings.new_ones(len(view), 1, 1))
    p = view.probabilities.double()
    return FisherFactors(embeddings, torch.diag_embed(p.sqrt()) - p.sqrt()[:, :, None] * p[:, None, :])
