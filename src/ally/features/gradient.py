r"""BADGE's hypothetical gradient of the last layer, in factored form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from ally.features.product import ProductRows
from ally.learning.snapshot import View
from ally.sources import blocks
from ally.types import CLASSIFICATION, Task


@dataclass(frozen=True)
class Gradient:
    r""":math:`g = a \otimes h` with :math:`a = p - \mathrm{onehot}(\arg\max p)`: factors (n, C) and (n, d)."""

    tasks: ClassVar[frozenset[Task]] = CLASSIFICATION

    def __call__(self, view: View) -> ProductRows:
        return ProductRows((residuals(view), view.embeddings))


def residuals(view: View) -> torch.Tensor:
    """a, (n, C). The entry of the predicted class is −(sum of the others), which keeps digits that 1 − p would lose."""
    assert view.probabilities is not None
    result = torch.empty_like(view.probabilities)
    for block in blocks(len(view)):
        a = view.probabilities[block].clone()
        top = a.argmax(1, keepdim=True)
        a.scatter_(1, top, 0.0)
        result[block] = a.scatter(1, top, -a.sum(1, keepdim=True))
    return result
