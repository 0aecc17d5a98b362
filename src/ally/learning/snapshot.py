"""What a fitted learner says about samples: embeddings, probabilities or predictions, and duals, by absolute row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from ally.errors import NonFiniteInput
from ally.execution.memory import Scratch
from ally.learning.fit import Fit
from ally.learning.readouts import Readout
from ally.sources import Source, blocks, chunks
from ally.types import IntArray, Progress, Task


@dataclass(frozen=True, eq=False)
class View:
    """n samples as the learner sees them."""

    rows: IntArray
    """(n,) absolute rows, ascending."""
    embeddings: torch.Tensor
    """(n, d) float32."""
    probabilities: torch.Tensor | None
    """(n, C) float32 for classification."""
    predictions: torch.Tensor
    """(n,) class numbers (int64), or targets in their own units (float64)."""
    readouts: Mapping[str, torch.Tensor] = field(default_factory=dict)
    """(n, ...) what the strategy's readouts gave, by name."""
    geometry: torch.Tensor | None = None
    """(n, g) float32 vectors given as ``embeddings=`` to measure distances in; None for the network's own."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def points(self) -> torch.Tensor:
        """(n, d) or (n, g): where distances between samples are measured."""
        return self.embeddings if self.geometry is None else self.geometry

    def at(self, places: torch.Tensor) -> View:
        """The samples at these positions (m,)."""
        some = [tensor[places] if len(tensor) else tensor for tensor in (self.embeddings, self.predictions)]
        probabilities, geometry = (
            None if tensor is None else tensor[places] for tensor in (self.probabilities, self.geometry)
        )
        readouts = {name: values[places] for name, values in self.readouts.items()}
        return View(self.rows[places.numpy()], some[0], probabilities, some[1], readouts, geometry)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What networks say about m labelled samples that they were not trained on."""

    probabilities: torch.Tensor
    """(m, C)."""
    labels: torch.Tensor
    """(m,) class numbers, int64."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Candidates and labelled samples of one round, with labels and λ of the labelled."""

    task: Task
    candidates: View
    labelled: View
    labels: torch.Tensor | None = None
    """(L,) class numbers or targets of the labelled samples, float64."""
    duals: torch.Tensor | None = None
    """(L,) λ of the labelled samples."""
    candidate_duals: torch.Tensor | None = None
    """(n,) λ of the candidates, for an objective with constraints over them; NaN where it is not known."""
    held_out: HeldOut | None = None
    """For scores that calibrate; None where nothing could be held out."""

    def among(self, places: torch.Tensor) -> Snapshot:
        """The same round with only the candidates at these positions (m,), ascending."""
        duals = None if self.candidate_duals is None else self.candidate_duals[places]
        return replace(self, candidates=self.candidates.at(places), candidate_duals=duals)


def view(
    fit: Fit,
    source: Source,
    rows: IntArray,
    scratch: Scratch,
    *,
    members: Sequence[Fit] = (),
    readouts: Sequence[Readout] = (),
    seed: int = 0,
    chunk_size: int | None = None,
    progress: Progress | None = None,
) -> View:
    """Embeds `rows` chunk by chunk. Each block of rows is computed alone, so the chunk size does not change a bit.

    `readouts` are given the fit and the other `members` of its ensemble.
    """
    read: dict[str, torch.Tensor] = {}
    embeddings: torch.Tensor | None = None
    probabilities: torch.Tensor | None = None
    predictions = torch.empty(len(rows), dtype=torch.int64 if fit.task == "classification" else torch.float64)
    for chunk in chunks(len(rows), chunk_size, math.prod(source.shape)):
        values = source.read(rows[chunk])
        for block in blocks(len(values)):
            here = slice(chunk.start + block.start, chunk.start + block.stop)
            x = fit.inputs(values[block])
            embedding, outputs = fit.embed(x)
            _check_finite(embedding, outputs, rows[here])
            if embeddings is None:
                embeddings = scratch.empty(len(rows), embedding.shape[1])
                if fit.task == "classification":
                    probabilities = scratch.empty(len(rows), outputs.shape[1])
            embeddings[here] = embedding
            if probabilities is not None:
                probabilities[here] = outputs.double().softmax(1).float()
                predictions[here] = outputs.argmax(1)
            else:
                predictions[here] = fit.scale.invert(outputs.double().squeeze(1))
            for readout in readouts:
                found = readout((fit, *members), x, seed, here.start)
                if readout.name not in read:
                    read[readout.name] = scratch.empty(len(rows), *found.shape[1:])
                read[readout.name][here] = found
        if progress is not None:
            progress("embed", chunk.stop, len(rows))
    if embeddings is None:
        embeddings = torch.empty(0, 0)
    return View(rows, embeddings, probabilities, predictions, read)


def _check_finite(embedding: torch.Tensor, outputs: torch.Tensor, rows: IntArray) -> None:
    finite = torch.isfinite(embedding).all(1) & torch.isfinite(outputs).all(1)
    if not bool(finite.all()):
        row = int(rows[int((~finite).nonzero()[0])])
        raise NonFiniteInput(
            f"the network gives NaN or infinity for sample {row}; check its features, or lower the learning rate"
        )
