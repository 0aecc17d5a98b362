"""Data with hidden labels, and how predictions on its test set are measured."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ally.checks import check_count, check_number
from ally.data.arrays.memory import ArraySource, SparseSource
from ally.data.catalogue import Dataset
from ally.metrics import Said, constant, lopsided, metric_for
from ally.rng import Streams
from ally.types import AnyArray, FloatArray, IntArray, Task


@dataclass(frozen=True)
class Trial:
    """A pool to ask about and a test set to measure on."""

    name: str
    task: Task
    pool: AnyArray = field(repr=False)
    pool_labels: AnyArray = field(repr=False)
    test: AnyArray = field(repr=False)
    test_labels: AnyArray = field(repr=False)
    notes: tuple[str, ...] = ()
    """Notes for readers of the results, as sentences."""
    vectors: bool = False
    """Whether the samples are vectors whose distances are meaningful."""
    words: tuple[AnyArray, AnyArray] | None = field(default=None, repr=False)
    """Of texts that are vectors here: sparse matrices (n, features) of the words of the pool and of the test set."""
    encoder: str = ""
    """The name of the encoder that made the vectors."""
    declared: tuple[Any, ...] = ()
    """Classes that were declared, whether samples show them or not."""

    @staticmethod
    def of(data: Dataset) -> Trial:
        sides = (data.pool, data.pool_labels, data.test, data.test_labels)
        return Trial(data.name, data.task, *sides, data.notes, data.vectors, data.words, data.encoder)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the data, whatever their name."""
        declared = (self.declared,) if self.declared else ()
        digest = hashlib.sha256(repr((self.task, self.pool.shape, self.test.shape, *declared)).encode())
        parts: tuple[Any, ...] = (self.pool, self.pool_labels, self.test, self.test_labels, *(self.words or ()))
        for part in parts:
            for array in (part.data, part.indices, part.indptr) if hasattr(part, "indptr") else (part,):
                digest.update(
                    repr(array.tolist()).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes()
                )
        return digest.hexdigest()[:16]

    @property
    def size(self) -> int:
        """How many samples can be asked about; sparse matrices have no length."""
        return int(self.pool.shape[0])

    def open_pool(self, rows: IntArray | None = None) -> Any:
        """The pool, or some of its rows, as `ally.Loop` takes it: vectors as such, with the words of their texts beside
        them."""
        pool, words = self.pool, None if self.words is None else self.words[0]
        if rows is not None:
            pool, words = pool[rows], None if words is None else words[rows]
        return self._open(pool, words)

    def open_test(self) -> Any:
        """The test set in the same form."""
        return self._open(self.test, None if self.words is None else self.words[1])

    def _open(self, X: AnyArray, words: AnyArray | None) -> Any:
        if not self.vectors:
            return X
        return ArraySource(X, vectors=True, words=None if words is None else SparseSource(words))

    @property
    def classes(self) -> list[Any] | None:
        """All classes of the data, known to every strategy from the start."""
        if self.task == "regression":
            return None
        shown = np.union1d(self.pool_labels, self.test_labels)
        return list((np.union1d(shown, np.asarray(self.declared)) if self.declared else shown).tolist())

    @property
    def metric(self) -> str:
        """What is measured unless a cell says otherwise."""
        return "accuracy" if self.task == "classification" else "rmse"

    def measured_on(self, count: int) -> Trial:
        """The same with `count` samples of the test set, drawn at random but always the same ones."""
        rows = np.sort(np.random.default_rng(0).permutation(int(self.test.shape[0]))[:count])
        words = None if self.words is None else (self.words[0], self.words[1][rows])
        return replace(self, test=self.test[rows], test_labels=self.test_labels[rows], words=words)

    def measure(self, predicted: AnyArray, metric: str | None = None, probabilities: FloatArray | None = None) -> float:
        """`metric` of the predictions (n,) for `test`, some from `probabilities` (n, C) in the order of `classes`. The
        mean squared error is that of targets divided by their deviation in the pool."""
        figure = metric_for(metric or self.metric, self.task, bench=True)
        said = Said(self._numbers(self.test_labels), self._numbers(predicted), probabilities)
        return figure.measure(said) / self._unit(figure.name)

    def constant(self, metric: str | None = None) -> float:
        """The metric of one answer for the whole test set: the most common class of the pool, or its mean target."""
        figure = metric_for(metric or self.metric, self.task, bench=True)
        known, truth = self._numbers(self.pool_labels), self._numbers(self.test_labels)
        return constant(figure, known, truth, len(self.classes or ())) / self._unit(figure.name)

    def imbalance(self) -> str | None:
        """A sentence if accuracy says little because the classes are very uneven."""
        if self.task == "regression":
            return None
        classes, counts = np.unique(self.pool_labels, return_counts=True)
        if not lopsided(counts):
            return None
        most, least = int(counts.argmax()), int(counts.argmin())
        return (
            f"the classes are uneven: {classes[most]!s} has {counts[most] / counts.sum():.0%} of the pool, "
            f"{classes[least]!s} {counts[least] / counts.sum():.1%}; accuracy says little about rare classes, "
            "balanced_accuracy, macro_f1 and auroc say more (--metric)"
        )

    def _numbers(self, labels: AnyArray) -> AnyArray:
        """Class numbers; targets unchanged."""
        if self.task == "regression":
            return np.asarray(labels, dtype=np.float64)
        return np.searchsorted(np.asarray(self.classes), np.asarray(labels))

    def _unit(self, metric: str) -> float:
        return float(np.var(self.pool_labels)) if metric == "mse" else 1.0


@dataclass(frozen=True)
class Copies:
    """Every sample of the pool `times` over: exact copies, or each with Gaussian `noise` in units of the features'
    deviation.

    The copies of a sample are neighbours, the sample itself first. With `of`, only so many different samples are used,
    drawn at random.
    """

    times: int
    noise: float = 0.0
    of: int | None = None

    def __post_init__(self) -> None:
        check_count("times", self.times)
        check_number("noise", self.noise)

    def __call__(self, trial: Trial, streams: Streams) -> Trial:
        rows = np.arange(trial.size)
        if self.of is not None and self.of < trial.size:
            rows = np.sort(streams.numpy("different samples").choice(trial.size, self.of, replace=False))
        each = np.repeat(rows, self.times)
        pool = trial.pool[each]
        if self.noise:
            rng, pool = streams.numpy("copies"), pool.astype(np.float32)
            # Pixels share one scale, columns of a table have their own.
            scale = np.float32(self.noise) * np.asarray(
                pool.std() if pool.ndim > 2 else pool.std(axis=0), dtype=np.float32
            )
            for copy in range(1, self.times):
                pool[copy :: self.times] += scale * rng.standard_normal(
                    pool[copy :: self.times].shape, dtype=np.float32
                )
        words = None if trial.words is None else (trial.words[0][each], trial.words[1])
        return replace(trial, pool=pool, pool_labels=trial.pool_labels[each], words=words)
