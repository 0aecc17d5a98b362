r"""Rows of a tensor-product space, held as factors.

A row is :math:`g_i = u_i \otimes v_i \otimes \dots`. Inner products are products of the factors' inner products, so
distances in ℝ^(dC) cost d + C per pair and the n×(dC) matrix is never built. A plain matrix is the case of one factor.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch

from ally.data import blocks
from ally.errors import NonFiniteInput
from ally.learning.snapshot import View
from ally.types import Task

OVERFLOW = "embeddings are so large that their squares overflow; rescale the features of your model"


@dataclass(frozen=True, eq=False)
class Patched:
    """A matrix (n, C) with one entry of every row replaced. The matrix is not copied; rows are patched when they are
    read."""

    matrix: torch.Tensor
    places: torch.Tensor
    """(n,) int32, the column of the entry."""
    values: torch.Tensor
    """(n,) the replacements, of the matrix's type."""

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, which: slice | torch.Tensor) -> torch.Tensor:
        return self.matrix[which].scatter(1, self.places[which].long()[:, None], self.values[which][:, None])


@dataclass(frozen=True, eq=False)
class ProductRows:
    """n rows; each factor is (n, d_f)."""

    stored: tuple[torch.Tensor | Patched, ...]

    def __len__(self) -> int:
        return len(self.stored[0])

    @property
    def factors(self) -> tuple[torch.Tensor, ...]:
        """The factors as plain matrices, with patches applied. `part` does so for some of the rows."""
        return tuple(factor if isinstance(factor, torch.Tensor) else factor[:] for factor in self.stored)

    def squared_norms(self) -> torch.Tensor:
        """‖g_i‖², (n,)."""
        norms = torch.empty(len(self), dtype=part(self, slice(0, 0)).factors[0].dtype)
        for block in blocks(len(self)):
            norms[block] = _product([factor.square().sum(1) for factor in part(self, block).factors])
        if not bool(torch.isfinite(norms).all()):
            raise NonFiniteInput(OVERFLOW)
        return norms


def part(rows: ProductRows, which: slice | torch.Tensor) -> ProductRows:
    """Some of the rows."""
    return ProductRows(tuple(factor[which] for factor in rows.stored))


def squared(a: ProductRows, b: ProductRows, a_norms: torch.Tensor, b_norms: torch.Tensor) -> torch.Tensor:
    """‖a_i − b_j‖², (len(a), len(b)), minus a margin for rounding, so that copies are at exactly 0."""
    inner = _product([left @ right.T for left, right in zip(a.factors, b.factors, strict=True)])
    keep = 1.0 - 8.0 * torch.finfo(inner.dtype).eps
    return inner.mul_(-2.0).add_((keep * a_norms)[:, None]).add_((keep * b_norms)[None, :]).clamp_(min=0.0)


def _product(values: list[torch.Tensor]) -> torch.Tensor:
    return functools.reduce(torch.mul, values)


class Representation(Protocol):
    """Turns a view into rows."""

    tasks: ClassVar[frozenset[Task]]

    def __call__(self, view: View) -> ProductRows: ...
