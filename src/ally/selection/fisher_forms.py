r"""The matrices Q and G of each row, updated with every pick.

With A (kd×kd) the inverse of the information so far, F the mean information of the pool and :math:`X = S \otimes
h^\top` (k×kd) the factor of a row, the row keeps two k×k matrices,

    Q = X A Xᵀ   and   G = X AFA Xᵀ.

Both are packed, in double precision, next to the row's probabilities, from which S is made. That is 8C² bytes per row,
as much as two full C×C matrices in single precision, and nothing drifts.

Adding XᵀX to the information lowers tr(AF) by the row's gain tr((I + Q)⁻¹G); removing it raises tr(AF) by tr((I −
Q)⁻¹G).
"""

from __future__ import annotations

import numpy as np
import torch

from ally.features.fisher import FisherFactors, FisherRows
from ally.selection.fisher_design import Step
from ally.selection.fisher_loops import LANES, advance, project, traces
from ally.types import FloatArray, IntArray

CHUNK = 512
"""Rows computed at a time, in whole groups of lanes."""
FEW = 8
"""Up to this many columns are projected row by row."""


class Forms:
    """Q and G of some of the `rows`, at most `capacity` of them. A row sits in a slot: a lane of a group."""

    def __init__(self, rows: FisherRows, scale: float, capacity: int) -> None:
        self._rows, self._scale = rows, scale
        self.classes, self.size = rows.unknowns, rows.embeddings.shape[1]
        groups = -(-capacity // CHUNK) * (CHUNK // LANES)
        self._q, self._g = (np.zeros((groups, self.classes * (self.classes + 1) // 2, LANES)) for _ in range(2))
        self._p = np.zeros((groups, 0 if rows.probabilities is None else self.classes + 1, LANES))
        self.places = np.empty(0, dtype=np.int64)
        """(count,) the row in each slot."""

    def gains(self, sign: float = 1.0) -> FloatArray:
        """By slot: how much tr(AF) falls if the row is added (sign 1); if it is removed (−1), the same with a negative
        sign, since tr(AF) rises."""
        return sign * self._traces(self._g, sign)

    def reaches(self) -> FloatArray:
        """By slot: tr((I + Q)⁻¹Q)."""
        return self._traces(self._q, 1.0)

    def take(self, step: Step) -> None:
        """Updates all slots for one pick."""
        rank = len(step.columns) // (2 * self.classes)
        columns = self._scale**0.5 * step.columns
        h = torch.zeros(CHUNK, self.size, dtype=torch.float64)
        projected = torch.zeros(
            len(columns), CHUNK + 16, dtype=torch.float64
        )  # rows a power of two apart would share cache lines
        places = torch.from_numpy(self.places)
        for slots in _chunks(len(places)):
            if len(columns) <= FEW:
                project(self._rows.embeddings.numpy(), self.places[slots], columns.numpy(), projected.numpy())
            else:
                h[: slots.stop - slots.start] = self._rows.embeddings[places[slots]]
                torch.mm(columns, h.T, out=projected[:, :CHUNK])
            groups = _groups(slots)
            advance(self._q[groups], self._g[groups], self._p[groups], projected.numpy(), rank, step.sign)

    def hold(self, places: IntArray, inverse: torch.Tensor, spread: torch.Tensor) -> None:
        """Holds exactly the rows `places`; new ones are computed from A = `inverse` and AFA = `spread`."""
        stay = np.isin(self.places, places)
        new = places[~np.isin(places, self.places)]
        slots, count = np.arange(len(self.places)), len(places)
        late = slots[stay & (slots >= count)]
        gaps = np.concatenate([slots[~stay & (slots < count)], np.arange(len(self.places), count)])
        held = np.resize(self.places, count)
        for array in (self._q, self._g, self._p):
            _put(array, gaps[: len(late)], array[late // LANES, :, late % LANES])
        held[gaps[: len(late)]], held[gaps[len(late) :]] = self.places[late], new
        self.places = held
        for some in _chunks(len(new)):
            slots = gaps[len(late) :][some]
            which = torch.from_numpy(held[slots])
            p, factors = self._rows.shares(which), self._rows.take(which, self._scale)
            if p is not None:
                _put(self._p, slots, p.numpy())
            _put(self._q, slots, _packed(_form(factors, inverse)))
            _put(self._g, slots, _packed(_form(factors, spread)))

    def survey(self, inverse: torch.Tensor) -> FloatArray:
        """tr((I + Q)⁻¹Q) of all rows, held or not."""
        found = np.empty(len(self._rows))
        q = np.zeros((CHUNK // LANES, *self._q.shape[1:]))
        out = np.empty(CHUNK)
        for some in _chunks(len(found)):
            factors = self._rows.take(some, self._scale)
            _put(q, np.arange(len(factors)), _packed(_form(factors, inverse)))
            traces(q, q, 1.0, 1.0, out)
            found[some] = out[: len(factors)]
        return found

    def _traces(self, g: FloatArray, sign: float) -> FloatArray:
        out = np.empty(-(-len(self.places) // LANES) * LANES)
        groups = _groups(slice(0, len(self.places)))
        traces(self._q[groups], g[groups], sign, 1.0 if sign > 0 else 2.0**-40, out)
        return out[: len(self.places)]


def _form(factors: FisherFactors, matrix: torch.Tensor) -> torch.Tensor:
    """X B Xᵀ with X = S ⊗ hᵀ for every row, (n, k, k). B is symmetric, so the blocks above its diagonal suffice."""
    h, s = factors.embeddings, factors.roots
    classes, size = s.shape[1], h.shape[1]
    middle = h.new_zeros(len(h), classes, classes)
    for c in range(classes):
        product = (h @ matrix[c * size : (c + 1) * size, c * size :]).view(len(h), classes - c, size)
        middle[:, c, c:] = torch.einsum("ned,nd->ne", product, h)
    return s @ (middle.triu(1).mT + middle) @ s.mT


def _packed(matrices: torch.Tensor) -> FloatArray:
    """(n, k, k) → (n, k(k+1)/2): lower triangles, row by row."""
    rows, columns = np.tril_indices(matrices.shape[1])
    return np.asarray(matrices.numpy()[:, rows, columns])


def _put(array: FloatArray, slots: IntArray, packed: FloatArray) -> None:
    array[slots // LANES, :, slots % LANES] = packed


def _chunks(count: int) -> list[slice]:
    return [slice(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]


def _groups(slots: slice) -> slice:
    return slice(slots.start // LANES, -(-slots.stop // LANES))
