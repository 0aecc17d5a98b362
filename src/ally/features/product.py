r"""Rows of a tensor-product space, held as factors.

A row is :math:`g_i = u_i \otimes v_i \otimes \dots`; inner products are products of the factors' inner products, so distances
in ℝ^(dC) cost d + C per pair and the n×(dC) matrix never exists. A plain matrix is the case of one factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from ally.errors import NonFiniteInput
from ally.learning.snapshot import View
from ally.sources import blocks
from ally.types import Task


@dataclass(frozen=True, eq=False)
class ProductRows:
    """n rows; each factor is (n, d_f)."""

    factors: tuple[torch.Tensor, ...]

    def __len__(self) -> int:
        return len(self.factors[0])

    def squared_norms(self) -> torch.Tensor:
        """‖g_i‖², (n,)."""
        norms = torch.empty(len(self), dtype=self.factors[0].dtype)
        for block in blocks(len(self)):
            norms[block] = _product([factor[block].square().sum(1) for factor in self.factors])
        if not bool(torch.isfinite(norms).all()):
            raise NonFiniteInput("embeddings are so large that their squares overflow; rescale the features of your model")
        return norms

    def lower_to_row(self, distances: torch.Tensor, norms: torch.Tensor, row: int) -> None:
        """distances_i ← min(distances_i, ‖g_i − g_row‖²), in place; distances_row becomes exactly 0."""
        self.lower_to(distances, norms, tuple(factor[row : row + 1] for factor in self.factors), norms[row : row + 1])
        distances[row] = 0.0

    def lower_to(self, distances: torch.Tensor, norms: torch.Tensor, centres: tuple[torch.Tensor, ...], centre_norms: torch.Tensor) -> None:
        """distances_i ← min over centres c of ‖g_i − c‖², in place, block by block on both sides."""
        for block in blocks(len(self)):
            for part in blocks(len(centre_norms)):
                inner = _product([f[block] @ c[part].T for f, c in zip(self.factors, centres, strict=True)])
                squared = inner.mul_(-2.0).add_(norms[block, None]).add_(centre_norms[None, part]).clamp_(min=0.0)
                torch.minimum(distances[block], squared.amin(1), out=distances[block])


def _product(values: list[torch.Tensor]) -> torch.Tensor:
    result = values[0]
    for value in values[1:]:
        result = result * value
    return result


class Representation(Protocol):
    """From a view to rows."""

    tasks: ClassVar[frozenset[Task]]

    def __call__(self, view: View) -> ProductRows: ...
