r"""Label spreading: what a label says of points that it can be reached from along the links of a graph.

With the smoother S of the graph and 0 ≤ α < 1, a start E (n, c) spreads to

.. math:: (1 - \alpha) (I - \alpha S)^{-1} E = (1 - \alpha) \sum_t \alpha^t S^t E.

All terms are positive, so that the small masses far from every label keep their order, which a solver with an absolute
tolerance would lose. Several α share the products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from ally.execution.compiled import compiled
from ally.neighbours.loops import Double, Ints

TERMS = 66
"""With α = 0.9, what is left out weighs less than a thousandth."""


def spread(smoother: csr_array, start: Double, alphas: Sequence[float], readers: csr_array | None = None) -> Double:
    """What a start (n, c) spreads to, for each α: (len(alphas), n, c); or of that what `readers` (m, n) add up, (…, m,
    c)."""
    term = np.array(start, dtype=np.float64, order="C")
    after = np.empty_like(term)
    found = np.stack([(1 - alpha) * _read(readers, term) for alpha in alphas])
    for step in range(1, TERMS + 1):
        multiply_sparse(smoother.indptr, smoother.indices, smoother.data, term, after)
        term, after = after, term
        here = _read(readers, term)
        for place, alpha in enumerate(alphas):
            found[place] += (1 - alpha) * alpha**step * here
    return found


@compiled("reassoc", "nsz", "nnan")
def multiply_sparse(starts: Ints, columns: Ints, values: Double, dense: Double, out: Double) -> None:
    """out ← S dense, (n, c), with S (n, n) in compressed rows."""
    for i in range(len(starts) - 1):
        for c in range(dense.shape[1]):
            out[i, c] = 0.0
        for place in range(starts[i], starts[i + 1]):
            j, value = columns[place], values[place]
            for c in range(dense.shape[1]):
                out[i, c] += value * dense[j, c]


def _read(readers: csr_array | None, values: Double) -> Double:
    return values if readers is None else readers @ values
