r"""BAIT: greedy Bayesian A-optimal design on the last layer's Fisher information (Ash et al., 2021).

Minimise tr(M⁻¹F) where M = λI + (labelled information) + (picked information) and F is the mean information of the pool.
With h (d), W (C×C) per candidate and A = M⁻¹ (Cd×Cd), each candidate keeps two C×C matrices

    Q = [hᵀ A_cc' h],   G = [hᵀ (AFA)_cc' h],

in which the decrease of the objective from adding it is tr(G W (I + QW)⁻¹), and both follow a pick by a rank-C update. Adding
goes 2n picks forward; then n are removed again, each the one whose loss raises the objective least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.checks import check_number
from ally.execution.memory import check_budget
from ally.features import FisherFactors, fisher_factors
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.selection.base import Limits, Selection, picked
from ally.sources import blocks
from ally.types import BOTH_TASKS, Task


@dataclass(frozen=True)
class FisherGreedy:
    """`ridge` is λ of the reference implementation; `oversample` how many times n are picked before removal."""

    ridge: float = 1.0
    oversample: float = 2.0
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("ridge", self.ridge, positive=True)
        check_number("oversample", self.oversample, positive=True)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        classes = 1 if snapshot.candidates.probabilities is None else snapshot.candidates.probabilities.shape[1]
        size = snapshot.candidates.embeddings.shape[1]
        needed = 8 * (len(snapshot.candidates) * (4 * classes**2 + 2 * size) + 6 * (classes * size) ** 2)
        check_budget(needed, limits.memory_budget, f"BAIT on {len(snapshot.candidates)} candidates with {classes} classes",
                     "raise memory_budget, pass fewer `candidates`, or use strategy='badge'")  # fmt: skip
        candidates, labelled = fisher_factors(snapshot.candidates), fisher_factors(snapshot.labelled)
        state = information(candidates, labelled, n, self.ridge)
        forward = min(len(candidates), max(n, int(self.oversample * n)))
        positions, gains = state.add(forward)
        keep = state.remove(positions, forward - n)
        return picked(snapshot, positions[keep], gains[keep])


def information(candidates: FisherFactors, labelled: FisherFactors, n: int, ridge: float) -> FisherState:
    """The state before any pick. The labelled mean weighs L/(L+n), a pick s = n/(L+n)."""
    known = labelled.mean()
    pooled = (candidates.mean() * len(candidates) + known * len(labelled)) / (len(candidates) + len(labelled))
    prior = ridge * torch.eye(len(known), dtype=known.dtype)
    inverse = torch.linalg.inv(known * (len(labelled) / (len(labelled) + n)) + prior).contiguous()
    return FisherState(candidates, inverse, pooled, scale=n / (len(labelled) + n))


class FisherState:
    """A = M⁻¹ with the matrices Q and G (m, C, C) of all candidates."""

    def __init__(self, candidates: FisherFactors, inverse: torch.Tensor, pooled: torch.Tensor, scale: float) -> None:
        self._h = candidates.embeddings
        self._scale = scale
        self._roots = candidates.roots
        self._inverse = inverse
        self._pooled = pooled
        self._curvature = candidates.curvature * scale
        self._q = self._quadratic(inverse)
        self._g = self._quadratic(inverse @ pooled @ inverse)

    def add(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Picks `count` candidates one by one; positions and the decrease of the objective by each."""
        free = torch.ones(len(self._h), dtype=torch.bool)
        positions = torch.empty(count, dtype=torch.int64)
        gains = torch.empty(count, dtype=torch.float64)
        everyone = torch.arange(len(self._h))
        for pick in range(count):
            gain = torch.where(free, self._gains(everyone, 1.0), -torch.inf)
            row = int(gain.argmax())
            positions[pick], gains[pick] = row, gain[row]
            free[row] = False
            self._update(row, 1.0, everyone)
        return positions, gains

    def remove(self, positions: torch.Tensor, count: int) -> torch.Tensor:
        """Takes `count` of the picked `positions` out again; the places in `positions` that stay, in order."""
        keep = torch.ones(len(positions), dtype=torch.bool)
        for _ in range(count):
            left = keep.nonzero().squeeze(1)
            place = int(left[int(self._gains(positions[left], -1.0).argmax())])
            keep[place] = False
            self._update(int(positions[place]), -1.0, positions)
        return keep.nonzero().squeeze(1)

    def _gains(self, rows: torch.Tensor, sign: float) -> torch.Tensor:
        """tr(G W (±I + QW)⁻¹) for `rows`."""
        gains = torch.empty(len(rows), dtype=torch.float64)
        for block in blocks(len(rows)):
            w = self._curvature[rows[block]]
            system = self._q[rows[block]] @ w
            system.diagonal(dim1=1, dim2=2).add_(sign)
            solved = torch.linalg.solve(system, self._g[rows[block]] @ w, left=False)
            gains[block] = solved.diagonal(dim1=1, dim2=2).sum(1)
        return gains

    def _update(self, row: int, sign: float, rows: torch.Tensor) -> None:
        """M ← M ± XᵀX with X = √s S ⊗ hᵀ of `row`; Q and G of `rows` follow."""
        classes, size = self._curvature.shape[1], self._h.shape[1]
        root = self._scale**0.5 * self._roots[row]
        u = (self._inverse.view(-1, size) @ self._h[row]).view(-1, classes) @ root.T
        xu = root @ (self._h[row] @ u.view(classes, size, classes))
        middle = torch.linalg.inv(sign * torch.eye(classes, dtype=u.dtype) + xu)
        fu = self._pooled @ u
        z = self._inverse @ fu
        k = u.T @ fu
        both = torch.cat([u, z], dim=1).view(classes, size, 2 * classes).permute(1, 0, 2).reshape(size, -1)
        for block in blocks(len(rows)):
            part = rows[block]
            projected = (self._h[part] @ both).view(len(part), classes, 2 * classes)
            v, y = projected[:, :, :classes], projected[:, :, classes:]
            vm = v @ middle
            cross = vm @ y.transpose(1, 2)
            self._q[part] -= vm @ v.transpose(1, 2)
            self._g[part] += vm @ k @ vm.transpose(1, 2) - cross - cross.transpose(1, 2)
        self._inverse.addmm_(u @ middle, u.T, alpha=-1.0)

    def _quadratic(self, matrix: torch.Tensor) -> torch.Tensor:
        """[hᵀ B_cc' h] for all candidates, (m, C, C)."""
        classes, size = self._curvature.shape[1], self._h.shape[1]
        blocked = matrix.view(classes, size, classes, size)
        result = self._h.new_empty(len(self._h), classes, classes)
        for block in blocks(len(self._h)):
            h = self._h[block]
            for c in range(classes):
                result[block, c] = torch.einsum("ndk,nd->nk", (h @ blocked[c].reshape(size, -1)).view(-1, classes, size).transpose(1, 2), h)
        return result
