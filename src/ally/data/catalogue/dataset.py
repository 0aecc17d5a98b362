"""A data set, once it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from ally.errors import DataError
from ally.types import AnyArray, Task

Kind: TypeAlias = Literal["images", "table", "text"]


class Parts(NamedTuple):
    """Samples and labels of the pool and the test set, as a reader returns them."""

    pool: AnyArray
    pool_labels: AnyArray
    test: AnyArray
    test_labels: AnyArray
    notes: tuple[str, ...] = ()
    raw: tuple[Sequence[Any], Sequence[Any]] | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A pool to query and a test set to measure on, both with labels.

    Tables are (n, d) arrays, text is an (n, d) scipy sparse csr matrix of float32, images are (n, c, h, w) uint8
    arrays.
    """

    name: str
    task: Task
    pool: AnyArray = field(repr=False)
    pool_labels: AnyArray = field(repr=False)
    test: AnyArray = field(repr=False)
    test_labels: AnyArray = field(repr=False)
    kind: Kind = "table"
    notes: tuple[str, ...] = ()
    """Sentences that tell readers of the results about the data."""
    raw: tuple[Sequence[Any], Sequence[Any]] | None = field(default=None, repr=False)
    """For an encoder: the texts, or the paths of the photos, of the pool and of the test set. None if `pool` and `test`
    are the images themselves, or there is nothing to encode."""
    vectors: bool = False
    """Whether the samples are vectors whose distances are meaningful."""
    words: tuple[Any, Any] | None = field(default=None, repr=False)
    """Weights of words (n, d) of the pool and of the test set, where the samples are vectors of texts."""
    encoder: str = ""
    """The name of the encoder that made the vectors."""

    def __post_init__(self) -> None:
        for side, X, y in (("pool", self.pool, self.pool_labels), ("test", self.test, self.test_labels)):
            if X.shape[0] != len(y) or not len(y):
                raise DataError(
                    f"the {side} of {self.name!r} has {X.shape[0]} samples and {len(y)} labels; both must be equal "
                    "and above 0"
                )
