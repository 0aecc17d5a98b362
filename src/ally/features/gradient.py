r"""Gradients of the last layer, in factored form: BADGE's hypothetical gradient, and the gradient of a regression
output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.data import blocks
from ally.features.embedding import Embedding
from ally.features.product import Patched, ProductRows
from ally.learning.snapshot import View
from ally.types import BOTH_TASKS, CLASSIFICATION, Task


@dataclass(frozen=True)
class Gradient:
    r""":math:`g = a \otimes h` with :math:`a = p - \mathrm{onehot}(\arg\max p)`: factors (n, C) and (n, d).

    It is a gradient of the network, so h is the network's own embedding, even if ``embeddings=`` is given.
    """

    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def __call__(self, view: View) -> ProductRows:
        return ProductRows((residuals(view), view.embeddings))


@dataclass(frozen=True)
class LastLayer:
    r"""`Gradient` for classification; for regression, and before there are labels, `Embedding`.

    The gradient of a single output with respect to the weights and bias of its layer is (h, 1). The 1 adds a constant
    to inner products and nothing to distances, so these gradients have the same distances as the embeddings.
    """

    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    label_free: ClassVar[bool] = True

    def __call__(self, view: View) -> ProductRows:
        return Embedding()(view) if view.probabilities is None else Gradient()(view)


def residuals(view: View) -> Patched:
    """a, (n, C): p, except that the entry of the predicted class is −(sum of the others), which keeps digits that p − 1
    would lose."""
    assert view.probabilities is not None
    top = torch.empty(len(view), dtype=torch.int32)
    values = torch.empty(len(view), dtype=view.probabilities.dtype)
    for block in blocks(len(view)):
        a = view.probabilities[block].clone()
        top[block] = a.argmax(1)
        values[block] = -a.scatter_(1, a.argmax(1, keepdim=True), 0.0).sum(1)
    return Patched(view.probabilities, top, values)
