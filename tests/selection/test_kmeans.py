"""k-means against plain float64 forms that compute every distance, and on pools that are hard to cluster."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from ally.execution.engine import LocalEngine
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection import kmeans, seeding
from ally.selection.base import Limits
from ally.selection.centroids import Centroids, Frame
from ally.selection.cluster_top import ClusterTop
from ally.selection.kmeans import cluster_means, framed, k_means, squared_to, train
from ally.selection.seeding import on_grid, seeds


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def blobs(seed, n, d, k, spread=0.3):
    return normal(seed, k, d)[
        torch.randint(k, (n,), generator=torch.Generator().manual_seed(seed + 1))
    ] + spread * normal(seed + 2, n, d)


def whole(seed, *shape):
    return torch.randint(-2, 3, shape, generator=torch.Generator().manual_seed(seed)).float()


def in_frame(x):
    return Frame(torch.zeros(x.shape[1], dtype=torch.float64), 1.0)(x)


def naive_squared(x, means):
    x, means = x.double().numpy(), means.numpy()
    return np.stack([np.square(x - mean).sum(1) for mean in means], axis=1)


def naive_means(x, clusters, means):
    sums, counts = np.zeros(means.shape), np.zeros(len(means))
    for row, cluster in zip(x.double().numpy(), clusters, strict=True):
        sums[cluster] += row
        counts[cluster] += 1
    return torch.from_numpy(sums / counts[:, None])


POINTS = {
    "normal": normal(0, 1500, 20),
    "ties": whole(1, 1500, 4),
    "far from 0": normal(2, 1500, 5) + 1000.0,
    "two far groups": normal(3, 1500, 5) + 1e4 * torch.tensor([[1.0], [-1.0]]).repeat(750, 1),
    "one far point": torch.cat([1e-6 * normal(4, 1499, 5), torch.ones(1, 5)]),
    "columns of many sizes": normal(5, 1500, 4) * torch.tensor([1e-12, 1e-4, 1.0, 1e3]),
    "tiny": normal(6, 1500, 5) * 2.0**-70,
}


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("k", [1, 31, 32, 33, 200])
def test_nearest_is_the_argmin_of_direct_sums(name, k):
    x = POINTS[name]
    means = torch.unique(x[:: len(x) // k][:k], dim=0).double()
    means = torch.cat([means, (means + means.flip(0)) / 2])
    found, apart = Centroids(means).nearest(in_frame(x))
    squared = naive_squared(x, means)
    assert found.tolist() == squared.argmin(1).tolist()
    squared[np.arange(len(x)), found] = np.inf
    for group, bound in enumerate(apart.T.double().numpy()):
        assert (bound**2 <= squared[:, group * 32 : group * 32 + 32].min(1, initial=np.inf)).all()


def test_more_than_64_groups_of_32():
    x = normal(0, 3000, 3)
    found, apart = Centroids(x[:2100].double()).nearest(in_frame(x))
    assert found.tolist() == naive_squared(x, x[:2100].double()).argmin(1).tolist()
    assert apart.shape == (3000, math.ceil(2100 / 64))


@pytest.mark.parametrize("name", POINTS)
def test_bounds_hold(name):
    x, means = POINTS[name], POINTS[name][:70].double()
    centroids, lifted = Centroids(means), in_frame(x)
    squared, own = naive_squared(x, means), torch.arange(len(x)) % len(means)
    distance = np.sqrt(squared[np.arange(len(x)), own])
    above = centroids.above(lifted, own).double().numpy()
    assert (above >= distance).all()
    squared[np.arange(len(x)), own] = np.inf
    for group in range(3):
        below = centroids.others(lifted, own, group).double().numpy()
        assert (below**2 <= squared[:, group * 32 : group * 32 + 32].min(1)).all()
    if name == "normal":
        np.testing.assert_allclose(above[70:], distance[70:], rtol=1e-4)
        np.testing.assert_allclose(below[70:] ** 2, squared[70:, 64:].min(1), rtol=1e-3)


def test_rows_do_not_depend_on_other_rows():
    x, centroids = in_frame(whole(0, 2000, 3)), Centroids(whole(1, 90, 3).unique(dim=0).double())
    together = centroids.nearest(x)[0]
    for size in (1, 7, 333):
        assert torch.equal(torch.cat([centroids.nearest(part)[0] for part in x.split(size)]), together)


@pytest.mark.parametrize("name", ["normal", "ties", "one far point"])
@pytest.mark.parametrize("dense", [0.0, 0.4, 1.0])
def test_training_is_lloyds_algorithm(monkeypatch, name, dense):
    monkeypatch.setattr(kmeans, "DENSE", dense)
    x = in_frame(POINTS[name])[:1000]
    members = train(x, 40, 12, np.random.default_rng(3))
    means = kmeans.neighbours_together(x[seeds(x[:, :-2], 40, np.random.default_rng(3)), :-2].double())
    assert len(means) == 40
    clusters = naive_squared(x[:, :-2], means).argmin(1)
    for _ in range(12):
        assert len(set(clusters.tolist())) == 40, "an empty cluster would be moved"
        means = naive_means(x[:, :-2], clusters, means)
        before, clusters = clusters, naive_squared(x[:, :-2], means).argmin(1)
        if (before == clusters).all():
            break
    assert members.clusters.tolist() == clusters.tolist()
    assert torch.equal(members.centroids.means, means)


def naive_seeds(grid, k, rng):
    """Python's integers are exact."""
    rows, picks, trials = grid.int().tolist(), [int(rng.integers(len(grid)))], 2 + int(math.log(k))

    def to(row):
        return [sum((a - b) ** 2 for a, b in zip(other, rows[row], strict=True)) for other in rows]

    nearest = to(picks[0])
    while len(picks) < k:
        size = trials * max(1, min(len(picks) // 4, seeding.CANDIDATES // trials, k - len(picks)))
        edges = np.cumsum(nearest)
        drawn = [int(np.flatnonzero(edges > uniform * edges[-1])[0]) for uniform in rng.random(size)]
        needed, queue = [uniform * nearest[row] for uniform, row in zip(rng.random(size), drawn, strict=True)], []
        for row, least in zip(drawn, needed, strict=True):
            queue += [row] if nearest[row] > least else []
            if len(queue) == trials and len(picks) < k:
                offers = [np.minimum(nearest, to(other)) for other in queue]
                best = int(np.argmin([offer.sum() for offer in offers]))
                picks.append(queue[best])
                nearest, queue = offers[best], []
    return picks


def test_seeds_are_greedy_k_means_pp():
    x = normal(0, 300, 3)
    expected = naive_seeds(on_grid(x)[:, :-2], 25, np.random.default_rng(5))
    assert seeds(x, 25, np.random.default_rng(5)).tolist() == expected
    assert len(set(expected)) == 25


def test_seeds_come_from_a_few_points_for_each(monkeypatch):
    monkeypatch.setattr(seeding, "POINTS", 10)
    monkeypatch.setattr(seeding, "PER_SEED", 4)
    x = normal(0, 300, 3)
    rng = np.random.default_rng(5)
    among = np.sort(rng.choice(300, 100, replace=False, shuffle=False))
    expected = among[naive_seeds(on_grid(x[among])[:, :-2], 25, rng)]
    assert seeds(x, 25, np.random.default_rng(5)).tolist() == expected.tolist()


@pytest.mark.parametrize("d", [1, 128, 260, 3000])
def test_the_grid_is_exact(d):
    grid = on_grid(blobs(0, 200, d, 5))
    assert torch.equal(grid, grid.round())
    exact = grid.to(torch.int64)[:, :-2]
    largest = max(int((exact - row).square().sum(1).max()) for row in exact)
    assert largest <= 2**24
    assert exact.abs().max() >= (20 if d > 1 else 5)
    assert torch.equal(grid[:, -1].long(), exact.square().sum(1))


@pytest.mark.parametrize("n", [900, 3000])
def test_threads_shards_and_memory_maps_change_nothing(monkeypatch, tmp_path, n):
    monkeypatch.setattr(kmeans, "SAMPLE", 1000)
    monkeypatch.setattr(kmeans, "PER_CLUSTER", 10)
    x = torch.cat([blobs(0, n - 100, 16, 30), whole(1, 100, 16)])
    expected = k_means(x, 60, 8, seed=4)
    for threads in (2, 5):
        torch.set_num_threads(threads)
        found = k_means(x, 60, 8, seed=4)
        torch.set_num_threads(1)
        assert found.tolist() == expected.tolist()
    for engine in (LocalEngine(1, shards=3), LocalEngine(3, shards=8)):
        assert k_means(x, 60, 8, 4, engine=engine).tolist() == expected.tolist()
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=tuple(x.shape))
    mapped[:] = x.numpy()
    assert k_means(torch.from_numpy(mapped), 60, 8, seed=4).tolist() == expected.tolist()
    among = np.flatnonzero(np.random.default_rng(0).random(n) < 0.8)
    expected = k_means(x[torch.from_numpy(among)], 60, 8, seed=4).tolist()
    for engine in (LocalEngine(1), LocalEngine(1, shards=5)):
        assert k_means(x, 60, 8, 4, among, engine).tolist() == expected


def test_points_beyond_the_sample_join_the_nearest_centroid(monkeypatch):
    x = blobs(0, 4000, 8, 12)
    x[17] = 1e30
    monkeypatch.setattr(kmeans, "SAMPLE", 500)
    rng = np.random.default_rng(1)
    sample = np.sort(rng.choice(4000, 500, replace=False, shuffle=False))
    assert 17 not in sample
    frame, inside = framed(x, sample)
    means = train(inside, 5, 20, rng).centroids.means
    expected = naive_squared(frame(x)[:, :-2], means).argmin(1)
    assert k_means(x, 5, 20, seed=1).tolist() == expected.tolist()


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-30, 2.0**30, 2.0**90])
def test_scales_change_nothing(scale):
    x = blobs(0, 500, 6, 10)
    assert k_means(x * scale, 12, 20, 0).tolist() == k_means(x, 12, 20, 0).tolist()


def test_a_large_offset_does_not_change_clusters():
    x = whole(0, 400, 3)
    assert k_means(x + 1e5, 9, 20, 0).tolist() == k_means(x, 9, 20, 0).tolist()


def test_distinct_points_are_found_when_there_are_as_many_clusters():
    for x in (
        whole(0, 800, 2),
        torch.tensor([[0.0], [1e-5], [1.0]]).repeat(40, 1),
        torch.tensor([[1e6, 0.0], [1e6, 1e-6], [1e6, 2e-6]]),
    ):
        places = torch.unique(x, dim=0, return_inverse=True)[1]
        distinct = int(places.max()) + 1
        for k in (distinct, distinct + 5):
            found = k_means(x, min(k, len(x)), 20, 0)
            assert len({*zip(places.tolist(), found.tolist(), strict=True)}) == distinct == len(set(found.tolist()))


@pytest.mark.parametrize(
    "x", [torch.ones(50, 3), torch.zeros(50, 1), torch.full((50, 2), 3e38), torch.full((50, 2), 1e-45)]
)
def test_copies_are_one_cluster(x):
    assert k_means(x, 7, 20, 0).tolist() == [0] * 50


@pytest.mark.parametrize(
    "x",
    [
        normal(0, 40, 3),
        normal(0, 40, 3) * 1e38,
        torch.cat([normal(0, 39, 3), torch.full((1, 3), 3e38)]),
        whole(0, 40, 1),
        torch.cat([normal(0, 40, 2), torch.full((40, 2), 7.0)], dim=1),
        normal(0, 40, 300),
    ],
)
@pytest.mark.parametrize("n", [1, 7, 39, 40])
def test_exactly_n_of_any_pool(x, n):
    view = View(np.arange(40), x, None, torch.zeros(40))
    snapshot = Snapshot("regression", view, View(np.arange(0), x[:0], None, torch.zeros(0)))
    for select in (ClusterTop(), ClusterTop(clusters=3), ClusterTop(shortlist=2)):
        chosen = select(snapshot, torch.rand(40, dtype=torch.float64), n, Streams(0), Limits())
        assert len(set(chosen.rows.tolist())) == n


def inertia(x, clusters, k):
    number = torch.from_numpy(np.asarray(clusters, dtype=np.int64))
    return float(squared_to(x, cluster_means(x, number, k), number).sum())


@pytest.mark.parametrize(
    "x", [blobs(0, 3000, 16, 50), normal(0, 3000, 16), whole(0, 3000, 8)], ids=["blobs", "normal", "whole"]
)
def test_inertia_is_that_of_scikit_learn(x):
    ours = [inertia(x, k_means(x, 40, 20, seed), 40) for seed in range(6)]
    theirs = [
        inertia(x, KMeans(40, n_init=1, max_iter=20, tol=0.0, random_state=seed).fit(x.numpy()).labels_, 40)
        for seed in range(6)
    ]
    assert np.mean(ours) < 1.01 * np.mean(theirs)


def test_nothing_is_printed(capfd):
    k_means(normal(0, 60, 3), 50, 20, 0)
    assert capfd.readouterr() == ("", "")


def peak():
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found[1])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peak memory is read from /proc")
def test_memory_beyond_the_sample_is_a_few_numbers_each(tmp_path):
    n, d, k = 300_000, 128, 64
    x = torch.from_numpy(np.memmap(tmp_path / "x", np.float32, "w+", shape=(n, d)))
    for part in x.split(10_000):
        part[:] = normal(0, 10_000, d)
    scores = torch.arange(n, dtype=torch.float64)
    snapshot = Snapshot("regression", View(np.arange(n), x, None, scores), View(np.arange(0), x[:0], None, scores[:0]))
    ClusterTop(iterations=1)(snapshot, scores, k, Streams(0), Limits())
    x.sum()  # the pages of the map count as ours once they are read
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("this system does not let a process reset its peak memory")
    before = peak()
    ClusterTop(iterations=2)(snapshot, scores, k, Streams(0), Limits())
    sample = 4 * kmeans.SAMPLE * (2 * (d + 2) + 96 + 2)
    assert peak() - before < sample + 8 * 6 * n + 2**26
