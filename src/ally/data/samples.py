"""What a labelling campaign sees of a source: samples by stable ids, what a person is shown, what a learner reads.

The contract of `Samples`:

- The same source found again gives the same ids. What was learned from it once (columns, categories, word weights) is
  in `fingerprint()`; a campaign keeps it and passes it to ``open_source(..., known=...)``, so that features keep their
  meaning.
- `scan` empties `problems` and goes through the source once, in its order; it keeps some bytes per sample and no more.
  A sample that cannot be read, or whose id was met before, is left out and recorded in `problems`; `scan` raises only
  if nothing at all can be read.
- `features(ids)` has one row per id, in that order. Ids that the source does not have are refused (`missing` says
  which). What becomes unreadable later is read as neutral values and recorded in `problems`.
- `show` never leaves the folder of the source.

``ally.testing.samples.check_samples`` tries all of this on samples of yours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ally.data.arrays.memory import ArraySource, SparseSource
from ally.data.base import Source
from ally.data.problems import Problems
from ally.errors import IdError, InputError
from ally.types import AnyArray, IntArray

if TYPE_CHECKING:
    from ally.data.kinds import SampleKind


class Sample(NamedTuple):
    id: str
    hash: str | None
    """Changes when the content changes; equal content may be two samples."""
    label: Any = None
    """What the source says already, or None."""


@dataclass(frozen=True)
class Shown:
    """What a person labels: an image, a text, or columns of a table (which may also accompany the other two). An image
    is a file, or `picture`: the bytes of one, such as a PNG, that was drawn of the sample."""

    id: str
    path: Path | None = None
    mime: str | None = None
    picture: bytes | None = field(default=None, repr=False)
    text: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)


class Samples(ABC):
    """See the contract above."""

    problems: Problems

    @property
    @abstractmethod
    def kind(self) -> SampleKind: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided about the source, in sentences."""
        return ()

    def columns(self) -> dict[str, str]:
        """By column of a table, how it is read, once what is learned from it is known; empty for other sources."""
        return {}

    @abstractmethod
    def scan(self) -> Iterator[Sample]: ...

    @abstractmethod
    def show(self, id: str) -> Shown: ...

    @abstractmethod
    def missing(self, ids: Sequence[str]) -> list[str]:
        """Those of `ids` that the source does not have (any more); recorded in `problems` as gone."""

    @abstractmethod
    def features(self, ids: Sequence[str]) -> Source: ...

    def contents(self, ids: Sequence[str]) -> list[str | Path | None]:
        """What an encoder reads: the text of each id, or the path of its image; None, and a problem, where there is
        none. Raises where the samples are neither texts nor images."""
        raise InputError(f"{self.kind.words[1]} are neither texts nor images; leave out the encoder")

    def fingerprint(self, *, learned: bool = True) -> dict[str, Any]:
        """Plain values that JSON can hold; without `learned`, only those that cost nothing to know. A kind of your own
        keeps what it likes under ``"own"``."""
        return {"version": 1, "kind": self.kind.name, "from": "own", "own": {}}


def notes_beside_columns(samples: Samples) -> list[str]:
    """The notes, but for those that `columns` repeats."""
    told = {f"column {name!r} is {how}" for name, how in samples.columns().items()}
    return [note for note in samples.notes if note not in told]


Load: TypeAlias = Callable[[Sequence[str]], AnyArray]
"""Values (n, *shape) of n ids."""


def note_gone(ids: Sequence[str], there: Iterable[bool], problems: Problems) -> list[str]:
    """Those of `ids` that are not there, recorded."""
    gone = [id for id, here in zip(ids, there, strict=True) if not here]
    for id in gone:
        problems.add(id, "gone", "it is no longer in the source")
    return gone


def ensure_none_gone(gone: Sequence[str], ids: Sequence[str], place: object) -> None:
    if gone:
        raise IdError(
            f"{len(gone)} of {len(ids)} ids are not in {place}, for instance {gone[0]!r}; leave out what missing() "
            "lists"
        )


class ById(Source):
    """The samples of these ids, row by row, as `load` gives them."""

    divisible = True

    def __init__(
        self,
        ids: Sequence[str],
        shape: tuple[int, ...],
        load: Load,
        names: tuple[str, ...] = (),
        *,
        sparse: bool = False,
        vectors: bool = False,
        words: Source | None = None,
    ) -> None:
        self.ids, self.load, self.names = ids, load, names
        self.sparse, self.vectors, self.words = sparse, vectors, words
        self._shape = shape

    def __repr__(self) -> str:
        return f"ById({len(self.ids)} samples of shape {self._shape})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def __len__(self) -> int:
        return len(self.ids)

    def read(self, rows: IntArray) -> AnyArray:
        return self.load([self.ids[row] for row in rows])

    def part(self, run: slice) -> Source:
        """A run of the samples, read here: what other processes get, so that problems with a sample are met here."""
        import scipy.sparse

        values = self.read(np.arange(*run.indices(len(self))))
        return SparseSource(scipy.sparse.csr_array(values)) if self.sparse else ArraySource(values)
