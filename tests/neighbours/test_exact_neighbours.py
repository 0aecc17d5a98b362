"""Exact nearest neighbours, against one loop over all pairs."""

import numpy as np
import pytest

from ally.neighbours import ArrayRows, find_nearest


def all_distances(rows, points):
    return np.square(rows[:, None].astype(float) - points[None].astype(float)).sum(axis=2)


def draw(n, d, seed=0, copies=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)).astype(np.float32)
    points[rng.integers(n, size=copies)] = points[rng.integers(n, size=copies)]
    return points


def find_others(points, k):
    rows, numbers = ArrayRows(points), np.arange(len(points))
    return find_nearest(rows, rows, k, (numbers, numbers))


@pytest.mark.parametrize(("n", "d", "copies", "offset"), [(300, 1, 40, 0), (1500, 3, 300, 0), (2100, 20, 0, 1000)])
def test_neighbours_are_those_of_one_loop_over_all_pairs(n, d, copies, offset):
    points = draw(n, d, copies=copies) + np.float32(offset)
    squared = all_distances(points, points)
    np.fill_diagonal(squared, np.inf)
    expected = np.argsort(squared, axis=1, kind="stable")[:, :7]
    found = find_others(points, 7)
    np.testing.assert_array_equal(found.numbers, expected)
    np.testing.assert_allclose(found.squared, np.take_along_axis(squared, expected, axis=1), rtol=1e-12)


def test_neighbours_do_not_depend_on_how_many_rows_are_asked_about():
    points, rows = draw(2500, 5), draw(1300, 5, seed=1)
    whole = find_nearest(ArrayRows(rows), ArrayRows(points), 4)
    parts = [
        find_nearest(ArrayRows(rows[start : start + 100]), ArrayRows(points), 4) for start in range(0, len(rows), 100)
    ]
    np.testing.assert_array_equal(whole.numbers, np.concatenate([part.numbers for part in parts]))
    np.testing.assert_array_equal(whole.squared, np.concatenate([part.squared for part in parts]))


@pytest.mark.parametrize("scale", [1e-18, 1.0, 1e15])
def test_neighbours_of_tiny_and_of_huge_points(scale):
    points = (draw(400, 6) * np.float32(scale)).astype(np.float32)
    squared = all_distances(points, points)
    np.fill_diagonal(squared, np.inf)
    found = find_others(points, 3)
    np.testing.assert_array_equal(found.numbers, np.argsort(squared, axis=1, kind="stable")[:, :3])
