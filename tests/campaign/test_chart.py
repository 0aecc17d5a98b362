"""The arrays that a training leaves for the map."""

import io

import numpy as np

from ally.campaign.training.chart import DIRECTIONS, Chart, flat, main_directions, scaled


def test_a_chart_comes_back_as_it_was():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 20)) * np.linspace(9, 1, 20)
    main = main_directions(points)
    assert main.shape == (50, DIRECTIONS)
    assert (np.diff(main.std(0)) <= 0).all(), "the widest first"
    places = flat(main)
    chart = Chart(np.arange(50), places[:, 0], places[:, 1], np.zeros(50), np.ones(50), scaled(main), ("a", 7))
    kept = Chart.from_bytes(chart.to_bytes())
    assert kept.classes == ("a", 7)
    np.testing.assert_allclose(kept.x, chart.x, atol=1e-4)
    np.testing.assert_allclose(kept.points, chart.points, atol=1e-3)


def test_a_chart_of_before_has_its_two_directions():
    rng = np.random.default_rng(0)
    places = rng.random((6, 2))
    chart = Chart(np.arange(6), places[:, 0], places[:, 1], np.zeros(6), np.ones(6), places, ())
    with np.load(io.BytesIO(chart.to_bytes())) as kept:
        arrays = {name: kept[name] for name in kept if name != "points"}
    old = io.BytesIO()
    np.savez_compressed(old, **arrays)
    found = Chart.from_bytes(old.getvalue())
    np.testing.assert_array_equal(found.points, np.column_stack([found.x, found.y]))


def test_points_in_one_direction_and_equal_ones():
    assert flat(main_directions(np.arange(5.0)[:, None])).shape == (5, 2)
    assert np.isfinite(scaled(main_directions(np.ones((4, 3))))).all()
