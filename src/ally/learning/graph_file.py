"""The graph of a pool in a file, so that the next training only adds what is new.

A file is read as if somebody else had written it. What is damaged, does not fit the pool, or has links that are not
those of its own points counts as no file, and the graph is built anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ally.data import Scaler, blocks
from ally.data.paths import open_regular
from ally.errors import DataError
from ally.files import write_whole
from ally.graph import NeighbourGraph, sort_points
from ally.learning.graph_space import GraphSpace
from ally.neighbours import Neighbours
from ally.types import AnyArray

DIGEST = 32
"""Bytes at the beginning of a file: the hash of the others."""
MOST_BYTES = 2**31
DRIFT, GROWTH = 0.25, 2
"""A space is kept while means and scales have moved by less than this share of a scale, and the pool has neither grown
nor shrunk by this factor."""
SEARCHED = 64
"""Points whose neighbours are searched again when a file is read."""
SAME = 1e-9


class KeptGraph(NamedTuple):
    """A graph, the space of its points, and how many samples the space was found from."""

    space: GraphSpace
    samples: int
    graph: NeighbourGraph


@dataclass(frozen=True)
class GraphFile:
    """A graph at `path`, with up to `most` neighbours of each point."""

    path: Path
    most: int

    def read(self, space: GraphSpace, samples: int) -> KeptGraph | None:
        """The graph, if it is sound and its space fits a pool of so many samples, whose own space is `space`."""
        try:
            with open_regular(self.path) as stream:
                content = stream.read(MOST_BYTES)
            if hashlib.blake2b(content[DIGEST:], digest_size=DIGEST).digest() != content[:DIGEST]:
                return None
            kept = _unpack(load(content[DIGEST:]), self.most)
        except (OSError, DataError, SafetensorError, ValueError, KeyError, TypeError):
            return None
        near = samples <= GROWTH * kept.samples and kept.samples <= GROWTH * samples
        return kept if near and _fits(kept.space, space) and _is_sound(kept.graph) else None

    def write(self, kept: KeptGraph) -> None:
        """In place of what was there. Nothing is lost where it cannot be written: the next training builds it again."""
        scaler, axes = kept.space.scaler, kept.space.axes
        arrays = {
            "points": kept.graph.points,
            "numbers": kept.graph.neighbours.numbers,
            "squared": kept.graph.neighbours.squared,
            "samples": np.asarray([kept.samples]),
            "mean": scaler.mean,
            "scale": scaler.scale,
        }
        arrays |= {} if axes is None else {"axes": axes}
        content = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, hashlib.blake2b(content, digest_size=DIGEST).digest() + content)
        except OSError:
            pass


def _unpack(arrays: dict[str, AnyArray], most: int) -> KeptGraph:
    """Raises `ValueError` for arrays that are no graph."""
    points, numbers, squared = arrays["points"], arrays["numbers"], arrays["squared"]
    n = len(points)
    shapes = numbers.shape == squared.shape == (n, max(0, min(most, n - 1)))
    kinds = points.dtype == np.float32 and numbers.dtype == np.int32 and squared.dtype == np.float64
    if points.ndim != 2 or not (n and points.shape[1] and shapes and kinds and np.isfinite(points).all()):
        raise ValueError("its parts do not fit")
    graph = NeighbourGraph.of(points, Neighbours(numbers, squared))
    (samples,) = arrays["samples"].tolist()
    return KeptGraph(GraphSpace(Scaler(arrays["mean"], arrays["scale"]), arrays.get("axes")), int(samples), graph)


def _fits(kept: GraphSpace, now: GraphSpace) -> bool:
    """Whether a space is much like that of the pool."""
    pairs = [(kept.scaler.mean, now.scaler.mean), (kept.scaler.scale, now.scaler.scale)]
    if any(old.shape != new.shape or old.dtype != new.dtype for old, new in pairs):
        return False
    with np.errstate(invalid="ignore"):
        if not all(bool((np.abs(old - new) <= DRIFT * now.scaler.scale).all()) for old, new in pairs):
            return False
    if kept.axes is None or now.axes is None:
        return kept.axes is now.axes
    if kept.axes.shape != now.axes.shape or kept.axes.dtype != now.axes.dtype:
        return False
    return bool(np.allclose(kept.axes.T @ kept.axes, np.eye(kept.axes.shape[1]), atol=1e-6))


def _is_sound(graph: NeighbourGraph) -> bool:
    """Whether links have the lengths that they say, and those of some points are to the nearest."""
    points, (numbers, squared) = graph.points, graph.neighbours
    n = len(points)
    if not np.array_equal(sort_points(points), points):
        return False
    if not ((numbers >= 0) & (numbers < n)).all() or (numbers == np.arange(n)[:, None]).any():
        return False
    for block in blocks(n):
        apart = points[block, None].astype(np.float64) - points[numbers[block]]
        if not np.allclose(np.square(apart).sum(axis=2), squared[block], rtol=SAME, atol=0.0):
            return False
    some = np.unique(np.linspace(0, n - 1, SEARCHED).astype(np.int64))
    return np.array_equal(graph.search(some).numbers, numbers[some])
