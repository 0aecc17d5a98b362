r"""Label paths: what a sequential policy would ask if the answers were drawn from the learner's own predictions.

The network is not trained again. Its prediction head gets a correction that is linear in the frozen embedding,

    logits = log p(x) + Δ h̃   (classification),      f(x) + δᵀ h̃   (regression),      h̃ = (embedding, centred and
    scaled; 1),

which is 0 until the first simulated label. Rows of Δ, and δ / σ, have the prior N(0, A) with A = (ridge·I + Σ w
h̃h̃ᵀ)⁻¹ over the labelled samples: a Laplace approximation around the trained head. The labelled samples do not enter
the fit in any other way, because the head is already fitted to them. Fitting them again would move the head before any
answer is known, at a cost that grows with L. Their weight w is the curvature of their loss: 1 for regression, and
tr(diag(p) − ppᵀ)/(C − 1) for classification, which is exact for C = 2 and the mean over directions for more.

With T the picks of a path and k(x, x') = h̃ᵀAh̃', the fitted correction is k(x, T)α with a few numbers α per pick, so
the t-th pick of a path costs O(t²). All paths advance together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch

from ally.data import blocks
from ally.learning.dual_head import FittedHead, RidgeHead
from ally.learning.head_features import Labelled
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.scoring import PredictedDual, Score, check_scores
from ally.types import IntArray

TOLERANCE = 1e-4
"""A refit stops when every α is within this of its optimum, as a difference of probabilities."""
STEPS = 50


@dataclass(frozen=True, eq=False)
class Paths:
    """S runs of a policy for b steps."""

    places: IntArray
    """(S, b) positions among the candidates, distinct on each path, in the order they were picked."""
    labels: torch.Tensor
    """(S, b) simulated class numbers or targets, float64."""


class SimulatedHead(Protocol):
    """The learner's predictions for the candidates on every path, after the simulated labels so far."""

    def view(self, path: int, which: torch.Tensor) -> View:
        """The learner's view, on that path, of the candidates at positions `which`."""
        ...

    def draw(self, places: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        """Draws a label for one candidate of each path from its predictive distribution, (S,) float64."""
        ...

    def learn(self, places: torch.Tensor, labels: torch.Tensor) -> None:
        """Adds one labelled candidate to each path and refits."""
        ...


def label_paths(snapshot: Snapshot, policy: Score, n: int, paths: int, ridge: float, streams: Streams) -> Paths:
    """Runs `policy` for n steps on each path. Each step picks the highest score (ties to the lowest row), draws its
    label, and updates the head and the scores."""
    candidates = snapshot.candidates
    kind = TargetHead if candidates.probabilities is None else ClassHead
    head: SimulatedHead = kind(snapshot, paths, n, ridge)
    duals = _dual_head(snapshot, policy, streams)
    generator = streams.numpy("simulated labels")
    places = torch.empty(paths, n, dtype=torch.int64)
    labels = torch.empty(paths, n, dtype=torch.float64)
    free = torch.ones(paths, len(candidates), dtype=torch.bool)
    for step in range(n):
        for path in range(paths):
            left = free[path].nonzero().squeeze(1)
            told = _told(snapshot, head.view(path, places[path, :step]), labels[path, :step], duals)
            held = snapshot.candidate_duals
            now = replace(told, candidates=head.view(path, left), candidate_duals=None if held is None else held[left])
            scored = policy(now, streams.child("policy", f"path {path}", f"step {step}"))
            check_scores(scored, now, policy)
            places[path, step] = left[int(np.argmax(scored.scores.numpy()))]
        here = places[:, step]
        free[torch.arange(paths), here] = False
        labels[:, step] = head.draw(here, generator)
        if step + 1 < n:
            head.learn(here, labels[:, step])
    return Paths(places.numpy(), labels)


def _dual_head(snapshot: Snapshot, policy: Score, streams: Streams) -> FittedHead | None:
    """Predicts λ of simulated samples, if the labelled ones have it: the policy's own head, fitted to the labelled
    samples only."""
    if snapshot.duals is None or snapshot.labels is None:
        return None
    head = policy.head if isinstance(policy, PredictedDual) else RidgeHead()
    return head.fit(Labelled.of_known(snapshot), streams.child("simulated duals"))


def _told(snapshot: Snapshot, picks: View, labels: torch.Tensor, duals: FittedHead | None) -> Snapshot:
    """The snapshot with `picks` among the labelled samples.

    Labelled samples keep the view, label and λ of the fit. A pick gets the λ predicted from its present view, so a head
    fitted to all of them does not move: a simulated label changes the uncertainty, not the relation between uncertainty
    and λ.
    """
    if not len(picks):
        return snapshot
    known = snapshot.labelled
    rows = np.concatenate([known.rows, picks.rows])
    order = torch.from_numpy(np.argsort(rows))

    def joined(before: torch.Tensor | None, after: torch.Tensor) -> torch.Tensor:
        return after[order] if before is None or not len(known) else torch.cat([before, after.to(before.dtype)])[order]

    probabilities = None if picks.probabilities is None else joined(known.probabilities, picks.probabilities)
    geometry = None if picks.geometry is None else joined(known.geometry, picks.geometry)
    labelled = View(
        rows[order.numpy()],
        joined(known.embeddings, picks.embeddings),
        probabilities,
        joined(known.predictions, picks.predictions),
        geometry=geometry,
    )
    known_duals = None if duals is None else joined(snapshot.duals, duals.duals(picks))
    return replace(snapshot, labelled=labelled, labels=joined(snapshot.labels, labels), duals=known_duals)


class ClassHead:
    """softmax(log p + k(x, T)α) on every path.

    The cross-entropy of the picks plus the prior of Δ is smallest where α = onehot − p at the picks. The curvature of a
    softmax is at most ½, so the step α ← α + (I + k/2)⁻¹(onehot − p − α) minimises an upper bound and never increases
    the objective.
    """

    def __init__(self, snapshot: Snapshot, paths: int, n: int, ridge: float) -> None:
        known, self._candidates = snapshot.labelled.probabilities, snapshot.candidates
        assert self._candidates.probabilities is not None
        p = self._candidates.probabilities.double()
        classes = p.shape[1]
        curvature = (
            p.new_empty(0) if known is None else (1 - known.double().square().sum(1)).clamp(min=0) / max(1, classes - 1)
        )
        self._picks = Picks(kernel(snapshot, curvature, ridge)[0], paths, n, noise=2.0)
        self._logits = p.clamp(min=torch.finfo(torch.float32).tiny).log()
        self._answers = p.new_zeros(paths, n, classes)
        self._alpha = p.new_zeros(paths, n, classes)
        self._p = p.expand(paths, -1, -1)

    def view(self, path: int, which: torch.Tensor) -> View:
        p = self._p[path][which].float()
        return replace(self._candidates.at(which), probabilities=p, predictions=p.argmax(1))

    def draw(self, places: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        edges = self._p[torch.arange(len(places)), places].cumsum(1)
        levels = torch.from_numpy(generator.random(len(places)))[:, None] * edges[:, -1:]
        return (edges <= levels).sum(1).clamp(max=edges.shape[1] - 1).double()

    def learn(self, places: torch.Tensor, labels: torch.Tensor) -> None:
        each = torch.arange(len(places))
        last = len(self._picks)
        self._picks.add(places)
        self._answers[each, last, labels.long()] = 1.0
        self._alpha[:, last] = self._answers[:, last] - self._p[each, places]
        logits, answers, alpha = (
            self._logits[self._picks.places],
            self._answers[:, : last + 1],
            self._alpha[:, : last + 1],
        )
        for _ in range(STEPS):
            gap = answers - (logits + self._picks.gram @ alpha).softmax(2) - alpha
            if float(gap.abs().max()) <= TOLERANCE:
                break
            alpha += 2.0 * (self._picks.inverse @ gap)
        self._p = (self._logits + self._picks.reach(alpha)).softmax(2)


class TargetHead:
    """f(x) + k(x, T)α on every path with α = (k + I)⁻¹(labels − f) at the picks: Bayesian linear regression in closed
    form.

    A label is N(mean, σ²(1 + k(x, x) − k(x, T)(k + I)⁻¹k(T, x))). σ² is the squared error on the labelled samples
    divided by the degrees of freedom that fitting them leaves, L − Σ h̃ᵀAh̃ (at least 1).
    """

    def __init__(self, snapshot: Snapshot, paths: int, n: int, ridge: float) -> None:
        known, self._candidates = snapshot.labelled, snapshot.candidates
        shared, fitted = kernel(snapshot, torch.ones(len(known), dtype=torch.float64), ridge)
        self.variance = 0.0
        if snapshot.labels is not None and len(known):
            errors = snapshot.labels.double() - known.predictions.double()
            self.variance = float(errors.square().sum()) / max(1.0, len(known) - fitted)
        self._picks = Picks(shared, paths, n, noise=1.0)
        self._start = self._candidates.predictions.double()
        self._mean = self._start.expand(paths, -1)
        self._labels = torch.zeros(paths, n, dtype=torch.float64)

    def view(self, path: int, which: torch.Tensor) -> View:
        return replace(self._candidates.at(which), predictions=self._mean[path][which])

    def posterior(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and variance of the label of one candidate per path, (S,) each."""
        return self._mean[torch.arange(len(places)), places], self.variance * (1 + self._picks.left_over(places))

    def draw(self, places: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
        mean, variance = self.posterior(places)
        return mean + variance.sqrt() * torch.from_numpy(generator.standard_normal(len(places)))

    def learn(self, places: torch.Tensor, labels: torch.Tensor) -> None:
        self._labels[:, len(self._picks)] = labels
        self._picks.add(places)
        errors = self._labels[:, : len(self._picks)] - self._start[self._picks.places]
        self._mean = self._start + self._picks.reach(self._picks.inverse @ errors[:, :, None]).squeeze(2)


@dataclass(frozen=True, eq=False)
class CandidateKernel:
    """k(x, x') = h̃ᵀAh̃' among the candidates: `left` is h̃ and `right` Ah̃, (m, d + 1) each."""

    left: torch.Tensor
    right: torch.Tensor


def kernel(snapshot: Snapshot, weights: torch.Tensor, ridge: float) -> tuple[CandidateKernel, float]:
    """The kernel with labelled samples of the given weights (L,), and their degrees of freedom Σ w h̃ᵀAh̃."""
    known, rows = snapshot.labelled.embeddings.double(), snapshot.candidates.embeddings.double()
    known = known if len(known) else rows[:0]
    total = len(known) + len(rows)
    mean = (known.sum(0) + rows.sum(0)) / total
    known, rows = known - mean, rows - mean
    length = float(((known.square().sum() + rows.square().sum()) / total).sqrt())
    # The centred rows are pure rounding if all rows are equal; scaled up, that would look like a direction.
    scale = 1.0 / length if length > 1e-6 * float(mean.norm()) else 0.0
    known, rows = (torch.nn.functional.pad(side * scale, (0, 1), value=1.0) for side in (known, rows))
    information = rows.new_zeros(rows.shape[1], rows.shape[1])
    for block in blocks(len(known)):
        information += (known[block] * weights[block, None]).T @ known[block]
    precision = information + ridge * torch.eye(len(information), dtype=torch.float64)
    covariance = torch.cholesky_inverse(torch.linalg.cholesky(precision))
    return CandidateKernel(rows, rows @ covariance), float((covariance * information).sum())


class Picks:
    """The picks T of each path: k(T, T) as `gram` and (k(T, T) + noise·I)⁻¹ as `inverse`, (S, t, t) each.

    A pick adds a row and a column to both, which costs O(t²).
    """

    def __init__(self, kernel: CandidateKernel, paths: int, n: int, noise: float) -> None:
        self._kernel, self._noise, self._count = kernel, noise, 0
        self._places = torch.zeros(paths, n, dtype=torch.int64)
        self._gram = torch.zeros(paths, n, n, dtype=torch.float64)
        self._inverse = torch.zeros(paths, n, n, dtype=torch.float64)

    def __len__(self) -> int:
        return self._count

    @property
    def places(self) -> torch.Tensor:
        """(S, t) positions among the candidates."""
        return self._places[:, : self._count]

    @property
    def gram(self) -> torch.Tensor:
        return self._gram[:, : self._count, : self._count]

    @property
    def inverse(self) -> torch.Tensor:
        return self._inverse[:, : self._count, : self._count]

    def add(self, places: torch.Tensor) -> None:
        """Adds one pick to each path, (S,)."""
        t = self._count
        column, own = self._towards(places)
        solved = (self.inverse @ column[:, :, None]).squeeze(2)
        rest = self._noise + own - (column * solved).sum(1)
        self._inverse[:, :t, :t] += solved[:, :, None] * solved[:, None, :] / rest[:, None, None]
        self._inverse[:, t, :t] = self._inverse[:, :t, t] = -solved / rest[:, None]
        self._inverse[:, t, t] = 1.0 / rest
        self._gram[:, t, :t] = self._gram[:, :t, t] = column
        self._gram[:, t, t] = own
        self._places[:, t] = places
        self._count += 1

    def left_over(self, places: torch.Tensor) -> torch.Tensor:
        """k(x, x) − k(x, T)(k(T, T) + noise·I)⁻¹k(T, x) for one candidate x per path, (S,)."""
        column, own = self._towards(places)
        return (own - torch.einsum("st,stu,su->s", column, self.inverse, column)).clamp(min=0.0)

    def reach(self, alpha: torch.Tensor) -> torch.Tensor:
        """k(x, T)α of every candidate x, (S, m, C) for `alpha` (S, t, C)."""
        paths, _, outputs = alpha.shape
        correction = alpha.transpose(1, 2) @ self._kernel.right[self.places]
        everywhere = self._kernel.left @ correction.reshape(paths * outputs, -1).T
        return everywhere.view(-1, paths, outputs).permute(1, 0, 2)

    def _towards(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """k(T, x), (S, t), and k(x, x), (S,), for one candidate x per path."""
        row = self._kernel.left[places]
        column = (self._kernel.right[self.places] @ row[:, :, None]).squeeze(2)
        return column, (row * self._kernel.right[places]).sum(1)
