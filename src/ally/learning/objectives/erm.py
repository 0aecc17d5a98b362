"""Empirical risk minimisation: the mean loss, no constraints."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ally.learning.objectives.base import Batch, Problem, Session, UnlabelledBatch, forward
from ally.learning.objectives.regularizers import Regularizer


@dataclass(frozen=True)
class ERM:
    """Minimise mean ℓ, plus R(f) if given."""

    regularizer: Regularizer | None = None

    def start(self, problem: Problem) -> Session:
        return _ERMSession(problem, self)


class _ERMSession(Session):
    def __init__(self, problem: Problem, objective: ERM) -> None:
        super().__init__(problem)
        self._regularizer = objective.regularizer

    def loss(self, model: nn.Module, batch: Batch, unlabelled: UnlabelledBatch | None) -> torch.Tensor:
        losses = self.problem.loss(forward(model, batch.x), batch.targets)
        risk = self.problem.weighted(losses, batch.index).mean()
        return risk if self._regularizer is None else risk + self._regularizer(model)
