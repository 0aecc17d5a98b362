"""Neighbours and label spreading, against naive twins."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ally.graph import NeighbourGraph, interpolate, sort_points, spread
from ally.graph.neighbour_graph import LEAST_WEIGHT


def all_distances(rows, points):
    return np.square(rows[:, None].astype(float) - points[None].astype(float)).sum(axis=2)


def draw(n, d, seed=0, copies=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)).astype(np.float32)
    points[rng.integers(n, size=copies)] = points[rng.integers(n, size=copies)]
    return points


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_links_are_symmetric_and_weigh_what_their_lengths_say(share):
    points, k = draw(200, 3), 6
    graph = NeighbourGraph(points, 10)
    squared = all_distances(points, points)
    np.fill_diagonal(squared, np.inf)
    nearest = np.argsort(squared, axis=1, kind="stable")[:, :k]
    width = share * np.median(np.take_along_axis(squared, nearest, axis=1))
    expected = np.zeros((200, 200))
    for i, others in enumerate(nearest):
        for j in others:
            expected[i, j] = expected[j, i] = max(np.exp(-squared[i, j] / width), LEAST_WEIGHT)
    np.testing.assert_allclose(graph.links(k, share).toarray(), expected, rtol=1e-6)
    smoother = graph.smoother(k, share).toarray()
    np.testing.assert_array_equal(smoother, smoother.T)
    assert np.abs(np.linalg.eigvalsh(smoother)).max() < 1 + 1e-9


@pytest.mark.parametrize("alpha", [0.5, 0.8, 0.9])
def test_labels_spread_as_the_inverse_says(alpha):
    smoother = NeighbourGraph(draw(300, 2), 8).smoother(8)
    start = np.random.default_rng(1).random((300, 4))
    exact = (1 - alpha) * np.linalg.solve(np.eye(300) - alpha * smoother.toarray(), start)
    found = spread(smoother, start, (0.3, alpha))[1]
    assert (found <= exact + 1e-12).all(), "terms are left out, none is added"
    np.testing.assert_allclose(found, exact, rtol=2e-2)
    readers = csr_array(np.random.default_rng(2).random((5, 300)))
    np.testing.assert_allclose(spread(smoother, start, (0.3, alpha), readers)[1], readers @ found, rtol=1e-12)


def test_small_masses_far_from_every_label_keep_their_order():
    chain = np.arange(60, dtype=np.float32)[:, None]
    smoother = NeighbourGraph(chain, 2).smoother(2)
    start = np.zeros((60, 1))
    start[0] = 1
    found = spread(smoother, start, (0.9,))[0][:, 0]
    assert (found > 0).all()
    assert (np.diff(found[:-1]) < 0).all(), "the farther, the less"


def test_parts_without_a_path_between_them_are_told_apart():
    points = np.concatenate([draw(50, 2), draw(70, 2, seed=1) + np.float32(1000)])
    graph = NeighbourGraph(points, 5)
    parts = graph.number_parts(5)
    assert set(parts[:50].tolist()).isdisjoint(parts[50:].tolist())
    expected = connected_components(graph.links(5), directed=False)[0]
    assert len(set(parts.tolist())) == expected


def test_a_copy_of_a_point_is_that_point_and_others_lie_between():
    points = draw(100, 2)
    rows = np.concatenate([points[[3, 9]], draw(1, 2, seed=5)])
    placed = interpolate(points, rows, 4, 0.1).toarray()
    assert placed[0, 3] == placed[1, 9] == 1
    assert np.count_nonzero(placed[2]) == 4
    np.testing.assert_allclose(placed.sum(axis=1), 1)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_fewer_points_than_neighbours(n):
    graph = NeighbourGraph(draw(n, 2), 20)
    assert graph.links(20).shape == (n, n)
    assert graph.smoother(10).nnz == n * (n - 1)
    np.testing.assert_allclose(graph.interpolate(draw(4, 2, seed=1), 10).sum(axis=1), 1)
    assert np.isfinite(spread(graph.smoother(5), np.ones((n, 1)), (0.9,))).all()


@pytest.mark.parametrize(
    ("d", "kept", "copies"), [(2, slice(0, 900), 100), (6, slice(100, 1150), 0), (6, slice(0, 5), 0)]
)
def test_a_graph_brought_up_to_date_is_that_built_anew(d, kept, copies):
    """Points come, points go, and coordinates on a grid make many links equally long."""
    every = np.round(draw(1200, d, copies=copies), 1)
    before = NeighbourGraph(sort_points(every[kept]), 12)
    points = sort_points(every[40:])
    anew, updated = NeighbourGraph(points, 12), NeighbourGraph(points, 12, before)
    np.testing.assert_array_equal(updated.neighbours.numbers, anew.neighbours.numbers)
    np.testing.assert_array_equal(updated.neighbours.squared, anew.neighbours.squared)


def test_points_are_sorted_by_their_values_alone():
    points = draw(300, 3, copies=100)
    points[0, 1], points[1] = -0.0, points[0]
    points[1, 1] = 0.0
    some = sort_points(points)
    np.testing.assert_array_equal(some, sort_points(points[::-1]))
    assert {tuple(point) for point in some.tolist()} == {tuple(point) for point in points.tolist()}
    assert len(some) == len(np.unique(points, axis=0))
