"""Candidate learners compared by cross-validation on the labels: the best of them, or an average of the close ones.

All candidates are measured on the same held-out labels: five folds each and, if one of them is to be chosen, five more
for those within `CLOSE` of the best. Nothing depends on the clock: the cost of a candidate is estimated from the size
of the problem, so equal labels and seeds give equal choices. A candidate that would cost too much is measured on fewer
folds or left out, and a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ally.errors import AllyError, ModelError
from ally.learning.average import Average
from ally.learning.candidates import Candidate, Size
from ally.learning.learner import Examples, Fitted, Unlabelled
from ally.learning.splits import Splits, repeated_splits
from ally.rng import Streams
from ally.types import AnyArray, FloatArray, IntArray, Progress

FEWEST = 10
"""With fewer labels, the first candidate is used without measuring."""
FOLDS, ROUNDS = 5, 3
CLOSE, TIE = 1.15, 1.01
PRIOR = 30
"""How many labels it takes to outweigh the weights that the errors alone suggest."""
LEAST = 0.05
"""Learners of less weight are left out of an average."""
OTHERS, FEWEST_OTHERS = 0.25, 5
"""Where at least `FEWEST_OTHERS` held-out labels are not of the commonest class, a learner that calls less than this
share of that many samples anything but its own commonest class tells none apart: it would add to the weight of one
class, and no knowledge."""
AND = " + "


class Measured(NamedTuple):
    """A candidate's cross-validated error: root mean squared error, or the share of wrong labels. `rank` is what
    candidates are compared by: for numbers the mean absolute error is added, so that a few samples far off do not
    decide; for classes half the Brier score, which separates candidates that few labels cannot."""

    name: str
    error: float
    rank: float


class Chosen(NamedTuple):
    """The chosen candidate, and why."""

    candidate: Candidate
    note: str
    labels: int
    """How many it was chosen by."""
    measured: tuple[Measured, ...] = ()
    """The average first, if one was chosen; then the candidates, best first."""
    weights: Mapping[str, float] = {}
    """By candidate, if several are averaged."""

    @property
    def record(self) -> KeptChoice:
        return KeptChoice(self.candidate.name, self.labels, self.note, dict(self.weights))


class KeptChoice(NamedTuple):
    """A choice in plain values, to be kept until labels have grown by half."""

    name: str
    labels: int
    note: str
    weights: Mapping[str, float] = {}

    def found_in(self, slate: Sequence[Candidate]) -> Chosen | None:
        """The same choice among these candidates; None if one of them is not there."""
        weights = self.weights or {self.name: 1.0}
        found = sorted((one for one in slate if one.name in weights), key=lambda one: -weights[one.name])
        if len(found) < len(weights):
            return None
        candidate = averaged(found, [weights[one.name] for one in found])
        return Chosen(candidate, self.note, self.labels, (), self.weights)


def averaged(candidates: Sequence[Candidate], weights: Sequence[float]) -> Candidate:
    """One candidate, or the average of several."""
    if len(candidates) == 1:
        return candidates[0]
    learners = tuple(candidate.learner for candidate in candidates)
    name = AND.join(candidate.name for candidate in candidates)
    return Candidate(name, Average(learners, tuple(weights)), lambda size: sum(one.seconds(size) for one in candidates))


def choose(
    slate: Sequence[Candidate],
    examples: Examples,
    budget: float,
    streams: Streams,
    progress: Progress | None = None,
    *,
    rival: float = math.inf,
    unlabelled: Unlabelled | None = None,
    average: bool = False,
) -> Chosen | None:
    """Chooses by cross-validation; `rival` as in `AutoLearner`, `unlabelled` for objectives that draw from it. The
    lowest error wins, and within `TIE` of it the candidate listed earlier; with `average`, the close ones are averaged.
    None if there are too few labels."""
    classes = examples.task == "classification"
    splits = repeated_splits(examples.labels, FOLDS, ROUNDS, streams.numpy("choice"), classes=classes)
    if len(examples) < FEWEST or not splits:
        return None
    size = Size(len(examples), math.prod(examples.source.shape), examples.outputs)
    left, notes, folds = budget, [], {}
    for place, candidate in enumerate(slate):
        # The simplest is always measured; the others on as many folds as fit into the remaining budget.
        share = left / (len(slate) - place)
        affordable = int(share / candidate.seconds(size))
        folds[candidate.name] = FOLDS if place == 0 else min(FOLDS, affordable)
        left -= folds[candidate.name] * candidate.seconds(size)
        if folds[candidate.name] < 2:
            notes.append(f"{candidate.name} was left out: it would take too long")
    race = Race(examples, splits, streams, progress, sum(folds.values()), unlabelled)
    tried = [candidate for candidate in slate if folds[candidate.name] >= 2 or candidate is slate[0]]
    for candidate in tried:
        race.run(candidate, range(folds[candidate.name]))
        if race.measured[0].rank > CLOSE * rival:
            return race.winner([candidate], notes)
    if average:
        return race.mixture(tried, notes)
    for number in range(1, ROUNDS):
        ranks = {one.name: one.rank for one in race.measured}
        close = [candidate for candidate in tried if ranks[candidate.name] <= CLOSE * min(ranks.values())]
        cost = FOLDS * sum(candidate.seconds(size) for candidate in close)
        if len(close) < 2 or cost > left or any(folds[candidate.name] < FOLDS for candidate in close):
            break
        left -= cost
        for candidate in close:
            race.run(candidate, range(number * FOLDS, min((number + 1) * FOLDS, len(splits))))
    return race.winner(tried, notes)


class Race:
    """What candidates say of the held-out labels of the splits run so far."""

    def __init__(
        self,
        examples: Examples,
        splits: Splits,
        streams: Streams,
        progress: Progress | None,
        total: int,
        unlabelled: Unlabelled | None = None,
    ) -> None:
        self.unlabelled = unlabelled
        self.examples = examples
        self.splits = [(np.sort(train), np.sort(test)) for train, test in splits]
        self.streams = streams
        self.progress = progress
        self.total, self.done = total, 0
        self.said: dict[str, list[FloatArray]] = {}
        """By candidate and split, (m, C) probabilities or (m, 1) predictions."""
        self.failed: dict[str, str] = {}

    def run(self, candidate: Candidate, numbers: range) -> None:
        for number in numbers:
            train, test = self.splits[number]
            try:
                fitted = candidate.learner.fit(
                    self.examples.at(train),
                    candidate.objective,
                    self.streams.child(f"split {number}"),
                    unlabelled=self.unlabelled,
                )
                said = _said(fitted, self.examples, self.examples.rows[test])
            except AllyError as error:
                self.failed[candidate.name] = f"{candidate.name} was left out: {error}"
                return
            self.said.setdefault(candidate.name, []).append(said)
            self.done += 1
            if self.progress is not None:
                self.progress("choose a learner", min(self.done, self.total), self.total)

    @property
    def measured(self) -> list[Measured]:
        """Best first. A candidate measured on fewer folds is compared with the simplest on those folds only."""
        found = []
        losses = {name: [self._losses(*one) for one in enumerate(said)] for name, said in self.said.items()}
        simplest = next(iter(losses.values()), [])
        for name, parts in losses.items():
            if name in self.failed:
                continue
            means = np.concatenate(parts).mean(axis=0)
            if len(parts) < len(simplest):
                same = np.concatenate(simplest[: len(parts)]).mean(axis=0)
                means = np.maximum(means + np.concatenate(simplest).mean(axis=0) - same, 0.0)
            found.append(self._measured(name, means))
        found += [Measured(name, math.inf, math.inf) for name in self.failed]
        return sorted(found, key=lambda one: one.rank)

    def winner(self, tried: Sequence[Candidate], notes: Sequence[str]) -> Chosen:
        """The best of those tried, or the simplest of those level with it."""
        measured = self._any_measured()
        rank = {one.name: one.rank for one in measured}
        least = TIE * min(rank[candidate.name] for candidate in tried)
        chosen = next(candidate for candidate in tried if rank[candidate.name] <= least)
        own = next(one for one in measured if one.name == chosen.name)
        rest = [one for one in measured if one is not own and math.isfinite(one.rank)]
        note = f"{chosen.name} chosen by cross-validation: {self._error(own)}"
        if rest:
            note += f"; next {rest[0].name} {self._error(rest[0], short=True)}"
        return Chosen(chosen, self._with(note, notes), len(self.examples), tuple(measured))

    def mixture(self, tried: Sequence[Candidate], notes: Sequence[str]) -> Chosen:
        """The average whose error on the held-out labels is lowest, or the best if that is no average. Candidates that
        tell no classes apart are left out, unless all are such."""
        constant = self._list_constant()
        notes = [*notes, *(f"{name} was left out: it calls nearly all samples the same" for name in constant)]
        tried = [one for one in tried if one.name not in constant]
        measured = self._any_measured()
        by_name = {one.name: one for one in tried if one.name not in self.failed and _averages(one, self.examples)}
        count = min((len(self.said[name]) for name in by_name), default=0)
        said = {name: np.concatenate(self.said[name][:count]) for name in by_name}
        labels = np.concatenate([self.examples.labels[test] for _, test in self.splits[:count]])
        best = next(one.name for one in measured if one.name not in constant)
        weights = weights_of(said, labels, self.examples.classes is not None) if best in said else {}
        if len(weights) < 2:
            return self.winner(tried, notes)
        mean = np.sum([weights[name] * said[name] for name in weights], axis=0)
        own = self._measured(AND.join(weights), losses(mean, labels, self.examples.classes is not None).mean(axis=0))
        chosen = averaged([by_name[name] for name in weights], [*weights.values()])
        errors = {one.name: self._error(one, short=True) for one in measured}
        alone = _listed([errors[name] for name in weights])
        note = f"{_listed([*weights])} averaged, chosen by cross-validation: {self._error(own)}; alone {alone}"
        return Chosen(chosen, self._with(note, notes), len(self.examples), (own, *measured), weights)

    def _measured(self, name: str, means: FloatArray) -> Measured:
        error, rank = means.tolist()
        if self.examples.task == "regression":
            error = math.sqrt(error)
            rank += error
        return Measured(name, error, rank)

    def _losses(self, split: int, said: AnyArray) -> FloatArray:
        return losses(said, self.examples.labels[self.splits[split][1]], self.examples.classes is not None)

    def _any_measured(self) -> list[Measured]:
        measured = self.measured
        if not math.isfinite(measured[0].rank):
            why = next(iter(self.failed.values()))
            raise ModelError(f"no learner could be trained on these labels ({why}); name a model")
        return measured

    def _list_constant(self) -> list[str]:
        """Names of candidates that call nearly all held-out samples the same; none if all that could be trained do."""
        trained = [name for name in self.said if name not in self.failed]
        if self.examples.classes is None:
            return []
        constant = []
        for name in trained:
            tests = [test for _, test in self.splits[: len(self.said[name])]]
            others = count_others(self.examples.labels[np.concatenate(tests)])
            told = count_others(np.concatenate(self.said[name]).argmax(axis=1))
            if others >= FEWEST_OTHERS and told < OTHERS * others:
                constant.append(name)
        return constant if len(constant) < len(trained) else []

    def _with(self, note: str, notes: Sequence[str]) -> str:
        said = [*notes, *self.failed.values()]
        return f"{note} ({'; '.join(said)})" if said else note

    def _error(self, one: Measured, short: bool = False) -> str:
        if self.examples.task == "classification":
            return f"{one.error:.1%}" if short else f"{one.error:.1%} wrong"
        return f"{one.error:.3g}" if short else f"rmse {one.error:.3g}"


def weights_of(said: Mapping[str, AnyArray], labels: AnyArray, classes: bool) -> dict[str, float]:
    """Weights in an average, which sum to 1, the largest first, of candidates that `said` this of held-out labels:
    probabilities (m, C) or predictions (m, 1).

    Least squares of the average under w ≥ 0, drawn with the strength of `PRIOR` labels towards the inverse squares of
    the candidates' own squared errors.
    """
    from scipy.optimize import nnls

    truth = np.eye(next(iter(said.values())).shape[1])[labels.astype(np.int64)] if classes else labels[:, None]
    columns, b = np.stack([one.ravel() for one in said.values()], axis=1), truth.ravel()
    errors = np.square(columns - b[:, None]).sum(axis=0) / len(labels)
    best = errors.min()
    if best == 0:
        return {next(name for name, error in zip(said, errors, strict=True) if error == 0): 1.0}
    prior = np.square(best / errors)
    prior /= prior.sum()
    strength, exact = math.sqrt(PRIOR * best), 1e4 * math.sqrt(len(labels) * best)
    rows = np.concatenate([columns, strength * np.eye(len(said)), np.full((1, len(said)), exact)])
    found = nnls(rows, np.concatenate([b, strength * prior, [exact]]))[0]
    weights = {name: weight for name, weight in zip(said, found.tolist(), strict=True) if weight >= LEAST}
    total = sum(weights.values())
    return {name: weights[name] / total for name in sorted(weights, key=lambda name: -weights[name])}


def count_others(numbers: AnyArray) -> int:
    """How many of the class numbers (m,) are not the commonest."""
    return len(numbers) - int(np.bincount(numbers.astype(np.int64)).max())


def losses(said: AnyArray, labels: AnyArray, classes: bool) -> FloatArray:
    """(m, 2) of predictions (m, 1): squared and absolute errors. Of probabilities (m, C): wrong or not, and the value
    to compare by."""
    if not classes:
        return np.column_stack([np.square(said[:, 0] - labels), np.abs(said[:, 0] - labels)])
    numbers = labels.astype(np.int64)
    wrong = (said.argmax(axis=1) != numbers).astype(np.float64)
    return np.column_stack([wrong, wrong + 0.5 * np.square(said - np.eye(said.shape[1])[numbers]).sum(axis=1)])


def _said(fitted: Fitted, examples: Examples, rows: IntArray) -> FloatArray:
    """(m, C) probabilities, 0 or 1 where there are none; or (m, 1) predictions."""
    seen = fitted.view(examples.source, rows)
    if examples.classes is None:
        return np.asarray(seen.predictions.double().numpy()[:, None])
    if seen.probabilities is None:
        return np.asarray(np.eye(len(examples.classes))[seen.predictions.numpy()])
    return np.asarray(seen.probabilities.double().numpy())


def _averages(candidate: Candidate, examples: Examples) -> bool:
    """Whether there are numbers to average."""
    needs = ("probabilities",) if examples.classes is not None else ()
    return candidate.learner.supports(candidate.objective, examples.task, needs) is None


def _listed(names: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
