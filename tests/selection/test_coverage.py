"""Coverage and its distances against naive forms: float64, every pair, plain greedy."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from ally.data import BLOCK
from ally.errors import InputError
from ally.execution.engine import LocalEngine
from ally.features import Embedding, Gradient, ProductRows
from ally.neighbours import find_nearest
from ally.neighbours.loops import lower_to_row
from ally.neighbours.screening import find_frame, make_room
from ally.rng import Streams
from ally.selection import coverage, kmeans, typiclust
from ally.selection.base import Limits
from ally.selection.centroids import UnitRows
from ally.selection.coverage import Ball, Cover, Covering, Gaussian, Ranking, representatives
from ally.selection.herding import Herding
from ally.selection.kmeans import k_means
from ally.selection.points import Points
from ally.selection.probcover import ProbCover, farthest_first
from ally.selection.shards import shards
from ally.selection.typiclust import TypiClust, cluster_together, typicality

KINDS = ["random", "clusters", "copies", "offset", "low rank", "scales"]


def pool(kind, n, d, seed=0):
    """(n, d) float32 rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    if kind == "clusters":
        x = 6 * rng.normal(size=(7, d))[rng.integers(7, size=n)] + 0.5 * x
    elif kind == "copies":
        x = x[rng.integers(max(2, n // 4), size=n)]
    elif kind == "offset":
        x = 300 + x
    elif kind == "low rank":
        x = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + 0.05 * x
    elif kind == "scales":
        x = x * 10.0 ** rng.uniform(-12, 12, size=(n, 1))
    return torch.from_numpy(x.astype(np.float32))


def doubles(x, unit=False):
    x = x.double().numpy()
    return x / np.linalg.norm(x, axis=1, keepdims=True) if unit else x


def pairwise(a, b):
    """Squared distances, (len(a), len(b)), by differences."""
    return cdist(a, b, "sqeuclidean")


def points(*factors, unit=False):
    return Points(ProductRows(factors), unit)


def snapshot_of(make_snapshot, x, known):
    snapshot = make_snapshot(n=len(x), m=len(known), d=x.shape[1])
    snapshot.candidates.embeddings[:], snapshot.labelled.embeddings[:] = x, known
    return snapshot


def places(snapshot, selection):
    return (selection.rows - len(snapshot.labelled)).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("d", [3, 130])
def test_nearest(kind, unit, d):
    x, z = pool(kind, BLOCK + 130, d, 1), pool(kind, BLOCK + 40, d, 2)
    z[:50] = x[-50:]
    squared = np.sort(pairwise(doubles(x, unit), doubles(z, unit)), 1)
    for k in (1, 6):
        found = find_nearest(points(x, unit=unit), points(z, unit=unit), k).squared
        np.testing.assert_allclose(found, squared[:, :k], rtol=1e-9, atol=0 if not unit else 1e-28)
    assert (find_nearest(points(x[-50:], unit=unit), points(z, unit=unit)).squared == 0).all()


def test_nearest_of_another_label():
    x = pool("random", 300, 4)
    labels = np.random.default_rng(0).integers(3, size=300)
    expected = np.where(labels[:, None] == labels[None], np.inf, pairwise(doubles(x), doubles(x))).min(1)
    others = find_nearest(points(x), points(x), marks=(labels, labels))
    np.testing.assert_allclose(others.squared[:, 0], expected, rtol=1e-12)
    assert (labels[others.numbers[:, 0]] != labels).all()
    assert (find_nearest(points(x), points(x[:2]), 4).squared[:, 2:] == np.inf).all()
    assert (find_nearest(points(x), points(x[:0])).squared == np.inf).all()


def test_nearest_of_products():
    (a, h), (b, g) = ([pool("random", n, d, n) for d in (4, 70)] for n in (200, 90))
    a[:5], h[:5] = b[:5], g[:5]
    for unit in (False, True):
        full = [
            np.einsum("nc,nd->ncd", doubles(left, unit), doubles(right, unit)).reshape(len(left), -1)
            for left, right in ((a, h), (b, g))
        ]
        found = find_nearest(points(a, h, unit=unit), points(b, g, unit=unit), 3).squared
        np.testing.assert_allclose(found, np.sort(pairwise(*full), 1)[:, :3], rtol=1e-9, atol=1e-9)
        assert (found[:5, 0] == 0).all()


def test_a_distance_does_not_depend_on_what_is_computed_with_it():
    for d in (1, 5, 8, 33, 128, 300):
        x, z = points(pool("random", 60, d, 1), unit=True), points(pool("random", 40, d, 2), unit=True)
        every, labels = find_nearest(x, z, 40).squared, np.arange(40)
        alone = np.concatenate([find_nearest(x, z.at(labels[j : j + 1])).squared for j in labels], axis=1)
        assert (every == np.sort(alone, 1)).all()
        assert (alone == np.concatenate([find_nearest(z, x.at(np.asarray([i]))).squared.T for i in range(60)])).all()
        assert (find_nearest(x.at(np.arange(7, 60, 3)), z, 40).squared == every[7::3]).all()
        # Another loop may add up in another order, but not by more than `NEARER` allows for.
        column = np.full(60, np.inf)
        lower_to_row(column, x[:], z[3:4])
        np.testing.assert_allclose(column, alone[:, 3], rtol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("d", [2, 128, 700])
def test_products_and_sketches_bound_distances_from_below(kind, unit, d):
    x = points(pool(kind, 400, d), unit=unit)
    seen = find_frame(x, x)
    exact = np.asarray(pairwise(x[:][0], x[:][0])) * seen.scale**2
    views = [seen.singles(x[:]), seen.sketches(x[:])] if d > 100 else [seen.singles(x[:])]
    for rows in views:
        low = rows.norms[:, None] + (rows.norms[None] - np.float32(2) * rows.products(rows, make_room()))
        assert (low <= exact).all()
    norms = (seen.singles(x[:]).factors[0].astype(np.float64) ** 2).sum(1)
    singles = views[0].norms[:, None] + views[0].norms[None] - 2 * views[0].products(views[0], make_room())
    assert (exact - singles <= 3e-7 * (d + 24) * (norms[:, None] + norms[None]) + 1e-33).all()
    if kind == "low rank" and not unit and d > 100:
        close = views[1].norms[:, None] + views[1].norms[None] - 2 * views[1].products(views[1], make_room())
        assert np.median(close / exact.clip(1e-9)) > 0.9


def naive_cover(kernel, covered, weights, sizes, n):
    """Plain greedy. `kernel` (t, m) between targets and candidates, `covered` (t,) by the labelled; `sizes`: targets
    each pick counts."""
    picks, added, uncovered = [], [], np.empty_like(kernel)
    for pick in range(n):
        size = sizes[pick]
        np.subtract(kernel[:size], covered[:size, None], out=uncovered[:size])
        gains = (weights[:size] @ uncovered[:size].clip(0, out=uncovered[:size])).astype(np.float32)
        gains[picks] = -1
        picks.append(int(gains.argmax()))
        added.append(gains[picks[-1]] / weights[:size].sum())
        covered = np.maximum(covered, kernel[:, picks[-1]])
    return picks, added


STAGES = [BLOCK] * 8 + [2 * BLOCK] * 8 + [2100] * 8


@pytest.fixture
def stages(monkeypatch):
    """Of 2100 candidates, 1024 are counted up to the 8th pick, 2048 up to the 16th, then all."""
    monkeypatch.setattr(coverage, "FEWEST", BLOCK)
    monkeypatch.setattr(coverage, "PAIRS", 1)
    monkeypatch.setattr(coverage, "PER_PICK", 128)


@pytest.mark.parametrize(
    ("kind", "weighted", "labelled", "unit"),
    [
        ("random", False, 0, True),
        ("random", True, 30, False),
        ("clusters", True, 30, False),
        ("copies", False, 30, True),
        ("copies", True, 0, False),
        ("offset", False, 0, False),
        ("low rank", False, 0, True),
        ("low rank", True, 30, False),
    ],
)
@pytest.mark.usefixtures("stages")
def test_herding_in_stages(make_snapshot, kind, weighted, labelled, unit):
    both = pool(kind, 2100 + labelled, 64)
    snapshot = snapshot_of(make_snapshot, both[labelled:], both[:labelled])
    scores = torch.from_numpy(np.random.default_rng(5).uniform(-1, 1, size=2100))
    x, known = doubles(both[labelled:], unit), doubles(both[:labelled], unit)
    weights = (scores - scores.min()).numpy() if weighted else np.ones(2100)
    order = Streams(3).numpy("representatives").permutation(2100)
    order = order[weights[order] > 0]
    squared = pairwise(x[order], x)
    width = float(np.sqrt(np.quantile(squared[0], 0.05) + 1e-9))
    chosen = Herding(weighted, bandwidth=width, normalise=unit)(snapshot, scores, 24, Streams(3), Limits())
    covered = np.exp(-pairwise(x[order], known) / width**2).max(1, initial=0.0)
    picks, added = naive_cover(np.exp(-squared / width**2), covered, weights[order], STAGES, 24)
    assert places(snapshot, chosen) == picks
    np.testing.assert_allclose(chosen.values, added, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "labelled", "unit"),
    [
        ("random", 0, True),
        ("clusters", 30, False),
        ("copies", 30, True),
        ("offset", 0, False),
        ("low rank", 0, True),
        ("low rank", 30, False),
    ],
)
@pytest.mark.usefixtures("stages")
def test_probcover_in_stages(make_snapshot, kind, labelled, unit):
    both = pool(kind, 2100 + labelled, 64, 1)
    snapshot = snapshot_of(make_snapshot, both[labelled:], both[:labelled])
    x, known = doubles(both[labelled:], unit), doubles(both[:labelled], unit)
    order = Streams(4).numpy("representatives").permutation(2100)
    squared = pairwise(x[order], x)
    # Between two distances, so that how they are rounded does not matter.
    radius = float(np.sqrt(np.sort(squared[0])[[20, 21]].mean())) if kind != "copies" else 1e-5
    chosen = ProbCover(radius, normalise=unit)(snapshot, torch.zeros(2100), 24, Streams(4), Limits())
    covered = (pairwise(x[order], known) <= radius**2).any(1).astype(float)
    picks, added = naive_cover((squared <= radius**2).astype(float), covered, np.ones(2100), STAGES, 24)
    assert min(added) > 0
    assert places(snapshot, chosen) == picks
    np.testing.assert_allclose(chosen.values, added, rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_are_never_below_gains(make_snapshot, monkeypatch, kind):
    """By sketches alone (room for every pair), by products alone (no room), and by whichever pays."""
    snapshot = snapshot_of(make_snapshot, pool(kind, 1300, 80), pool(kind, 40, 80, 1))
    candidates, known = (
        points(snapshot.candidates.embeddings, unit=True),
        points(snapshot.labelled.embeddings, unit=True),
    )
    rng = np.random.default_rng(0)
    order, some = rng.permutation(1300)[:1200], np.arange(0, 1300, 10)
    x = doubles(snapshot.candidates.embeddings, True)
    squared, near = pairwise(x[order], x[some]), pairwise(x[order], doubles(snapshot.labelled.embeddings, True)).min(1)
    for kernel in (Gaussian(0.6), Gaussian(3.0), Gaussian(1e-3), Ball(0.5), Ball(1.1), Ball(0.0)):
        weights = np.ones(1200) if isinstance(kernel, Ball) else rng.random(1200)
        cover = Cover(candidates, known, order, weights, kernel)
        expected = weights @ np.maximum(kernel.values(squared) - kernel.values(near)[:, None], 0)
        for few in (1, 16, 10**9):
            monkeypatch.setattr(coverage, "FEW", few)
            worker = Covering(Embedding(), True, cover.targets, shards(snapshot, torch.zeros(1300), Limits())[0])
            worker.offer(cover._near(slice(0, 1200), order[:0]))
            bounds, gains = worker.bounds(some), worker.gains(some)
            if kernel != Ball(0.0):
                np.testing.assert_allclose(gains, expected, rtol=1e-6, atol=1e-12)
            assert (bounds >= gains).all()
            assert (bounds <= 1.01 * gains + 2e-3 * weights.sum()).all()


@pytest.mark.parametrize(
    "select",
    [
        Herding(),
        Herding(weighted=True),
        Herding(features=Gradient()),
        Herding(representatives=700, normalise=False),
        ProbCover(),
        ProbCover(radius=1.2),
        TypiClust(members=50),
    ],
    ids=repr,
)
def test_threads_and_shards_do_not_change_the_picks(make_snapshot, monkeypatch, select):
    monkeypatch.setattr(coverage, "FEWEST", BLOCK)
    monkeypatch.setattr(coverage, "PAIRS", 1)
    monkeypatch.setattr(coverage, "PER_PICK", 100)
    both = pool("low rank", 3 * BLOCK + 100, 64)
    snapshot = snapshot_of(make_snapshot, both[20:], both[:20])
    snapshot.candidates.embeddings[700:1400] = snapshot.candidates.embeddings[:700]
    scores = torch.rand(len(both) - 20, generator=torch.Generator().manual_seed(0)).double()
    one = select(snapshot, scores, 25, Streams(1), Limits(engine=LocalEngine(threads=1, shards=1)))
    for threads, parts in ((1, 3), (4, 4)):
        other = select(snapshot, scores, 25, Streams(1), Limits(engine=LocalEngine(threads, parts)))
        assert other.rows.tolist() == one.rows.tolist()
        assert other.values.tolist() == one.values.tolist()


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Ball(0.4)])
def test_few_bounds_and_gains_are_recomputed(make_snapshot, monkeypatch, kernel):
    snapshot = snapshot_of(make_snapshot, pool("clusters", 3000, 8), pool("clusters", 0, 8))
    seen = {"bounds": 0, "gains": 0}
    for name in seen:
        plain = getattr(Covering, name)

        def counted(self, which, *more, plain=plain, name=name):
            found = plain(self, which, *more)
            seen[name] += len(found)
            return found

        monkeypatch.setattr(Covering, name, counted)
    candidates = points(snapshot.candidates.embeddings, unit=True)
    cover = Cover(candidates, points(snapshot.labelled.embeddings), np.arange(3000), np.ones(3000), kernel)
    engine = LocalEngine()
    worker = partial(Covering, Embedding(), True, cover.targets)
    with engine.crew(shards(snapshot, torch.zeros(3000), Limits(engine=engine)), worker) as crew:
        cover.picks(crew, 50)
    assert seen["bounds"] < 6 * 3000
    assert seen["gains"] < 5 * 50


def test_a_ranking_is_plain_greedy_over_falling_numbers():
    rng = np.random.default_rng(0)
    for size in (1, 64, 65, 1000):
        start = rng.integers(0, 30, size).astype(float)
        now = start.copy()
        ranking = Ranking(size)
        ranking.raise_by(lambda block, start=start: start[block] + 0.25)
        taken = np.zeros(size, dtype=bool)
        for _ in range(min(size, 200)):
            value, row = ranking.best(lambda which, now=now: now[which] + 0.25, lambda which, now=now: now[which])
            left = np.where(taken, -np.inf, now)
            assert (value, row) == (left.max(), left.argmax())
            taken[row] = True
            ranking.drop(row)
            ranking.age()
            now -= rng.integers(0, 2, size) * (now > 0)
        if size <= 200:
            assert ranking.best(lambda which: which, lambda which: which)[0] == -np.inf


def test_how_many_representatives():
    assert [representatives(pick, 1000, 10**6) for pick in (0, 204, 205, 409, 410, 819, 999)] == [
        4096,
        8192,
        8192,
        16384,
        16384,
        20480,
        20480,
    ]
    assert {representatives(pick, 100, 10**6) for pick in range(100)} == {4096}
    assert representatives(0, 10, 16384) == 16384
    assert representatives(0, 10, 100) == 32768
    assert representatives(9999, 10_000, 10**6) == 32768
    for n, size in ((37, 5000), (700, 30_000), (5000, 10**6)):
        sizes = [representatives(pick, n, size) for pick in range(n)]
        assert sizes == sorted(sizes)
        assert all(some % BLOCK == 0 for some in sizes)
        assert all(some >= min(20 * (pick + 1), 32768, size) for pick, some in enumerate(sizes))


def test_copies_of_what_is_known_are_found_at_once(make_snapshot, monkeypatch):
    both = pool("random", 2000, 64)
    both[:] = both[0]
    snapshot = snapshot_of(make_snapshot, both[5:], both[:5])
    calls = []
    gains = Covering.gains
    monkeypatch.setattr(Covering, "gains", lambda self, which: calls.append(len(which)) or gains(self, which))
    assert places(snapshot, Herding()(snapshot, torch.zeros(1995), 50, Streams(0), Limits())) == list(range(50))
    assert calls == []


@pytest.mark.parametrize("labelled", [0, 12])
def test_farthest_first(labelled):
    x, known = pool("clusters", 700, 6), pool("clusters", labelled, 6, 9)
    start = np.asarray([5, 600]) if labelled else np.asarray([5])
    picks = start.tolist()
    while len(picks) < 60:
        reach = pairwise(doubles(x, True), np.concatenate([doubles(known, True), doubles(x[picks], True)])).min(1)
        reach[picks] = -1
        picks.append(int(reach.argmax()))
    assert farthest_first(points(x, unit=True), points(known, unit=True), start, 60).tolist() == picks
    assert farthest_first(points(x, unit=True), points(known, unit=True), start, len(start)).tolist() == start.tolist()


def test_probcover_holds_no_pairs(make_snapshot):
    """A radius that covers everything: 2500² pairs, for which there is no room."""
    snapshot = make_snapshot(n=2500)
    chosen = ProbCover(radius=9.0)(snapshot, torch.zeros(2500), 5, Streams(0), Limits(memory_budget=0))
    assert chosen.values.tolist() == [0.0] * 5


def naive_typicality(x, among, neighbours):
    squared = np.sqrt(pairwise(x, x[among]))
    squared[among, np.arange(len(among))] = np.inf
    return 1 / (1e-5 + np.sort(squared, 1)[:, : min(neighbours, len(among) - 1)].mean(1))


@pytest.mark.parametrize("kind", KINDS)
def test_typicality(kind):
    x = pool(kind, BLOCK + 60, 5)
    for among in (np.arange(len(x)), np.arange(3, len(x), 7)):
        np.testing.assert_allclose(typicality(points(x), 7, among), naive_typicality(doubles(x), among, 7), rtol=1e-6)
    assert typicality(points(x[:1]), 7, np.arange(1)).tolist() == [0.0]
    pair = typicality(points(x[:2]), 7, np.arange(2))
    assert pair[0] == pair[1]


def test_typiclust_of_clusters_larger_than_a_sample(make_snapshot):
    snapshot = make_snapshot(n=900, m=0)
    chosen = TypiClust(neighbours=5, normalise=False, clusters=2, members=60)(
        snapshot, torch.zeros(900), 8, Streams(2), Limits()
    )
    h = doubles(snapshot.candidates.embeddings)
    clusters, rng = (
        k_means(snapshot.candidates.embeddings, 2, 20, Streams(2).seed("k-means")),
        Streams(2).numpy("members"),
    )
    queues = []
    for cluster in np.argsort(-np.bincount(clusters), kind="stable"):
        inside = np.flatnonzero(clusters == cluster)
        among = np.sort(rng.permutation(len(inside))[:60])
        queues.append(inside[np.argsort(-naive_typicality(h[inside], among, 5).astype(np.float32), kind="stable")])
    assert chosen.rows.tolist() == [int(queue[turn]) for turn in range(4) for queue in queues]


def test_labelled_samples_join_the_clusters_of_many_candidates(monkeypatch):
    x, known = pool("clusters", 600, 4), pool("clusters", 40, 4, 3)
    monkeypatch.setattr(typiclust, "JOINT", 100)
    clusters, held = cluster_together(x, known, 9, 20, 5)
    assert clusters.tolist() == k_means(x, 9, 20, 5).tolist()
    used = np.unique(clusters)
    means = np.stack([doubles(x)[clusters == cluster].mean(0) for cluster in used])
    assert held.tolist() == used[pairwise(doubles(known), means).argmin(1)].tolist()
    assert cluster_together(x, known[:0], 9, 20, 5)[1].tolist() == []


def test_rows_of_unit_length_are_made_as_they_are_read(monkeypatch):
    """The same clusters as for a copy scaled to unit length, also beyond the sample that centroids are trained on, and
    with several workers."""
    x, known = pool("clusters", 600, 4), pool("clusters", 40, 4, 3)
    x[5] = 0.0
    lengths = x.double().norm(dim=1, keepdim=True).clamp(min=1e-300)
    copy = (x.double() / lengths).float()
    assert torch.equal(UnitRows(x)[:], copy)
    assert torch.equal(UnitRows(x)[torch.tensor([5, 9])], copy[[5, 9]])
    monkeypatch.setattr(kmeans, "SAMPLE", 100)
    monkeypatch.setattr(typiclust, "JOINT", 100)
    among = np.arange(0, 600, 3)
    for engine in (LocalEngine(1), LocalEngine(2, 3)):
        assert k_means(UnitRows(x), 1, 20, 5, engine=engine).tolist() == k_means(copy, 1, 20, 5).tolist()
        assert k_means(UnitRows(x), 9, 20, 5, among, engine).tolist() == k_means(copy, 9, 20, 5, among).tolist()
    unit = known.double() / known.double().norm(dim=1, keepdim=True)
    mine, expected = cluster_together(x, known, 1, 20, 5, True), cluster_together(copy, unit.float(), 1, 20, 5)
    assert [part.tolist() for part in mine] == [part.tolist() for part in expected]


@pytest.mark.parametrize(
    "build", [lambda: ProbCover(representatives=0), lambda: Herding(representatives=0), lambda: TypiClust(members=1)]
)
def test_impossible_settings_are_rejected(build):
    with pytest.raises(InputError, match="at least"):
        build()
