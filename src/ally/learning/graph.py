"""Label spreading over the pool's graph as a learner: the unlabelled samples say which samples belong together.

Labels spread along the links between nearest neighbours (`ally.graph`). How many neighbours, how far, and in which of
two spaces for tables is chosen at every fit by what each label would be without itself (`graph_settings`). New samples
are predicted from their neighbours in the graph.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array

from ally.checks import check_count
from ally.data import Source
from ally.data.arrays.scaling import Scaling
from ally.errors import DataError, ModelError
from ally.graph import interpolate
from ally.learning.calibration import folds
from ally.learning.graph_constraints import GraphConstraints, describe, find_unused, read_duals
from ally.learning.graph_file import GraphFile
from ally.learning.graph_settings import (
    MOST,
    ChosenSettings,
    GraphSettings,
    SpreadLabels,
    balance,
    choose_settings,
    predict_labels,
)
from ally.learning.graph_space import LARGEST, GraphSpace, find_space, list_scalings
from ally.learning.learner import Examples, FitReport, Unlabelled
from ally.learning.losses import TargetScale
from ally.learning.model_header import get_scaler, get_tensor
from ally.learning.objectives import ERM, Objective, PDCLUnlabelled
from ally.learning.pool_graph import NEIGHBOURS, PoolGraph
from ally.learning.snapshot import ByBlocks, Seen
from ally.rng import Streams
from ally.types import AnyArray, FloatArray, IntArray, Progress, Task

LARGEST_GRAPH, FOLDS = 50_000, 5


@dataclass(frozen=True)
class GraphLearner:
    """Label spreading.

    Attributes:
        most: samples in the graph; of a larger pool a fixed random sample, from which the others are predicted.
        graphs: the pool's graphs, one for each space, once `prepared`.
        keep_in: a folder for graphs, so that another process need not build them again; None keeps none.
    """

    most: int = LARGEST_GRAPH
    graphs: tuple[PoolGraph, ...] = field(default=(), repr=False, compare=False)
    keep_in: Path | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_count("most", self.most)

    def supports(self, objective: Objective, task: Task, needs: Collection[str] = ()) -> str | None:
        if type(objective) is PDCLUnlabelled:
            return find_unused(objective)
        if type(objective) is not ERM:
            return (
                f"label spreading cannot be trained by {objective}; use objective='erm' or 'pdcl-unlabelled', or "
                "model='linear' or 'mlp'"
            )
        return None

    def prepared(self, source: Source, rows: IntArray, chunk_size: int | None = None) -> GraphLearner:
        if self.graphs:
            return self
        graphs = []
        for scaling in list_scalings(source):
            space = find_space(source, rows, scaling, chunk_size)
            graphs.append(PoolGraph(source, rows, space, self.most, self._open_file(source, scaling)))
        return replace(self, graphs=tuple(graphs))

    def _open_file(self, source: Source, scaling: Scaling) -> GraphFile | None:
        """Where the graph of samples of this shape is kept."""
        if self.keep_in is None:
            return None
        shape = "x".join(map(str, source.shape))
        return GraphFile(self.keep_in / f"{shape}-{scaling}-{self.most}.graph", max(NEIGHBOURS))

    def settled(
        self, examples: Examples, objective: Objective, streams: Streams, progress: Progress | None = None
    ) -> GraphLearner:
        return self

    def points(self, source: Source, rows: IntArray) -> torch.Tensor:
        return torch.from_numpy(self.graphs[0].space.read(source, rows))

    def fit(
        self,
        examples: Examples,
        objective: Objective,
        streams: Streams,
        *,
        validation: Examples | None = None,
        unlabelled: Unlabelled | None = None,
        progress: Progress | None = None,
        member: int = 0,
    ) -> FittedGraph:
        """Members of an ensemble count each label as often as a resample has it. There is nothing to stop early."""
        reason = self.supports(objective, examples.task)
        if reason is not None:
            raise ModelError(reason)
        started = time.perf_counter()
        outputs = examples.outputs
        learner = self if self.graphs else self.prepared(*_list_rows(examples, objective, unlabelled))
        scale = TargetScale.of(examples.labels) if examples.classes is None else TargetScale()
        labels = SpreadLabels(_to_values(examples, scale, outputs, streams, member), examples.classes is not None)
        some = np.sort(streams.numpy("settings").permutation(len(examples))[:MOST])
        graph, chosen = _choose_graph(learner.graphs, examples.at(some), labels.at(some))
        fitted = _fit(graph, chosen.settings, examples, labels, scale)
        if isinstance(objective, PDCLUnlabelled):
            fitted, said = _constrain(fitted, graph, examples, labels, objective, some, unlabelled)
            chosen = chosen._replace(said=said)
            some = np.arange(len(examples))
        said = chosen.said
        if len(some) < len(examples):
            said = _predict_folds(graph, chosen.settings, examples, labels, streams)
        report = replace(
            fitted.report, train_loss=_mean_loss(said, examples, scale), seconds=time.perf_counter() - started
        )
        return replace(fitted, held_out=_to_held_out(said, examples, scale), report=report)


def _list_rows(examples: Examples, objective: Objective, unlabelled: Unlabelled | None) -> tuple[Source, IntArray]:
    """What a graph that is not prepared is of: the labelled samples, and under constraints the unlabelled ones too."""
    if type(objective) is ERM or unlabelled is None:
        return examples.source, examples.rows
    if unlabelled.source is examples.source:
        return examples.source, np.union1d(examples.rows, unlabelled.rows)
    return unlabelled.source, unlabelled.rows


def _constrain(
    fitted: FittedGraph,
    pool: PoolGraph,
    examples: Examples,
    labels: SpreadLabels,
    objective: PDCLUnlabelled,
    some: IntArray,
    unlabelled: Unlabelled | None,
) -> tuple[FittedGraph, FloatArray]:
    """The fit under constraints in place of a plain one, and what each label would be without itself; `some` labels
    choose the temperature."""
    points = pool.space.read(examples.source, examples.rows)
    constraints = GraphConstraints(pool, fitted.settings, points, labels, objective)
    eps = constraints.find_eps(fitted.masses.astype(np.float64))
    problem, found = constraints.solve(eps)
    read = constraints.read(problem, found, some)
    duals, outside = {}, 0
    asked = {"labelled": (examples.source, examples.rows)}
    if unlabelled is not None:
        asked["unlabelled"] = (unlabelled.source, unlabelled.rows)
    for name, (source, rows) in asked.items():
        duals[name], missing = read_duals(pool, fitted.settings, found.duals, source, rows)
        outside += missing
    constrained = replace(
        fitted,
        masses=read.masses.astype(np.float32),
        settings=read.settings,
        duals=duals,
        unlabelled_rows=None if unlabelled is None else unlabelled.rows,
        report=describe(fitted.report, found, objective, eps, outside),
    )
    return constrained, read.said


def _choose_graph(
    graphs: Sequence[PoolGraph], examples: Examples, labels: SpreadLabels
) -> tuple[PoolGraph, ChosenSettings]:
    """The first graph, unless another is clearly better."""
    found = [(one, choose_settings(one, one.space.read(examples.source, examples.rows), labels)) for one in graphs]
    best = min(found, key=lambda pair: float(pair[1].errors.mean()))
    return best if best[1].is_clearly_better(found[0][1]) else found[0]


def _to_values(examples: Examples, scale: TargetScale, outputs: int, streams: Streams, member: int) -> FloatArray:
    """(L, C) class memberships, or (L, 2) standardised targets and ones, each times the weight of its sample."""
    weights = np.ones(len(examples)) if examples.weights is None else examples.weights / examples.weights.mean()
    if member:
        drawn = streams.numpy("resample").integers(len(examples), size=len(examples))
        # A label that is not drawn keeps a little weight, so that every class is known.
        weights = weights * (np.bincount(drawn, minlength=len(examples)) + 0.01)
    if examples.classes is not None:
        return np.asarray(np.eye(outputs)[examples.labels.astype(np.int64)] * weights[:, None])
    return np.column_stack([scale.apply(examples.labels), np.ones(len(examples))]) * weights[:, None]


def _predict_folds(
    pool: PoolGraph, settings: GraphSettings, examples: Examples, labels: SpreadLabels, streams: Streams
) -> FloatArray:
    """What the labels of `FOLDS` folds would be by those of the others, (L, c) or (L, 1)."""
    fold = folds(examples.labels, FOLDS, streams.numpy("held out"))
    placed = pool.build().interpolate(pool.space.read(examples.source, examples.rows), settings.k, settings.share)
    said = np.empty((len(examples), labels.values.shape[1] if labels.classes else 1))
    for number in range(FOLDS):
        others, here = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        masses = _spread(pool, settings, placed[others], labels.at(others))
        said[here] = predict_labels(placed[here] @ masses, settings.temperature, labels.shares)
    return said


def _spread(pool: PoolGraph, settings: GraphSettings, placed: csr_array, labels: SpreadLabels) -> FloatArray:
    """(n, c) or (n, 2): the masses everywhere of labels at `placed` points (L, n)."""
    masses = pool.spread_labels(placed, labels.values, settings.k, settings.alpha, settings.share)
    return balance(masses, masses.sum(axis=0), labels) if settings.balanced else masses


def _fit(
    pool: PoolGraph, settings: GraphSettings, examples: Examples, labels: SpreadLabels, scale: TargetScale
) -> FittedGraph:
    graph = pool.build()
    placed = graph.interpolate(pool.space.read(examples.source, examples.rows), settings.k, settings.share)
    masses = _spread(pool, settings, placed, labels)
    report = FitReport(
        samples=len(examples),
        epochs=1,
        kept_epoch=1,
        train_loss=math.nan,
        validation_loss=None,
        positive_duals=None,
        slacks=None,
        dual_epoch=1,
        notes=_describe_graph(graph.number_parts(settings.k), placed),
    )
    return FittedGraph(
        pool.space, graph.points, masses.astype(np.float32), labels.shares, graph.width(settings.k, settings.share),
        settings,
        examples.task, examples.classes, scale, report, None, examples.source.shape,
    )  # fmt: skip


def _mean_loss(said: FloatArray, examples: Examples, scale: TargetScale) -> float:
    if examples.classes is None:
        return float(np.square(said[:, 0] - scale.apply(examples.labels)).mean())
    own = said[np.arange(len(said)), examples.labels.astype(np.int64)]
    return float(-np.log(np.maximum(own, 1e-12)).mean())


def _to_held_out(said: FloatArray, examples: Examples, scale: TargetScale) -> tuple[torch.Tensor | None, torch.Tensor]:
    values = torch.from_numpy(said)
    if examples.classes is None:
        return None, scale.invert(values.squeeze(1))
    return values.float(), values.argmax(1)


def _describe_graph(parts: AnyArray, placed: csr_array) -> tuple[str, ...]:
    """That samples without labels take part, and whether some cannot be reached from any label."""
    notes = [
        f"graph: learned from the labels and from how {len(parts)} samples of the pool, labelled or not, lie together"
    ]
    alone = ~np.isin(parts, np.unique(parts[placed.indices]))
    if alone.any():
        notes.append(
            f"graph: no label reaches {alone.sum()} of {len(parts)} samples, which are predicted by the labels' shares "
            "or mean; label some of them"
        )
    return tuple(notes)


@dataclass(frozen=True, eq=False)
class FittedGraph(ByBlocks):
    """What labels say at the points of the graph."""

    space: GraphSpace = field(repr=False)
    points: AnyArray = field(repr=False)
    """(n, d) float32."""
    masses: AnyArray = field(repr=False)
    """(n, C), or (n, 2) for numbers, float32."""
    shares: FloatArray | None = field(repr=False)
    """(C,) of the classes among the labels; None for numbers."""
    width: float
    settings: GraphSettings
    task: Task
    classes: tuple[Any, ...] | None
    scale: TargetScale
    report: FitReport
    held_out: tuple[torch.Tensor | None, torch.Tensor] | None = field(default=None, repr=False)
    """What the labels would be without themselves."""
    shape: tuple[int, ...] | None = None
    duals: dict[str, torch.Tensor] = field(default_factory=dict, repr=False)
    unlabelled_rows: IntArray | None = None

    @property
    def spreads(self) -> bool:
        return False

    def inputs(self, source: Source, rows: IntArray) -> torch.Tensor:
        return torch.from_numpy(self.space.read(source, rows, self.shape))

    def outputs(self, x: torch.Tensor) -> torch.Tensor:
        placed = interpolate(self.points, x.numpy(), self.settings.k, self.width)
        masses = placed @ self.masses.astype(np.float64)
        return torch.from_numpy(predict_labels(masses, self.settings.temperature, self.shares))

    def sampled(self, x: torch.Tensor, samples: int, seed: int) -> Sequence[torch.Tensor]:
        raise ModelError("label spreading has one solution, so predictions have no spread; use members > 1")

    def dropped(self, x: torch.Tensor, samples: int, rate: float, seed: int) -> Sequence[torch.Tensor]:
        """Coordinates of the points are lost."""
        generator = torch.Generator().manual_seed(seed)
        kept = [torch.rand(x.shape, generator=generator) >= rate for _ in range(samples)]
        return [self.outputs(x * mask / (1 - rate)) for mask in kept]

    def packed(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        """4 bytes for each number of the points and masses."""
        scaler, axes = self.space.scaler, self.space.axes
        arrays = {
            "points": self.points,
            "masses": self.masses,
            "input.mean": scaler.mean,
            "input.scale": scaler.scale,
        }
        arrays |= {} if axes is None else {"axes": axes}
        arrays |= {} if self.shares is None else {"shares": self.shares}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        return {
            "kind": "graph",
            "shape": None if self.shape is None else list(self.shape),
            "target": [self.scale.mean, self.scale.std],
            "k": self.settings.k,
            "temperature": self.settings.temperature,
            "width": self.width,
        }, tensors

    def _look(self, x: torch.Tensor, rows: IntArray) -> Seen:
        outputs = self.outputs(x)
        if self.classes is None:
            return Seen(x, None, self.scale.invert(outputs.squeeze(1)))
        return Seen(x, outputs.float(), outputs.argmax(1))


def rebuild_graph(
    facts: dict[str, Any], tensors: dict[str, torch.Tensor], report: FitReport, classes: tuple[Any, ...] | None
) -> FittedGraph:
    """From what `FittedGraph.packed` gave."""
    shape = tuple(facts["shape"])
    width, outputs = math.prod(shape), 2 if classes is None else len(classes)
    points, axes = tensors.get("points"), tensors.get("axes")
    if points is None or points.ndim != 2 or not len(points):
        raise DataError("there are no points; train again")
    if axes is not None:
        axes = get_tensor(tensors, "axes", (width, points.shape[1]), torch.float64)
    count, across = points.shape[0], width if axes is None else points.shape[1]
    masses = get_tensor(tensors, "masses", (count, outputs), torch.float32)
    if not (facts["width"] > 0 and 0.01 <= facts["temperature"] <= 100 and facts["k"] > 0):
        raise DataError("its width, temperature or number of neighbours is out of range; train again")
    if bool((masses[:, -1] < 0).any()) or (classes is not None and bool((masses < 0).any())):
        raise DataError("some masses are negative; train again")
    points = get_tensor(tensors, "points", (count, across), torch.float32)
    if float(points.abs().max()) > LARGEST:
        raise DataError("some points are too far out; train again")
    scaler = get_scaler(tensors, shape)
    if scaler is None:
        raise DataError("there are no means; train again")
    return FittedGraph(
        GraphSpace(scaler, None if axes is None else axes.numpy()),
        points.numpy(),
        masses.numpy(),
        None if classes is None else get_tensor(tensors, "shares", (outputs,), torch.float64).numpy(),
        float(facts["width"]),
        GraphSettings(k=facts["k"], temperature=float(facts["temperature"])),
        facts["task"],
        classes,
        TargetScale(*map(float, facts["target"])),
        report,
        shape=shape,
    )
