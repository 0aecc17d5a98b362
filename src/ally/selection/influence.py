r"""Influence on the pool: ask for the labels that tell most about the samples still uncertain.

The paper measures informativeness by a sensitivity: how far the optimum moves when a constraint is put on a sample.
Here it is the sensitivity of the *pool*. A constraint on candidate x moves the predictor along k_S(·, x), the kernel
conditioned on everything labelled or picked so far, and the expected violation over the pool falls by about

    g(x) = Σ_u w_u k_S(u, x)² / (k_S(x, x) + σ²),   k(x, x') = exp(−‖x − x'‖² / s²),

over representatives u ≠ x, where the weight w_u is the uncertainty of u. Greedily take the largest w_x g(x), condition
k on it, and repeat. Noise does not raise g, and an outlier has no influence on other samples.

Conditioning on a pick p subtracts the rank-one term c_p(u) c_p(x) from k_S(u, x), with
c_p = k_S(·, p) / √(k_S(p, p) + σ²). So the numerators A(x) = Σ_u w_u k_S(u, x)² follow from products with the *first*
kernel alone:

    A(x) ← A(x) − 2 c_p(x) B(x) + c_p(x)² Σ_u w_u c_p(u)²,   B(x) = Σ_u w_u c_p(u) k_S(u, x)
         = Σ_u w_u c_p(u) k_L(u, x) − Σ_q c_q(x) Σ_u w_u c_p(u) c_q(u)   over the earlier picks q.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from scipy.linalg import solve_triangular

from ally.checks import check_count, check_number
from ally.data import BLOCK, blocks
from ally.features import Embedding, Representation
from ally.features.product import part
from ally.learning.snapshot import Snapshot, View
from ally.neighbours import find_nearest
from ally.neighbours.loops import Double, Doubles
from ally.rng import Streams
from ally.selection.base import Limits, Selection, largest, picked
from ally.selection.herding import coverage_weights
from ally.selection.points import Points
from ally.selection.relevance import column_scales
from ally.selection.shards import Shard, shard_crew
from ally.types import BOTH_TASKS, IntArray, Task

NEIGHBOUR = 15
"""The unit of s² is the median squared distance to this neighbour."""
WIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
USUAL_WIDTH = 4.0
"""In those units: the values of s² that the labels choose from, and the one used with fewer than `FEW` labels."""
FEW = 10
KNOWN = 2048
"""The most labelled samples that the kernel is conditioned on; if there are more, a seeded sample of them."""


@dataclass(frozen=True)
class Influence:
    """Each pick reduces the pool's uncertainty most; its value is the share it removes, times its own weight.

    Attributes:
        weighted: weight samples by their scores, see `coverage_weights`.
        noise: σ², in units of k(x, x) = 1.
        relevance: how far the labels may change what a column counts in distances, see `selection.relevance`: the
            standard deviation of the prior on its logarithm. 0 counts all columns the same, as is always done in an
            embedding that a network learned from the labels.
        width: s; None uses the width under which a Gaussian process gives the labels the highest likelihood.
        features: the space of x.
        normalise: scale x to unit length.
        representatives: a seeded sample of at most this many candidates with positive weight stands for the pool.
        shortlist: the greedy steps consider this many candidates, those with the largest first gain (at least 4 n).
            Each takes 8 (representatives + labels + n) bytes.
    """

    weighted: bool = True
    noise: float = 0.1
    relevance: float = 1.0
    width: float | None = None
    features: Representation = Embedding()
    normalise: bool = False
    representatives: int = 1024
    shortlist: int = 4096
    tasks: ClassVar[frozenset[Task]] = BOTH_TASKS
    reads: ClassVar[bool] = True
    label_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number("noise", self.noise, positive=True)
        check_number("relevance", self.relevance)
        if self.width is not None:
            check_number("width", self.width, positive=True)
        check_count("representatives", self.representatives)
        check_count("shortlist", self.shortlist)

    def __call__(self, snapshot: Snapshot, scores: torch.Tensor, n: int, streams: Streams, limits: Limits) -> Selection:
        space, known, square = self._fitted(snapshot, streams)
        points = space.points(snapshot.candidates)
        weights = coverage_weights(scores).numpy() if self.weighted else np.ones(len(points))
        order = shuffled(points, streams)
        chosen = order[weights[order] > 0][: self.representatives]
        doubt = Doubt(Conditioned(known[:], square, self.noise), points, weights, chosen)
        wanted = max(self.shortlist, 4 * n)
        places = np.arange(len(points))
        if len(points) > wanted:
            if snapshot.candidates.home is None:
                with shard_crew(snapshot, scores, limits, partial(FirstGains, space, doubt)) as crew:
                    first = np.concatenate(crew.each("gains"))
            else:
                first = snapshot.candidates.mapped(partial(_first_gains, space, doubt)).numpy()
            places = np.sort(largest(torch.from_numpy(first), wanted).numpy())
        picks, values = greedy(doubt, points[places], places, n)
        return picked(snapshot, torch.from_numpy(places[picks]), torch.from_numpy(values))

    def _fitted(self, snapshot: Snapshot, streams: Streams) -> tuple[ScaledSpace, Points, float]:
        """The space of x, the labelled points that k is conditioned on, and s²: all that is learned from the labels."""
        plain = ScaledSpace(self.features, self.normalise)
        order = streams.numpy("known").permutation(len(snapshot.labelled))[:KNOWN]
        if len(order) < FEW or snapshot.labels is None:
            known = plain.points(snapshot.labelled, np.sort(order))
            return plain, known, self.width**2 if self.width else USUAL_WIDTH * self._unit(plain, snapshot, streams)
        targets = columns(snapshot.labels.numpy(), snapshot.task)
        space = plain
        if not snapshot.learned:
            rows = plain.points(snapshot.labelled, order)[:]
            if len(rows) == 1:
                space = replace(plain, scales=column_scales(rows[0], targets[order], self.noise, self.relevance))
        known = space.points(snapshot.labelled, np.sort(order))
        if self.width is not None:
            return space, known, self.width**2
        unit, own = self._unit(space, snapshot, streams), targets[np.sort(order)]
        squared = distances(known[:], known[:])
        return space, known, unit * max(WIDTHS, key=lambda width: evidence(squared, own, width * unit, self.noise))

    def _unit(self, space: ScaledSpace, snapshot: Snapshot, streams: Streams) -> float:
        """The median squared distance to the `NEIGHBOUR`-th neighbour."""
        points = space.points(snapshot.candidates)
        # The probes travel to whoever holds the candidates; the others stay there.
        some = torch.from_numpy(shuffled(points, streams)[:BLOCK])
        probes = replace(points, rows=part(points.rows, some))
        count = min(NEIGHBOUR + 1, len(points))
        found = snapshot.candidates.mapped(partial(_neighbours, space, probes, count)).numpy()
        far = np.sort(np.concatenate(list(found), axis=1), axis=1)[:, count - 1]
        far = np.sort(far[far > 0])
        return float(far[(len(far) - 1) // 2]) if len(far) else 1.0


@dataclass(frozen=True, eq=False)
class ScaledSpace:
    """Where the points of samples are: their features, with columns that count more or less."""

    features: Representation
    normalise: bool
    scales: Double | None = None
    """(d,), see `column_scales`; None if columns count the same."""

    def points(self, view: View, which: IntArray | None = None) -> Points:
        return Points(self.features(view), self.normalise, which, self.scales)


def shuffled(points: Points, streams: Streams) -> IntArray:
    """A random order of the candidates, the same whenever it is asked for."""
    return np.asarray(streams.numpy("representatives").permutation(len(points)))


def _neighbours(space: ScaledSpace, probes: Points, count: int, view: View, start: int) -> torch.Tensor:
    """Squared distances from the probes to their nearest samples in a run, (1, m, count)."""
    return torch.from_numpy(find_nearest(probes, space.points(view), count).squared)[None]


def _first_gains(space: ScaledSpace, doubt: Doubt, view: View, start: int) -> torch.Tensor:
    return torch.from_numpy(FirstGains(space, doubt, Shard(view, torch.empty(0), start)).gains())


class Conditioned:
    """k given the labelled rows: k_L(x, z) = k(x, z) − φ(x)·φ(z) with φ(x) = C⁻¹ k(L, x) and C Cᵀ = k(L, L) + σ² I."""

    def __init__(self, known: Doubles, square: float, noise: float) -> None:
        self._known = known
        self._root = root(np.exp(-distances(known, known) / square), noise)
        self.square = square
        self.noise = noise

    def prior(self, x: Doubles, z: Doubles) -> Double:
        """k, (n, m)."""
        return np.asarray(np.exp(-distances(x, z) / self.square))

    def explained(self, x: Doubles) -> Double:
        """φ, (L, n)."""
        return np.asarray(solve_triangular(self._root, self.prior(self._known, x), lower=True, check_finite=False))


class Doubt:
    """Candidates with their weights w (n,), and the representatives u among them with φ (L, m)."""

    def __init__(self, kernel: Conditioned, points: Points, weights: Double, chosen: IntArray) -> None:
        self.kernel = kernel
        self.places = np.sort(chosen)
        self.rows = points[self.places]
        self.explained = kernel.explained(self.rows)
        # If no sample is uncertain, all weigh the same.
        self.own = weights if weights.any() else np.ones_like(weights)
        self.weights = self.own[self.places]

    def seen_from(self, x: Doubles) -> tuple[Double, Double]:
        """k_L(x, u), (n, m), and φ(x), (L, n), computed block by block so that nothing else of that size is held."""
        count = len(x[0])
        seen, explained = np.empty((count, len(self.weights))), np.empty((len(self.explained), count))
        for block in blocks(count):
            some = tuple(factor[block] for factor in x)
            explained[:, block] = self.kernel.explained(some)
            np.subtract(self.kernel.prior(some, self.rows), explained[:, block].T @ self.explained, out=seen[block])
        return seen, explained

    def gains(self, places: IntArray, total: Double, left: Double) -> Double:
        """w_x g(x) of the candidates at `places`, (n,), from A(x) and k_S(x, x).

        A representative does not count itself. Gains are rounded to single precision so that rounding does not break
        ties.
        """
        among = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        itself = np.where(self.places[among] == places, self.own[places], 0.0)
        others = np.maximum(total - itself * np.square(left), 0.0)
        gains = self.own[places] * others / (left + self.kernel.noise)
        return np.asarray(gains.astype(np.float32), dtype=np.float64)


class FirstGains:
    """A shard of candidates before any pick. It works block by block, so that shards do not change a bit."""

    def __init__(self, space: ScaledSpace, doubt: Doubt, shard: Shard) -> None:
        self._points = space.points(shard.view)
        self._start = shard.start
        self._doubt = doubt

    def gains(self) -> Double:
        """w_x g(x), (n,)."""
        found = np.empty(len(self._points))
        for block in blocks(len(self._points)):
            kernel, explained = self._doubt.seen_from(self._points[block])
            places = np.arange(self._start + block.start, self._start + block.start + len(kernel))
            left = np.maximum(1.0 - np.square(explained).sum(0), 0.0)
            found[block] = self._doubt.gains(places, np.square(kernel) @ self._doubt.weights, left)
        return found


def greedy(doubt: Doubt, x: Doubles, places: IntArray, n: int) -> tuple[IntArray, Double]:
    """Positions of n picks among the rows x, the candidates at `places` (ascending), and the share of the uncertainty
    that each removes, times its weight."""
    noise, kernel = doubt.kernel.noise, doubt.kernel
    first, explained = doubt.seen_from(x)
    left = np.maximum(1.0 - np.square(explained).sum(0), 0.0)
    total = np.concatenate([np.square(first[block]) @ doubt.weights for block in blocks(len(first))])
    here, there = np.empty((n, len(places))), np.empty((n, len(doubt.weights)))
    positions, values = np.empty(n, np.int64), np.empty(n)
    everything = float(doubt.weights.sum())
    taken = np.zeros(len(places), bool)
    for number in range(n):
        gains = np.where(taken, -1.0, doubt.gains(places, total, left))
        pick = int(gains.argmax())
        if gains[pick] <= 0:
            # No other sample is uncertain: what tells most about the pool, itself included, beats the lowest row.
            pick = int(np.where(taken, -1.0, total / (left + noise)).argmax())
        positions[number], values[number] = pick, gains[pick] / everything
        taken[pick] = True
        row = tuple(factor[pick : pick + 1] for factor in x)
        scale = 1.0 / np.sqrt(left[pick] + noise)
        before, across = here[:number], there[:number]
        moved = kernel.prior(x, row)[:, 0] - explained.T @ explained[:, pick] - before.T @ before[:, pick]
        here[number], there[number] = moved * scale, (first[pick] - across.T @ before[:, pick]) * scale
        weighted = doubt.weights * there[number]
        cross = first @ weighted - before.T @ (across @ weighted)
        total += here[number] * (here[number] * float(weighted @ there[number]) - 2.0 * cross)
        left = np.maximum(left - np.square(here[number]), 0.0)
    return positions, values


def distances(x: Doubles, z: Doubles) -> Double:
    """‖x_i − z_j‖², (n, m); for rows of several factors, from their inner products."""
    inner = np.ones((len(x[0]), len(z[0])))
    norms = [np.ones(len(rows[0])) for rows in (x, z)]
    centre = x[0].mean(0) if len(x) == 1 and len(x[0]) else 0.0
    for a, b in zip(x, z, strict=True):
        a, b = (a - centre, b - centre) if len(x) == 1 else (a, b)
        inner *= a @ b.T
        norms = [norms[0] * np.square(a).sum(1), norms[1] * np.square(b).sum(1)]
    return np.asarray(np.maximum(norms[0][:, None] + norms[1][None, :] - 2.0 * inner, 0.0))


def columns(labels: Double, task: Task) -> Double:
    """The targets of a Gaussian process, (L, t): classes as indicators, numbers standardised, each column centred."""
    if task == "classification":
        found = (labels[:, None] == np.unique(labels)[None, :]).astype(np.float64)
    else:
        # By their range first: squares of very small numbers are 0.
        shares = (labels - labels.min()) / (np.ptp(labels) or 1.0)
        found = shares[:, None] / (shares.std() or 1.0)
    return np.asarray(found - found.mean(0))


def evidence(squared: Double, targets: Double, square: float, noise: float) -> float:
    """The log marginal likelihood of the targets (L, t) at the best scale of k, up to a constant."""
    factor = root(np.exp(-squared / square), noise)
    explained = np.square(solve_triangular(factor, targets, lower=True, check_finite=False)).mean()
    count, tasks = targets.shape
    fit = 0.5 * count * np.log(max(float(explained), np.finfo(np.float64).tiny))
    return float(-tasks * (fit + np.log(np.diag(factor)).sum()))


def root(kernel: Double, noise: float) -> Double:
    """C with C Cᵀ = k + σ² I."""
    kernel[np.diag_indices_from(kernel)] += noise
    return np.asarray(np.linalg.cholesky(kernel))
