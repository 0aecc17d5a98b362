"""Some of the candidates of a snapshot."""

from __future__ import annotations

from dataclasses import replace

import torch

from ally.execution.memory import Scratch
from ally.learning.snapshot import Snapshot, View
from ally.sources import blocks
from ally.types import IntArray


class Subsets:
    """Parts of one snapshot and its scores, (n,). The next part overwrites the last, so that all take the space of one
    copy."""

    def __init__(self, snapshot: Snapshot, scores: torch.Tensor, scratch: Scratch) -> None:
        self._snapshot = snapshot
        self._scores = scores
        self._scratch = scratch
        self._space: dict[str, torch.Tensor] = {}

    @property
    def rows(self) -> IntArray:
        """(n,) of the whole."""
        return self._snapshot.candidates.rows

    def __call__(self, keep: torch.Tensor) -> tuple[Snapshot, torch.Tensor]:
        """The candidates where `keep`, (n,) bool, is true, and their scores."""
        if bool(keep.all()):
            return self._snapshot, self._scores
        positions, seen, duals = keep.nonzero().squeeze(1), self._snapshot.candidates, self._snapshot.candidate_duals
        candidates = View(
            rows=seen.rows[positions.numpy()],
            embeddings=self._rows("embeddings", seen.embeddings, positions),
            probabilities=None
            if seen.probabilities is None
            else self._rows("probabilities", seen.probabilities, positions),
            predictions=seen.predictions[positions] if len(seen.predictions) else seen.predictions,
            readouts={name: self._rows(f"readout {name}", values, positions) for name, values in seen.readouts.items()},
            geometry=None if seen.geometry is None else self._rows("geometry", seen.geometry, positions),
        )
        part = replace(
            self._snapshot, candidates=candidates, candidate_duals=None if duals is None else duals[positions]
        )
        return part, self._scores[positions]

    def _rows(self, name: str, values: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        if name not in self._space:
            self._space[name] = self._scratch.empty(*values.shape)
        space = self._space[name][: len(positions)]
        for block in blocks(len(positions)):
            space[block] = values[positions[block]]
        return space
