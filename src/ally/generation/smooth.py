r"""Steps that follow the data.

.. math:: K = \tfrac1m \sum_i d_i d_i^\top,\quad d_i = (x_i - \bar x) / s

Neighbouring pixels go together in images, and columns of a table with one another; a gradient knows nothing of that and
changes each on its own. A step along K g instead of g is a mixture of the ways in which samples differ from their mean,
each weighted by how far it leads up. K is positive semidefinite, so that K g leads up as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ally.data import Checked, as_source
from ally.errors import InputError

Soften = Callable[[torch.Tensor], torch.Tensor]
"""Slopes (n, D) ↦ K times each."""
SAMPLES = 1000
"""Samples looked at, at most."""


def soften_by(X: Any, spread: torch.Tensor) -> Soften:
    """K from samples `X` (m, *shape), taken at even intervals; `spread` (D,) is s."""
    source = Checked(as_source(X))
    if len(source) < 2:
        raise InputError(f"smooth holds {len(source)} samples; pass at least 2, such as the pool")
    rows = np.unique(np.linspace(0, len(source) - 1, SAMPLES).round().astype(np.int64))
    samples = torch.from_numpy(source.read(rows).astype(np.float64)).flatten(1)
    if samples.shape[1] != len(spread):
        raise InputError(
            f"smooth holds samples of {samples.shape[1]} numbers and a start has {len(spread)}; pass samples of one "
            "kind"
        )
    ways = (samples - samples.mean(0)) / spread
    return lambda slope: (slope @ ways.T) @ ways / len(ways)
