"""The settings of hygiene, and what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ally.checks import check_number
from ally.errors import InputError

Duplicates = Literal["keep", "exact", "near"]


@dataclass(frozen=True)
class Hygiene:
    """Which candidates a query sets aside. If too few others are left, some are used after all and come last.

    Near duplicates and outliers are found by distances in the embedding space of the query: the vectors given as
    ``embeddings=``, else the network's embeddings, or the inputs if nothing is trained. The default of `near` suits
    images: on MNIST (slim ResNet-18, 300 labels) copies with noise of 1 % of the grey range lie at 0.01 to 0.04
    typical distances, those with 3 % at 0.03 to 0.11, and no two different images of 1000 below 0.05; of 8000 images
    seen by an MLP, about one in fifty has another within 0.05. Noise on features that are otherwise almost constant is
    not recognised where features are standardised one by one: it is magnified with them.

    Attributes:
        duplicates: ``"exact"`` keeps the lowest row of candidates with identical inputs, and none that copies a
            labelled, pending or skipped sample. ``"near"`` also keeps picks apart from each other and from those
            samples: picks that are too close are set aside and the selection is repeated, up to 64 times. ``"keep"``
            does neither.
        near: samples within this many typical distances (root mean square over random pairs of candidates) are near
            duplicates.
        outliers: share of the candidates to set aside, those farthest from the others; None for no guard.
    """

    duplicates: Duplicates = "exact"
    near: float = 0.05
    outliers: float | None = None

    def __post_init__(self) -> None:
        if self.duplicates not in get_args(Duplicates):
            raise InputError.about("duplicates", self.duplicates, "; pass 'keep', 'exact' or 'near'")
        check_number("near", self.near, positive=True)
        if self.outliers is not None and check_number("outliers", self.outliers, positive=True) >= 1:
            raise InputError.about(
                "outliers",
                self.outliers,
                "is not a share of the candidates; use a number below 1, such as 0.02, or None",
            )

    @property
    def compares(self) -> bool:
        """Whether it looks at distances between candidates."""
        return self.duplicates == "near" or self.outliers is not None


@dataclass(frozen=True)
class SetAside:
    """How many candidates were set aside, by reason, and how many of these were recalled to fill the batch."""

    exact: int = 0
    near: int = 0
    outliers: int = 0
    bound: int = 0
    """Above the bound of the score (`PredictedDual.cap` and `ceiling`)."""
    recalled: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for everything that happened."""
        sentences = (
            (self.exact, f"{_counted(self.exact, 'exact copy', 'exact copies')} set aside"),
            (self.near, f"{_counted(self.near, 'near duplicate', 'near duplicates')} set aside"),
            (self.outliers, f"{_counted(self.outliers, 'outlier', 'outliers')} set aside"),
            (self.bound, f"{_counted(self.bound, 'candidate', 'candidates')} above the bound on the score set aside"),
            (
                self.recalled,
                f"{self.recalled} of those set aside are used after all, because too few others are left; they come "
                "last",
            ),
        )
        return tuple(sentence for count, sentence in sentences if count)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
