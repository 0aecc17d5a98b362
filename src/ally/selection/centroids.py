r"""The nearest centroid of each point, bit for bit the same for any chunk size, number of threads and matrix library.

Matrix products do the work but never decide: a point goes to a centroid only if a bound on rounding shows that no other
is nearer. The few unclear points are measured again in float64, and finally by sums in one fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from ally.data import BLOCK, blocks
from ally.neighbours.loops import to_double
from ally.types import IntArray

GROUP, GROUPS = 32, 64
"""Centroids are searched in groups of 32; groups are larger where there would be more than 64."""
PRODUCT = 2**21
"""About how many distances are held at a time."""
NONE = 2.0**120
"""Farther than any centroid."""
TINY = 2.0**-100
"""More than squares lose to underflow."""


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows (m, d) scaled to unit length, in single precision, as they are read; rows of 0 stay 0."""

    rows: torch.Tensor

    @property
    def shape(self) -> torch.Size:
        return self.rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(to_double(self.rows[which].contiguous().numpy(), True)).float()


Rows: TypeAlias = torch.Tensor | UnitRows


@dataclass(frozen=True, eq=False)
class Frame:
    """x ↦ (x − centre) · scale in single precision: squares neither overflow nor vanish, and a common offset costs no
    precision."""

    centre: torch.Tensor
    """(d,) float64."""
    scale: float
    """A power of two."""

    @staticmethod
    def around(points: Rows, rows: IntArray) -> Frame:
        """Moves the mean of the points at `rows` to 0 and their largest coordinate between 1/2 and 1."""
        parts = [torch.from_numpy(rows[block]) for block in blocks(len(rows))]
        centre = torch.from_numpy(sum(points[part].numpy().sum(0, dtype=np.float64) for part in parts) / len(rows))
        largest = max(float((points[part].double() - centre).abs().max()) for part in parts)
        return Frame(centre, 2.0 ** -math.frexp(largest)[1])

    def __call__(self, points: torch.Tensor) -> torch.Tensor:
        """(m, d) → (m, d + 2): x, ‖x‖ and 1. Coordinates are clipped at 2**40, so that squares stay finite."""
        x = ((points.double() - self.centre) * self.scale).clamp_(-(2.0**40), 2.0**40).float()
        return torch.cat([x, x.norm(dim=1, keepdim=True), torch.ones(len(x), 1)], dim=1)


class Centroids:
    """`means` (k, d), float64. Points come from a frame, (m, d + 2)."""

    def __init__(self, means: torch.Tensor) -> None:
        self.means = means
        self._rounded = means.float()
        self._bounds, self._fine = Bounds.of(means, torch.float32), Bounds.of(means, torch.float64)

    def runs(self, size: int) -> Iterator[slice]:
        """Slices of whole blocks that cover ``range(size)``, about `PRODUCT` distances each."""
        step = max(1, min(PRODUCT // len(self.means), 2**15) // BLOCK) * BLOCK
        return (slice(first, min(first + step, size)) for first in range(0, size, step))

    def nearest(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """argmin_c Σ_j (x_j − c_j)² with the sums in float64, ties to the lowest, (m,).

        Also lower bounds on the distance to all other centroids, by group, (m, groups).
        """
        found, rest, limit, _ = self._bounds.search(x)
        apart = self._bounds.distance(x, rest)
        doubt = (rest.amin(1) <= limit).nonzero().squeeze(1)
        if len(doubt):
            found[doubt] = self._measured(x[doubt].double())
            apart[doubt] = 0.0
        return found, apart

    def others(self, x: torch.Tensor, own: torch.Tensor, group: int) -> torch.Tensor:
        """Lower bounds on the distance to the centroids of one group other than a point's `own` (m,), (m,)."""
        columns = slice(group * self._bounds.group, (group + 1) * self._bounds.group)
        low = x @ self._bounds.factor[:, columns]
        mine = ((own >= columns.start) & (own < columns.stop)).nonzero().squeeze(1)
        low[mine, own[mine] - columns.start] = NONE
        return self._bounds.distance(x, low.amin(1))

    def above(self, x: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """Upper bounds on the distance to `own` (m,), (m,)."""
        result = torch.empty(len(x))
        for block in blocks(len(x)):
            result[block] = (x[block, :-2] - self._rounded.index_select(0, own[block])).norm(dim=1)
        return result.mul_(1.0 + self._bounds.slack).add_(self._bounds.norms[own], alpha=2.0**-22).add_(2.0**-50)

    def moved_from(self, means: torch.Tensor) -> torch.Tensor:
        """For each group, an upper bound on how far its centroids are from those in `means` (k, d), (groups,)."""
        moves = torch.nn.functional.pad((self.means - means).norm(dim=1), (0, -len(means) % self._bounds.group))
        return (moves.view(-1, self._bounds.group).amax(1) * (1.0 + 2.0**-20)).float()

    def _measured(self, x: torch.Tensor) -> torch.Tensor:
        found, rest, limit, low = self._fine.search(x)
        doubt = (rest.amin(1) <= limit).nonzero().squeeze(1)
        if len(doubt):
            row, column = (low[doubt] <= limit[doubt, None]).nonzero().unbind(1)
            squared = [row_squares(x[doubt[row[part]], :-2] - self.means[column[part]]) for part in blocks(len(row))]
            order = np.lexsort((column.numpy(), torch.cat(squared).numpy(), row.numpy()))
            found[doubt] = column[torch.from_numpy(order[np.searchsorted(row.numpy(), np.arange(len(doubt)))])]
        return found


@dataclass(frozen=True, eq=False)
class Bounds:
    """Lower bounds on ‖x − c‖² − ‖x‖² for many x and c from one matrix product.

    With u the unit roundoff, the computed ‖c‖² − 2x·c is within (d + 8)u(2‖x‖‖c‖ + ‖c‖²) of its value, whatever the
    order of summation. `slack` is more than twice that, which also covers rounding in what is computed from it and in
    direct float64 sums.
    """

    factor: torch.Tensor
    """(d + 2, K), K a multiple of `group`; columns beyond the centroids give `NONE`."""
    norms: torch.Tensor
    """(K,)."""
    slack: float
    group: int

    @staticmethod
    def of(means: torch.Tensor, dtype: torch.dtype) -> Bounds:
        slack = torch.finfo(dtype).eps * (means.shape[1] + 16)
        norms = means.norm(dim=1, keepdim=True)
        group = GROUP * -(-len(means) // (GROUP * GROUPS))
        factor = torch.cat([-2.0 * means, -2.0 * slack * norms, (1.0 - slack) * norms.square()], dim=1).T
        pad = torch.zeros(len(factor), -len(means) % group, dtype=factor.dtype)
        pad[-1] = NONE
        return Bounds(
            torch.cat([factor, pad], dim=1).to(dtype), torch.cat([norms.squeeze(1), pad[0]]).to(dtype), slack, group
        )

    def search(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """The likely centroid (m,); the bounds of all others by group (m, groups); the `limit` (m,) up to which one of
        those may be nearer; all bounds (m, K)."""
        low = x @ self.factor
        found, best, rest = split_lowest(low, self.group)
        return found, rest, best + 2.0 * self.slack * (x[:, -2] + self.norms[found]).square() + TINY, low

    def distance(self, x: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
        """Turns bounds (m, ...) into lower bounds on the distance."""
        squares = (1.0 - self.slack) * x[:, -2].square() - TINY
        return (low + squares.view(-1, *[1] * (low.dim() - 1))).clamp_(min=0.0).sqrt_().mul_(1.0 - 2.0**-20)


def split_lowest(values: torch.Tensor, group: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """For each row of (m, K): the column of the lowest value, that value, and the lowest other value in each group,
    (m, K / group).

    It finds the lowest of each group first, because an argmin over all columns takes several times as long.
    """
    rest = values.view(len(values), -1, group).amin(2)
    best, which = rest.min(1)
    inside = values.view(-1, group).index_select(0, torch.arange(len(values)) * rest.shape[1] + which)
    place = inside.argmin(1, keepdim=True)
    rest.scatter_(1, which[:, None], inside.scatter_(1, place, NONE).amin(1, keepdim=True))
    return which * group + place.squeeze(1), best, rest


def row_squares(differences: torch.Tensor) -> torch.Tensor:
    """Sums of squares of float64 rows, (m, d) → (m,); numpy sums each row on its own, in one order."""
    return torch.from_numpy(np.square(differences.numpy()).sum(1))
