"""Bayesian scores: how much samples from a predictive distribution differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ally.learning.posterior import DisagreementReadout, MutualInformationReadout
from ally.learning.readouts import Readout
from ally.learning.snapshot import Snapshot
from ally.rng import Streams
from ally.scoring.base import Scored
from ally.types import BOTH_TASKS, Task


class ReadoutScore(ABC):
    """A score that is one readout of the network, unchanged."""

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True

    @abstractmethod
    def _readout(self) -> Readout:
        """Raises if the settings are invalid."""

    def __post_init__(self) -> None:
        self._readout()

    @property
    def readouts(self) -> tuple[Readout, ...]:
        return (self._readout(),)

    def __call__(self, snapshot: Snapshot, streams: Streams) -> Scored:
        return Scored(snapshot.candidates.readouts[self._readout().name].double())


@dataclass(frozen=True)
class MutualInformation(ReadoutScore):
    """BALD: mutual information between label and weights, in nats (Houlsby et al., 2011; Gal et al., 2017).

    It is at most log K for K samples of the weights. For regression it is the variance of the predictions (in
    standardised units), which ranks samples as the mutual information under equal Gaussian noise does.

    Attributes:
        samples: the number of dropout masks, for a network with dropout.
        members: the number of networks trained, for other networks.
    """

    samples: int = 20
    members: int = 5

    def _readout(self) -> MutualInformationReadout:
        return MutualInformationReadout(self.samples, self.members)


@dataclass(frozen=True)
class Disagreement(ReadoutScore):
    """DropQuery's signal (Gupte et al., 2024): the share of copies whose predicted class changes when units of the
    embedding are dropped.

    It works with any network. For regression it is the standard deviation of the predictions.

    Attributes:
        samples: the number of perturbed copies of each embedding.
        rate: the share of units to drop.
    """

    samples: int = 3
    rate: float = 0.75

    def _readout(self) -> DisagreementReadout:
        return DisagreementReadout(self.samples, self.rate)
