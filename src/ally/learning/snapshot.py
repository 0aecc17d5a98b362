"""A fitted learner's outputs for samples: embeddings, probabilities or predictions, and duals, by absolute row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch

from ally.data import BLOCK, Once, Source, blocks, chunks
from ally.execution.memory import Scratch
from ally.types import AnyArray, IntArray, Progress, Task

if TYPE_CHECKING:
    from ally.learning.held import Home
    from ally.learning.learner import Fitted
    from ally.learning.readouts import Readout
    from ally.learning.space import Space

    class Looking(Fitted, Protocol):
        def _look(self, x: Any, rows: IntArray) -> Seen:
            """One block of `inputs` at these rows."""
            ...


RUN = 16 * BLOCK
"""The largest number of rows kept in memory; beyond that, outputs move to scratch space."""
Take: TypeAlias = Callable[[str, torch.Tensor], torch.Tensor]
"""The wanted rows of a field of a `View`, from its name and its values (n, ...)."""


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
    """(n, g) float32 fixed vectors to measure distances in: given as ``embeddings=``, or the inputs if the strategy
    compares those; None for the learner's embeddings."""
    home: Home | None = None
    """Where the samples are, if workers of an engine hold them. Their wide fields are then read by index (`held.Far`),
    and all of them through `mapped`."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def points(self) -> torch.Tensor:
        """(n, d) or (n, g): where distances between samples are measured."""
        return self.embeddings if self.geometry is None else self.geometry

    def at(self, places: torch.Tensor | slice, take: Take | None = None) -> View:
        """The samples at these positions (m,), or in this slice, which copies nothing.

        `take` may gather the rows of the wide fields itself, for instance into space of its own. Samples that workers
        hold are copied here.
        """

        def some(name: str, values: torch.Tensor) -> torch.Tensor:
            return values if not len(values) else values[places] if take is None else take(name, values)

        return View(
            rows=self.rows[places if isinstance(places, slice) else places.numpy()],
            embeddings=some("embeddings", self.embeddings),
            probabilities=None if self.probabilities is None else some("probabilities", self.probabilities),
            predictions=self.predictions[places] if len(self.predictions) else self.predictions,
            readouts={name: some(f"readout {name}", values) for name, values in self.readouts.items()},
            geometry=None if self.geometry is None else some("geometry", self.geometry),
        )

    def among(self, places: torch.Tensor, take: Take | None = None) -> View:
        """The samples at these positions (m,), ascending, as `at`; but samples that workers hold stay there."""
        return self.at(places, take) if self.home is None else self.home.among(self, places.numpy())

    def mapped(self, function: Callable[..., torch.Tensor], *columns: torch.Tensor) -> torch.Tensor:
        """``function(view, start, *columns)`` of runs of whole blocks, put together: a number or a row for each sample,
        or for each block.

        `start` is the position of the run's first sample, and `columns` (n, ...) come as their part for the run. The
        function works block by block and can be pickled, so that it gives the same bits wherever the samples are.
        """
        return function(self, 0, *columns) if self.home is None else self.home.mapped(self, function, *columns)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Predictions for m labelled samples by learners that were not trained on them."""

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
    """For scores that calibrate; None if nothing could be held out."""
    learned: bool = False
    """Whether distances are those of an embedding that was learned from these labels, and so change from round to
    round."""

    def among(self, places: torch.Tensor, take: Take | None = None) -> Snapshot:
        """The same round with only the candidates at these positions (m,), ascending; `take` as in `View.at`."""
        duals = None if self.candidate_duals is None else self.candidate_duals[places]
        return replace(self, candidates=self.candidates.among(places, take), candidate_duals=duals)


class Seen(NamedTuple):
    """One block of samples, as the fields of a `View`."""

    embeddings: torch.Tensor
    probabilities: torch.Tensor | None
    predictions: torch.Tensor


def by_blocks(
    fitted: Fitted,
    source: Source,
    rows: IntArray,
    look: Callable[[Any, IntArray], Seen],
    *,
    readouts: Sequence[Readout] = (),
    members: Sequence[Fitted] = (),
    seed: int = 0,
    start: int = 0,
) -> View:
    """`Fitted.view` from a function of one block: ``look(fitted.inputs(source, rows), rows)``."""
    seen: list[Seen] = []
    read: dict[str, list[torch.Tensor]] = {readout.name: [] for readout in readouts}
    for block in blocks(len(rows)):
        x = fitted.inputs(source, rows[block])
        seen.append(look(x, rows[block]))
        for readout in readouts:
            read[readout.name].append(readout((fitted, *members), x, seed, start + block.start))
    if not seen:
        kind = torch.int64 if fitted.task == "classification" else torch.float64
        return View(rows, torch.empty(0, 0), None, torch.empty(0, dtype=kind))
    probabilities = [part.probabilities for part in seen if part.probabilities is not None]
    return View(
        rows,
        torch.cat([part.embeddings for part in seen]),
        torch.cat(probabilities) if probabilities else None,
        torch.cat([part.predictions for part in seen]),
        {name: torch.cat(parts) for name, parts in read.items()},
    )


class ByBlocks:
    """`view` and `predict` of a `Fitted` that looks at one block of samples at a time."""

    def view(
        self: Looking,
        source: Source,
        rows: IntArray,
        *,
        readouts: Sequence[Readout] = (),
        members: Sequence[Fitted] = (),
        seed: int = 0,
        start: int = 0,
    ) -> View:
        return by_blocks(self, source, rows, self._look, readouts=readouts, members=members, seed=seed, start=start)

    def predict(self: Looking, source: Source) -> AnyArray:
        return predict_labels(self, source)


def view(
    fitted: Fitted,
    source: Source,
    rows: IntArray,
    scratch: Scratch,
    *,
    members: Sequence[Fitted] = (),
    readouts: Sequence[Readout] = (),
    seed: int = 0,
    space: Space | None = None,
    chunk_size: int | None = None,
    progress: Progress | None = None,
) -> View:
    """`Fitted.view` of many rows, with their points in `space`, chunk by chunk into scratch space. A chunk holds whole
    blocks, so its size does not change a bit."""
    filling = Filling(
        fitted, source, rows, scratch, members=members, readouts=readouts, seed=seed, space=space, chunk_size=chunk_size
    )
    while filling.done < len(rows):
        filling.fill(filling.done + 1)
        if progress is not None:
            progress("embed", filling.done, len(rows))
    return filling.view


class Filling:
    """A view that is filled chunk by chunk; a chunk is read once. `start` is the place of the first row in the whole
    pass."""

    def __init__(
        self,
        fitted: Fitted,
        source: Source,
        rows: IntArray,
        scratch: Scratch,
        *,
        members: Sequence[Fitted] = (),
        readouts: Sequence[Readout] = (),
        seed: int = 0,
        space: Space | None = None,
        chunk_size: int | None = None,
        start: int = 0,
    ) -> None:
        self._source = source if space is None or space.vectors is not None else Once(source)
        self._space = None if space is None else replace(space, source=self._source)
        self._fitted, self._rows, self._scratch = fitted, rows, scratch
        self._members, self._readouts, self._seed, self._start = members, readouts, seed, start
        self._chunks = chunks(len(rows), min(chunk_size or RUN, RUN), math.prod(source.shape))
        self._kept: dict[str, torch.Tensor] = {}
        kind = torch.int64 if fitted.task == "classification" else torch.float64
        self._predictions = torch.empty(len(rows), dtype=kind)
        self.done = 0

    def fill(self, least: int) -> int:
        """Processes more chunks until at least this many rows are done, or all. Returns how many are done."""
        while self.done < min(least, len(self._rows)):
            chunk = next(self._chunks)
            if self._space is not None:
                self._keep("geometry", self._space.read(self._rows[chunk]), chunk)
            seen = self._fitted.view(
                self._source,
                self._rows[chunk],
                readouts=self._readouts,
                members=self._members,
                seed=self._seed,
                start=self._start + chunk.start,
            )
            self._keep("embeddings", seen.embeddings, chunk)
            if seen.probabilities is not None:
                self._keep("probabilities", seen.probabilities, chunk)
            self._predictions[chunk] = seen.predictions
            for name, found in seen.readouts.items():
                self._keep(f"readout {name}", found, chunk)
            self.done = chunk.stop
        return self.done

    @property
    def view(self) -> View:
        kept = self._kept
        read = {name.removeprefix("readout "): found for name, found in kept.items() if name.startswith("readout ")}
        embeddings = kept.get("embeddings", torch.empty(0, 0))
        probabilities, geometry = kept.get("probabilities"), kept.get("geometry")
        return View(self._rows, embeddings, probabilities, self._predictions, read, geometry)

    def _keep(self, name: str, found: torch.Tensor, here: slice) -> None:
        if name not in self._kept:
            self._kept[name] = self._scratch.empty(len(self._rows), *found.shape[1:])
        self._kept[name][here] = found


def predict_labels(fitted: Fitted, source: Source) -> AnyArray:
    """`Fitted.predict` from its view: classes by name, or targets, (n,)."""
    with Scratch() as scratch:
        numbers = view(fitted, source, np.arange(len(source)), scratch).predictions.numpy()
    return numbers if fitted.classes is None else class_array(fitted.classes)[numbers]


def class_array(classes: Sequence[Any]) -> AnyArray:
    """Classes of any types as an array of objects, (C,)."""
    array: AnyArray = np.empty(len(classes), dtype=object)
    array[:] = classes
    return array
