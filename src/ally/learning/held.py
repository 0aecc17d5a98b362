"""Candidates that stay with the workers of an engine.

One worker, `HeldShard`, computes and keeps the learner's view of a shard. The coordinator has an ordinary `View`, whose
wide fields are `Far`: tensors whose rows are fetched on demand. Work over all candidates is sent to them instead: a
function of rows by `View.mapped`, and the kernel of a selection as a guest of the shards (`Home.guests`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch

from ally.data import BLOCK, Source
from ally.data.base import CHUNK_BYTES
from ally.errors import BrokenPart
from ally.execution.engine import Crew, Engine, Shared
from ally.execution.memory import Scratch
from ally.learning.learner import Fitted
from ally.learning.readouts import Readout
from ally.learning.snapshot import Filling, View
from ally.learning.space import Space, fixed_points
from ally.types import AnyArray, IntArray, Progress

STEPS = 20
"""How many calls a pass over a shard takes, so that progress can be reported."""
NARROW = 4
"""The coordinator holds readouts of up to this many numbers per sample."""
EMBEDDINGS, PROBABILITIES, GEOMETRY, READOUT = "embeddings", "probabilities", "geometry", "readout "


@dataclass(frozen=True, eq=False)
class Look:
    """How shards are viewed: by a fit and the other members of its ensemble or, without a fit, in `space` alone."""

    source: Source
    fit: Fitted | None
    space: Space | None
    """Where distances are measured instead of the fit's embeddings."""
    members: Sequence[Fitted] = ()
    readouts: Sequence[Readout] = ()
    seed: int = 0
    chunk_size: int | None = None
    budget: int | None = None
    """Bytes that a shard may take in memory."""


class Run(NamedTuple):
    """A run of candidates: the position of the first, and their absolute rows."""

    start: int
    rows: IntArray


class Kind(NamedTuple):
    """The shape of one row of a wide field, and the type of its numbers."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Facts(NamedTuple):
    """The part of a shard that the coordinator keeps: the narrow fields, and the kinds of the wide ones."""

    predictions: AnyArray
    readouts: dict[str, AnyArray]
    kinds: dict[str, Kind]


class HeldShard:
    """A worker: a run of candidates as the learner sees them, and the kernels that work on them."""

    def __init__(self, look: Shared[Look], run: Run) -> None:
        self._look, self._run = look(), run
        self._scratch = Scratch(self._look.budget)
        self._filling = self._view = None
        look_, rows = self._look, run.rows
        if look_.fit is None:
            assert look_.space is not None
            points = fixed_points(look_.space, rows, self._scratch, look_.chunk_size)
            self._view = View(rows, points, None, torch.empty(0))
        else:
            self._filling = Filling(
                look_.fit,
                look_.source,
                rows,
                self._scratch,
                members=look_.members,
                readouts=look_.readouts,
                seed=look_.seed,
                space=look_.space,
                chunk_size=look_.chunk_size,
                start=run.start,
            )
        self._guests: dict[int, Any] = {}
        self._builds: dict[int, Callable[..., Any]] = {}

    def look(self, share: float) -> int:
        """Views the candidates up to this share of them. Returns how many that is."""
        if self._filling is None:
            return len(self._run.rows)
        done = self._filling.fill(math.ceil(share * len(self._run.rows)))
        if done == len(self._run.rows):
            self._view, self._filling = self._filling.view, None
        return done

    def facts(self) -> Facts:
        fields = wide_fields(self.view)
        narrow = {
            name.removeprefix(READOUT): values.numpy()
            for name, values in fields.items()
            if name.startswith(READOUT) and math.prod(values.shape[1:]) <= NARROW
        }
        kinds = {name: Kind(tuple(values.shape[1:]), values.dtype) for name, values in fields.items()}
        return Facts(self.view.predictions.numpy(), narrow, kinds)

    def read(self, field: str, places: slice | IntArray) -> AnyArray:
        """Rows of a wide field."""
        values = wide_fields(self.view)[field]
        return values[places if isinstance(places, slice) else torch.from_numpy(places)].numpy()

    def apply(
        self, function: Callable[..., torch.Tensor] | None, places: slice | IntArray, start: int, *columns: torch.Tensor
    ) -> AnyArray | None:
        """A function of the candidates at `places`, the first of which is number `start` of those asked about."""
        return None if function is None else function(self._at(places), start, *columns).numpy()

    def bring(self, guest: int, build: Callable[..., Any]) -> None:
        self._builds[guest] = build

    def begin(self, guest: int, places: slice | IntArray, scores: torch.Tensor, start: int) -> None:
        self._guests[guest] = self._builds.pop(guest)(self._at(places), scores, start)

    def ask(self, guest: int, method: str, *args: Any) -> Any:
        return getattr(self._guests[guest], method)(*args)

    def end(self, guest: int) -> None:
        self._guests.pop(guest, None)
        self._builds.pop(guest, None)

    @property
    def view(self) -> View:
        if self._view is None:
            raise BrokenPart("the shard was not looked at; call look(1.0) first")
        return self._view

    def _at(self, places: slice | IntArray) -> View:
        return self.view.at(places if isinstance(places, slice) else torch.from_numpy(places))


def wide_fields(view: View) -> dict[str, torch.Tensor]:
    """Those of embeddings, probabilities, geometry and readouts that exist, by name."""
    found = {EMBEDDINGS: view.embeddings, PROBABILITIES: view.probabilities, GEOMETRY: view.geometry}
    wide = {name: values for name, values in found.items() if values is not None}
    return wide | {READOUT + name: values for name, values in view.readouts.items()}


@dataclass(frozen=True, eq=False)
class Home:
    """Where candidates live: the workers of a crew of `HeldShard`, each with a run of them."""

    crew: Crew
    edges: IntArray
    """(shards + 1,) where the runs begin and end."""
    kinds: Mapping[str, Kind]
    places: IntArray | None = None
    """(n,) the positions that are candidates, ascending; None is all."""

    def __len__(self) -> int:
        return int(self.edges[-1]) if self.places is None else len(self.places)

    @property
    def cuts(self) -> IntArray:
        """(shards + 1,) where the candidates of each shard begin and end among all candidates."""
        return self.edges if self.places is None else np.searchsorted(self.places, self.edges)

    def view(self, rows: IntArray, predictions: torch.Tensor, narrow: Mapping[str, torch.Tensor]) -> View:
        """A view of the candidates, with the fields that the coordinator holds."""
        far = {name: Far(self, name, kind) for name, kind in self.kinds.items()}
        readouts = {name.removeprefix(READOUT): value for name, value in far.items() if name.startswith(READOUT)}
        return View(
            rows,
            far[EMBEDDINGS],
            far.get(PROBABILITIES),
            predictions,
            {**readouts, **narrow},
            far.get(GEOMETRY),
            home=self,
        )

    def among(self, view: View, positions: IntArray) -> View:
        """The view with only the candidates at these positions, ascending; they stay where they are."""
        home = self.of(positions)
        chosen = torch.from_numpy(positions)
        narrow = {name: values[chosen] for name, values in view.readouts.items() if not isinstance(values, Far)}
        predictions = view.predictions[chosen] if len(view.predictions) else view.predictions
        return home.view(view.rows[positions], predictions, narrow)

    def of(self, positions: IntArray) -> Home:
        """The same for only the candidates at these positions, ascending."""
        return replace(self, places=positions if self.places is None else self.places[positions])

    def read(self, field: str, positions: IntArray) -> torch.Tensor:
        """Rows of a wide field, in any order."""
        there = positions if self.places is None else self.places[positions]
        order = np.argsort(there, kind="stable")
        cuts = np.searchsorted(there[order], self.edges)
        with self.crew.passing():
            parts = self.crew.scatter(
                "read",
                [
                    (field, _run(there[order[first:last]] - start))
                    for start, first, last in zip(self.edges[:-1], cuts[:-1], cuts[1:], strict=True)
                ],
            )
        kind = self.kinds[field]
        found = torch.empty(len(there), *kind.shape, dtype=kind.dtype)
        for first, last, part in zip(cuts[:-1], cuts[1:], parts, strict=True):
            found[torch.from_numpy(order[first:last])] = _tensor(part)
        return found

    def mapped(self, view: View, function: Callable[..., torch.Tensor], *columns: torch.Tensor) -> torch.Tensor:
        """See `View.mapped`. Blocks that span two shards are computed here."""
        size, done = len(self), 0
        jobs: list[tuple[Any, ...]] = []
        here: list[slice] = []
        for shard, (first, last) in enumerate(itertools.pairwise(self.cuts.tolist())):
            start = -(-first // BLOCK) * BLOCK
            stop = last if last == size else last // BLOCK * BLOCK
            if start >= stop:
                jobs.append((None, slice(0, 0), size))
                continue
            jobs.append((function, self._local(shard, slice(start, stop)), start, *(c[start:stop] for c in columns)))
            here.append(slice(done, start))
            done = stop
        here.append(slice(done, size))
        with self.crew.passing():
            found = self.crew.scatter("apply", jobs)
        parts = [(job[2], _tensor(part)) for job, part in zip(jobs, found, strict=True) if part is not None]
        for some in here:
            if some.start < some.stop:
                near = view.at(torch.arange(some.start, some.stop))
                parts.append((some.start, function(near, some.start, *(column[some] for column in columns))))
        parts.sort(key=lambda part: part[0])
        return torch.cat([part for _, part in parts])

    def guests(self, build: Callable[[View, torch.Tensor, int], Any], scores: torch.Tensor) -> Crew:
        """A crew of kernels, one in each shard: ``build(candidates of the shard, their scores, start)``."""
        return Guests(self, build, scores)

    def _local(self, shard: int, some: slice) -> slice | IntArray:
        """Candidates in `some`, all of one shard, by their place in it."""
        start = int(self.edges[shard])
        if self.places is None:
            return slice(some.start - start, some.stop - start)
        return self.places[some] - start


def _tensor(array: AnyArray) -> torch.Tensor:
    """A writable copy: received arrays are read-only, and torch needs writable ones."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _run(places: IntArray) -> slice | IntArray:
    """A slice instead of the places, if they are consecutive."""
    if len(places) and int(places[-1]) - int(places[0]) == len(places) - 1 and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


_NUMBERS = itertools.count()


class Guests:
    """Kernels that live in the workers of a home until the block ends."""

    def __init__(self, home: Home, build: Callable[..., Any], scores: torch.Tensor) -> None:
        self._crew, self._number, self._open = home.crew, next(_NUMBERS), True
        self._passing: AbstractContextManager[None] = self._crew.passing()
        self._passing.__enter__()
        try:
            self._crew.each("bring", self._number, build)
            self._crew.scatter(
                "begin",
                [
                    (self._number, home._local(shard, slice(first, last)), scores[first:last], first)
                    for shard, (first, last) in enumerate(itertools.pairwise(home.cuts.tolist()))
                ],
            )
        except BaseException:
            self._close()
            raise

    def __len__(self) -> int:
        return len(self._crew)

    def each(self, method: str, *args: Any) -> list[Any]:
        return self._crew.each("ask", self._number, method, *args)

    def one(self, worker: int, method: str, *args: Any) -> Any:
        return self._crew.one(worker, "ask", self._number, method, *args)

    def scatter(self, method: str, args: Sequence[tuple[Any, ...]]) -> list[Any]:
        return self._crew.scatter("ask", [(self._number, method, *own) for own in args])

    def passing(self) -> AbstractContextManager[None]:
        return self._crew.passing()

    def __enter__(self) -> Guests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an interrupt we do not wait for the workers; they end with their crew.
        if kind is None or issubclass(kind, Exception):
            self._crew.each("end", self._number)
        self._close()

    def _close(self) -> None:
        if self._open:
            self._open = False
            self._passing.__exit__(None, None, None)


class Far(torch.Tensor):
    """(n, ...) numbers that are elsewhere. It has the shape and type of a tensor. Rows are fetched by index, as a plain
    tensor; consecutive runs are fetched a chunk at a time. Any other use is an error."""

    home: Home
    field: str
    _ahead: tuple[int, torch.Tensor]

    @staticmethod
    def __new__(cls, home: Home, field: str, kind: Kind) -> Far:
        far: Far = torch.Tensor._make_wrapper_subclass(cls, (len(home), *kind.shape), dtype=kind.dtype)
        far.home, far.field, far._ahead = home, field, (0, torch.empty(0, *kind.shape, dtype=kind.dtype))
        return far

    def __init__(self, home: Home, field: str, kind: Kind) -> None:
        pass

    def __getitem__(self, which: Any) -> torch.Tensor:
        if isinstance(which, slice):
            return self._slice(*which.indices(len(self)))
        if isinstance(which, (int, np.integer)):
            return self.home.read(self.field, np.asarray([range(len(self))[which]]))[0]
        positions = np.asarray(which)
        if positions.dtype == bool:
            positions = np.flatnonzero(positions)
        return self.home.read(self.field, positions)

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Far({self.field!r}, shape={tuple(self.shape)})"

    def _slice(self, start: int, stop: int, step: int) -> torch.Tensor:
        if step != 1:
            return self.home.read(self.field, np.arange(start, stop, step))
        first, held = self._ahead
        if start < first or stop > first + len(held):
            most = stop
            if start == first + len(held) or start == 0:
                width = max(1, math.prod(self.shape[1:]))
                most = min(len(self), max(stop, start + max(1, CHUNK_BYTES // (4 * width * BLOCK)) * BLOCK))
            first, held = self._ahead = start, self.home.read(self.field, np.arange(start, most))
        return held[start - first : max(stop, start) - first]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> NoReturn:
        raise BrokenPart(
            f"{function} cannot be used on candidates that the engine's workers hold; read them block by block, or use "
            "View.mapped"
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise BrokenPart("candidates that the engine's workers hold cannot be sent to others")


def spread(engine: Engine, look: Look, rows: IntArray, scratch: Scratch, progress: Progress | None = None) -> View:
    """The view `look` of the candidates `rows` (at least one), held by workers of the engine for as long as
    `scratch`."""
    blocks = -(-len(rows) // BLOCK)
    edges = np.linspace(0, blocks, min(engine.parts(len(rows)), blocks) + 1).astype(np.int64) * BLOCK
    edges[-1] = len(rows)
    runs = [Run(start, rows[start:stop]) for start, stop in itertools.pairwise(edges.tolist())]
    crew = scratch.until_the_end(engine.crew(runs, _Holding(engine.share(look))))
    for step in range(STEPS):
        done = sum(crew.each("look", (step + 1) / STEPS))
        if progress is not None:
            progress("embed", done, len(rows))
    with crew.passing():
        facts: list[Facts] = crew.each("facts")
    kinds = {
        name: kind
        for name, kind in facts[0].kinds.items()
        if not (name.startswith(READOUT) and name.removeprefix(READOUT) in facts[0].readouts)
    }
    narrow = {
        name: torch.from_numpy(np.concatenate([fact.readouts[name] for fact in facts])) for name in facts[0].readouts
    }
    predictions = torch.from_numpy(np.concatenate([fact.predictions for fact in facts]))
    return Home(crew, edges, kinds).view(rows, predictions, narrow)


@dataclass(frozen=True, eq=False)
class _Holding:
    look: Shared[Look]

    def __call__(self, run: Run) -> HeldShard:
        return HeldShard(self.look, run)
