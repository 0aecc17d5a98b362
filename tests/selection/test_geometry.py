"""Selections by geometry against naive forms that build every matrix, and on degenerate pools."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ally.data import BLOCK
from ally.errors import InputError
from ally.features import Embedding, Gradient, ProductRows
from ally.rng import Streams
from ally.selection.base import Limits
from ally.selection.centre import ClusterCentre
from ally.selection.cluster_margin import ClusterMargin, round_robin
from ally.selection.herding import Herding, coverage_weights, covering_radius
from ally.selection.kmeans import k_means
from ally.selection.lcmd import LCMD
from ally.selection.points import Points
from ally.selection.probcover import ProbCover, pure_radius
from ally.selection.typiclust import TypiClust, typicality

ALL = [
    LCMD(),
    LCMD(Gradient()),
    Herding(),
    Herding(weighted=True),
    Herding(normalise=False, features=Gradient()),
    Herding(representatives=7),
    ProbCover(),
    ProbCover(radius=0.5),
    ProbCover(radius=0.0, normalise=False),
    TypiClust(),
    TypiClust(neighbours=1, clusters=3),
    ClusterMargin(),
    ClusterMargin(shortlist=1, clusters=4),
    ClusterCentre(),
    ClusterCentre(threshold=0.5),
]


def points(seed, n, d=5):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pairwise(a, b):
    return ((a[:, None] - b[None]) ** 2).sum(-1)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def seen(snapshot):
    return snapshot.candidates.embeddings.double().numpy(), snapshot.labelled.embeddings.double().numpy()


def places(snapshot, selection):
    return (selection.rows - len(snapshot.labelled)).tolist()


def naive_lcmd(g, centres, n):
    picks = []
    for _ in range(n):
        chosen = np.concatenate([centres, g[picks]])
        if not len(chosen):
            picks.append(int((g**2).sum(1).argmax()))
            continue
        all_pairs = pairwise(g, chosen)
        nearest, d = all_pairs.argmin(1), all_pairs.min(1)
        sizes = [d[nearest == centre].sum() for centre in range(len(chosen))]
        picks.append(int(np.where(nearest == np.argmax(sizes), d, -1).argmax()))
    return picks


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [None, 3])
def test_lcmd(pool_of, seed, classes):
    def both(at, n):
        h = points(at, n)
        if classes is None:
            return (h,), h.numpy()
        a = points(at + 1000, n, classes)
        return (a, h), torch.einsum("nc,nd->ncd", a, h).reshape(n, -1).numpy()

    (rows, g), (centres, c) = both(seed, 80), both(seed + 100, 9)
    for (features, snapshot), known in ((pool_of(rows, centres), c), (pool_of(rows), c[:0])):
        chosen = LCMD(features)(snapshot, torch.zeros(80), 30, Streams(0), Limits())
        assert chosen.rows.tolist() == naive_lcmd(g, known, 30)


@pytest.mark.parametrize("seed", range(3))
def test_lcmd_through_a_snapshot(make_snapshot, seed):
    snapshot = make_snapshot(n=150, seed=seed)
    h, known = seen(snapshot)
    chosen = LCMD()(snapshot, torch.zeros(150), 25, Streams(0), Limits())
    assert places(snapshot, chosen) == naive_lcmd(h, known, 25)
    assert chosen.values[0] == pytest.approx(np.sqrt(pairwise(h, known).min(1)[places(snapshot, chosen)[0]]), rel=1e-4)


def naive_herding(x, known, weights, bandwidth, n):
    """Two samples that are each other's only neighbours tie exactly without weights, hence single precision here
    too."""
    kernel = np.exp(-pairwise(x, np.concatenate([x, known])) / bandwidth**2)
    covered = kernel[:, len(x) :].max(1, initial=0.0)
    picks, gains = [], []
    for _ in range(n):
        totals = (weights / weights.sum() @ np.maximum(kernel[:, : len(x)] - covered[:, None], 0)).astype(np.float32)
        totals[picks] = -1
        picks.append(int(totals.argmax()))
        gains.append(totals[picks[-1]])
        covered = np.maximum(covered, kernel[:, picks[-1]])
    return picks, gains


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("labelled", [0, 20])
def test_herding(make_snapshot, seed, weighted, normalise, labelled):
    snapshot = make_snapshot(n=120, m=labelled, seed=seed)
    scores = points(seed + 7, 120, 1).squeeze(1)
    chosen = Herding(weighted, bandwidth=0.8, normalise=normalise)(snapshot, scores, 40, Streams(seed), Limits())
    x, known = (unit(side) if normalise else side for side in seen(snapshot))
    weights = scores.numpy() - scores.numpy().min() if weighted else np.ones(120)
    picks, gains = naive_herding(x, known, weights, 0.8, 40)
    assert places(snapshot, chosen) == picks
    np.testing.assert_allclose(chosen.values, gains, rtol=1e-5)


@pytest.mark.parametrize("copies", [0, 6])
def test_the_width_of_uherding_is_the_smallest_distance_between_two_labelled_samples(make_snapshot, copies):
    snapshot = make_snapshot(n=120, m=20)
    known = snapshot.labelled
    # Copies are at no distance: the next pair counts, also where both of its samples have copies.
    again = torch.cat([torch.arange(20), torch.arange(copies)])
    snapshot = replace(snapshot, labelled=replace(known.at(again), rows=np.arange(20 + copies)))
    x, labelled = (unit(side) for side in seen(snapshot))
    gaps = pairwise(labelled, labelled)
    width = np.sqrt(gaps[gaps > 1e-9].min())
    chosen = Herding(bandwidth="labelled")(snapshot, torch.zeros(120), 30, Streams(0), Limits())
    assert (chosen.rows - 20).tolist() == naive_herding(x, labelled, np.ones(120), width, 30)[0]
    assert chosen.rows.tolist() != Herding()(snapshot, torch.zeros(120), 30, Streams(0), Limits()).rows.tolist()


@pytest.mark.parametrize("m", [0, 1, 2])
def test_without_two_different_labelled_samples_the_width_is_that_of_the_pool(make_snapshot, m):
    snapshot = make_snapshot(n=60, m=1)
    snapshot = replace(snapshot, labelled=replace(snapshot.labelled.at(torch.zeros(m).long()), rows=np.arange(m)))
    chosen, plain = (
        select(snapshot, torch.zeros(60), 8, Streams(0), Limits())
        for select in (Herding(bandwidth="labelled"), Herding())
    )
    assert chosen.rows.tolist() == plain.rows.tolist()


def test_herding_on_gradients(make_snapshot):
    snapshot = make_snapshot(n=90)
    chosen = Herding(bandwidth=0.7, features=Gradient())(snapshot, torch.zeros(90), 20, Streams(0), Limits())

    def full(view):
        a, h = (factor.double() for factor in Gradient()(view).factors)
        return unit(torch.einsum("nc,nd->ncd", a, h).reshape(len(h), -1).numpy())

    picks, _ = naive_herding(full(snapshot.candidates), full(snapshot.labelled), np.ones(90), 0.7, 20)
    assert places(snapshot, chosen) == picks


def test_several_blocks_equal_one_computation(make_snapshot):
    snapshot = make_snapshot(n=BLOCK + 60, m=BLOCK + 5, d=3)
    h, known = seen(snapshot)
    nothing = torch.zeros(len(h), dtype=torch.float64)
    assert places(snapshot, LCMD()(snapshot, nothing, 5, Streams(0), Limits())) == naive_lcmd(h, known, 5)
    picks, _ = naive_herding(unit(h), unit(known), np.ones(len(h)), 0.1, 12)
    assert places(snapshot, Herding(bandwidth=0.1)(snapshot, nothing, 12, Streams(0), Limits())) == picks
    few = replace(snapshot, labelled=make_snapshot(n=4, m=3, d=3, seed=5).labelled)
    chosen = ProbCover(radius=0.15)(few, nothing, 30, Streams(0), Limits())
    picks, gains = naive_cover(unit(h), unit(seen(few)[1]), 0.15, 30)
    assert (chosen.rows - len(snapshot.labelled)).tolist() == picks
    assert (chosen.values * len(h)).round().astype(int).tolist() == gains


def test_herding_covers_a_sample_of_a_large_pool(make_snapshot):
    snapshot = make_snapshot(n=200)
    chosen = Herding(bandwidth=0.5, representatives=50)(snapshot, torch.zeros(200), 30, Streams(3), Limits())
    targets = np.sort(Streams(3).numpy("representatives").permutation(200)[:50])
    x, known = (unit(side) for side in seen(snapshot))
    weights = np.isin(np.arange(200), targets).astype(float)
    assert places(snapshot, chosen) == naive_herding(x, known, weights, 0.5, 30)[0]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 1.0, 4.0], [0.0, 0.25, 1.0]),
        ([-2.0, 0.0, 2.0], [0.0, 0.5, 1.0]),
        ([3.0, 3.0], [1.0, 1.0]),
        ([-3.0, -3.0], [1.0, 1.0]),
        ([0.0, 0.0], [1.0, 1.0]),
        ([-1.5e308, 1.5e308], [0.0, 1.0]),
    ],
)
def test_scores_become_weights(scores, expected):
    assert coverage_weights(torch.tensor(scores, dtype=torch.float64)).tolist() == expected


def test_representatives_of_weight_zero_are_legal(make_snapshot):
    scores = torch.zeros(40, dtype=torch.float64)
    for row in range(40):
        scores.zero_()[row] = 1.0
        chosen = Herding(weighted=True, representatives=5)(make_snapshot(n=40), scores, 6, Streams(0), Limits())
        assert len(set(chosen.rows.tolist())) == 6
        assert np.isfinite(chosen.values).all()


def test_the_kernel_narrows_as_labels_grow():
    pool, shuffled = Points(ProductRows((points(0, 600),)), True), np.arange(600)
    widths = [
        covering_radius(pool, Points(ProductRows((points(1, m),)), True), n, shuffled)
        for m, n in [(0, 5), (0, 50), (100, 50)]
    ]
    assert widths[0] > widths[1] > widths[2] > 0
    x = unit(points(0, 600).numpy())
    assert widths[1] ** 2 == pytest.approx(np.quantile(pairwise(x[:300], x[300:350]).min(1), 0.5, method="lower"))


def naive_cover(x, known, radius, n):
    near = pairwise(x, x) <= radius**2
    uncovered = ~(pairwise(x, known) <= radius**2).any(1) if len(known) else np.ones(len(x), dtype=bool)
    picks, gains = [], []
    while len(picks) < n:
        degree = (near & uncovered).sum(1)
        if degree.max() > 0:
            picks.append(int(degree.argmax()))
            gains.append(int(degree.max()))
            uncovered &= ~near[picks[-1]]
        else:
            distance = pairwise(x, np.concatenate([known, x[picks]])).min(1)
            distance[picks] = -1
            picks.append(int(distance.argmax()))
            gains.append(0)
    return picks, gains


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("labelled", [0, 20])
@pytest.mark.parametrize("radius", [0.4, 0.9, 1.5])
def test_probcover(make_snapshot, seed, normalise, labelled, radius):
    snapshot = make_snapshot(n=150, m=labelled, d=4, seed=seed)
    chosen = ProbCover(radius, normalise=normalise)(snapshot, torch.zeros(150), 40, Streams(0), Limits())
    x, known = (unit(side) if normalise else side for side in seen(snapshot))
    picks, gains = naive_cover(x, known, radius, 40)
    assert places(snapshot, chosen) == picks
    assert (chosen.values * 150).round().astype(int).tolist() == gains


def test_pure_radius_is_a_quantile_of_the_distance_to_other_clusters():
    x = unit(points(3, 300).numpy())
    streams = Streams(1)
    clusters = k_means(torch.from_numpy(x).float(), 4, 20, streams.seed("pseudo-labels"))
    other = np.where(clusters[:, None] == clusters[None], np.inf, pairwise(x, x)).min(1)
    radius = pure_radius(Points(ProductRows((torch.from_numpy(x),)), True), 4, 0.9, streams)
    assert radius == pytest.approx(np.sqrt(np.quantile(other, 0.1, method="higher")), rel=1e-6)
    assert (other > (0.999 * radius) ** 2).mean() >= 0.9


def naive_typiclust(h, known, k, neighbours, smallest, n, seed):
    """Of rows as they are given: the most typical by the min(neighbours, half the cluster) nearest others, at least
    one."""
    found = k_means(torch.from_numpy(np.concatenate([h, known])).float(), k, 20, seed)
    clusters, held = found[: len(h)], found[len(h) :]

    def key(cluster):
        size = (found == cluster).sum()
        return size < smallest, (held == cluster).sum(), -size, cluster

    queues = {}
    for cluster in sorted(range(k), key=key):
        inside = np.flatnonzero(clusters == cluster)
        distance = np.sqrt(pairwise(h[inside], h[inside]))
        np.fill_diagonal(distance, np.inf)
        mean = (
            np.sort(distance, 1)[:, : min(neighbours, max(len(inside) // 2, 1))].mean(1) if len(inside) else np.empty(0)
        )
        queues[cluster] = inside[np.argsort(mean.astype(np.float32), kind="stable")].tolist()
    picks = []
    for small in (False, True):
        waiting = [queues[cluster] for cluster in queues if key(cluster)[0] == small]
        while any(waiting):
            picks += [queue.pop(0) for queue in waiting if queue]
    return picks[:n]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("labelled", "most", "n"), [(20, 500, 15), (0, 500, 10), (20, 6, 30), (5, 500, 120), (20, 1, 12)]
)
@pytest.mark.parametrize("normalise", [False, True])
def test_typiclust(make_snapshot, seed, labelled, most, n, normalise):
    snapshot, streams = make_snapshot(n=150, m=labelled, seed=seed), Streams(seed)
    chosen = TypiClust(neighbours=4, normalise=normalise, clusters=most, smallest=3)(
        snapshot, torch.zeros(150), n, streams, Limits()
    )
    h, known = (unit(side) if normalise else side for side in seen(snapshot))
    assert places(snapshot, chosen) == naive_typiclust(
        h, known, min(labelled + n, most), 4, 3, n, streams.seed("k-means")
    )


def test_typiclust_passes_over_clusters_with_labels(make_snapshot):
    snapshot = make_snapshot(n=90, m=2, d=2)
    centres = torch.tensor([[0.0, 0.0], [40.0, 0.0], [0.0, 40.0]])
    snapshot.candidates.embeddings[:] = centres[torch.arange(90) % 3] + 0.1 * snapshot.candidates.embeddings
    snapshot.labelled.embeddings[:] = centres[:2]
    # k-means starts at random; this is a seed at which it finds the three groups.
    chosen = TypiClust(normalise=False)(snapshot, torch.zeros(90), 1, Streams(3), Limits())
    assert chosen.cluster_sizes.tolist() == [30]
    assert places(snapshot, chosen)[0] % 3 == 2


def test_typiclust_sees_directions(make_snapshot):
    """The same samples at other lengths give the same picks; samples at 0 have no direction and stay where they are."""
    snapshot = make_snapshot(n=120, m=10)
    snapshot.candidates.embeddings[::9] = 0.0
    lengths = torch.exp2(torch.arange(120) % 7 - 3.0)[:, None]
    longer = replace(
        snapshot, candidates=replace(snapshot.candidates, embeddings=lengths * snapshot.candidates.embeddings)
    )

    def picks(some, **settings):
        return TypiClust(**settings)(some, torch.zeros(120), 15, Streams(0), Limits()).rows.tolist()

    assert picks(longer) == picks(snapshot)
    assert picks(longer, normalise=False) != picks(snapshot, normalise=False)


def test_typicality_counts_half_of_a_small_cluster():
    """Six samples on a line, K = 3: the mean distance to the three nearest others, not to all five."""
    x = torch.tensor([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])[:, None]
    found = typicality(Points(ProductRows((x,)), False), 20, np.arange(6))
    np.testing.assert_allclose(1 / found, [7 / 3, 5 / 3, 5 / 3, 3.0, 17 / 3, 34 / 3], rtol=1e-4)


def naive_round_robin(clusters, uniforms, n):
    queues = [
        sorted(np.flatnonzero(clusters == cluster).tolist(), key=lambda row: uniforms[row])
        for cluster in np.unique(clusters)
    ]
    queues.sort(key=len)
    picks = []
    while len(picks) < n:
        picks += [queue.pop(0) for queue in queues if queue]
    return picks[:n]


@pytest.mark.parametrize("seed", range(10))
def test_round_robin(seed):
    rng = np.random.default_rng(seed)
    clusters, uniforms = rng.choice([0, 2, 3, 7], p=[0.1, 0.2, 0.3, 0.4], size=60), rng.random(60)
    for n in (1, 5, 59, 60):
        assert round_robin(clusters, uniforms, n).tolist() == naive_round_robin(clusters, uniforms, n)


@pytest.mark.parametrize("seed", range(3))
def test_cluster_margin(make_snapshot, seed):
    snapshot, scores, streams = make_snapshot(n=150, seed=seed), points(seed, 150, 1).squeeze(1), Streams(seed)
    chosen = ClusterMargin(shortlist=4)(snapshot, scores, 20, streams, Limits())
    kept = np.sort(np.argsort(-scores.numpy())[:80])
    clusters = k_means(snapshot.candidates.embeddings, 15, 20, streams.seed("k-means"))[kept]
    picks = kept[naive_round_robin(clusters, streams.numpy("round robin").random(80), 20)]
    assert places(snapshot, chosen) == picks.tolist()
    assert chosen.values.tolist() == scores[picks].tolist()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threshold", [None, 0.3, 5.0])
def test_cluster_centre(make_snapshot, seed, threshold):
    snapshot, scores, streams = make_snapshot(n=150, seed=seed), points(seed, 150, 1).squeeze(1), Streams(seed)
    chosen = ClusterCentre(threshold)(snapshot, scores, 12, streams, Limits())
    among = np.flatnonzero(scores.numpy() >= 0.3) if threshold == 0.3 else np.arange(150)
    h = seen(snapshot)[0][among]
    clusters = k_means(torch.from_numpy(h).float(), 12, 20, streams.seed("k-means"))
    nearest = {
        int(among[np.where(clusters == c, ((h - h[clusters == c].mean(0)) ** 2).sum(1), np.inf).argmin()])
        for c in range(12)
    }
    assert set(places(snapshot, chosen)) == nearest
    assert sorted(chosen.clusters.tolist()) == list(range(12))


def degenerate(make_snapshot, kind):
    snapshot = make_snapshot(n=1 if kind == "one" else 24, m=0 if kind == "no labels" else 6)
    candidates, labelled = snapshot.candidates, snapshot.labelled
    if kind == "no labels":
        return replace(snapshot, labelled=replace(labelled, embeddings=torch.empty(0, 0), probabilities=None))
    if kind == "copies":
        candidates.embeddings[:], candidates.probabilities[:] = (
            candidates.embeddings[0].clone(),
            candidates.probabilities[0].clone(),
        )
    if kind == "copies of the labelled":
        candidates.embeddings[:], candidates.probabilities[:] = labelled.embeddings[0], labelled.probabilities[0]
    if kind == "zeros":
        candidates.embeddings.zero_(), labelled.embeddings.zero_()
    if kind == "three rows":
        candidates.embeddings[:] = candidates.embeddings[torch.arange(24) % 3].clone()
    if kind == "huge":
        candidates.embeddings.mul_(1e15)
    return snapshot


@pytest.mark.parametrize("select", ALL, ids=repr)
@pytest.mark.parametrize(
    "kind", ["one", "no labels", "copies", "copies of the labelled", "zeros", "three rows", "huge", "plain"]
)
def test_exactly_n_distinct_rows_of_any_pool(make_snapshot, select, kind):
    snapshot = degenerate(make_snapshot, kind)
    size = len(snapshot.candidates)
    for scores in (torch.zeros(size).double(), torch.linspace(-1, 1, size).double()):
        for n in sorted({1, min(9, size), size}):
            first, second = (select(snapshot, scores, n, Streams(5), Limits()) for _ in range(2))
            assert len(first.rows) == len(first.values) == len(set(first.rows.tolist())) == n
            assert set(first.rows.tolist()) <= set(snapshot.candidates.rows.tolist())
            assert np.isfinite(first.values).all()
            assert first.rows.tolist() == second.rows.tolist()


@pytest.mark.parametrize("select", [LCMD(), Herding(), Herding(weighted=True), ProbCover()], ids=repr)
def test_copies_are_picked_by_position(make_snapshot, select):
    for kind in ("copies", "copies of the labelled", "zeros"):
        snapshot = degenerate(make_snapshot, kind)
        assert places(snapshot, select(snapshot, torch.zeros(24).double(), 24, Streams(0), Limits())) == list(
            range(24)
        ), kind


def test_each_distinct_row_comes_before_a_copy(make_snapshot):
    snapshot = degenerate(make_snapshot, "three rows")
    for select in (LCMD(), Herding(), ProbCover(radius=0.0)):
        assert {
            place % 3 for place in places(snapshot, select(snapshot, torch.zeros(24), 3, Streams(0), Limits()))
        } == {0, 1, 2}


@pytest.mark.parametrize(
    "build",
    [
        lambda: Herding(bandwidth=0.0),
        lambda: Herding(bandwidth="pool"),
        lambda: Herding(representatives=0),
        lambda: ProbCover(radius=-1.0),
        lambda: ProbCover(purity=1.0),
        lambda: ProbCover(clusters=1),
        lambda: TypiClust(neighbours=0),
        lambda: ClusterMargin(shortlist=0),
        lambda: ClusterCentre(iterations=0),
    ],
)
def test_impossible_settings_are_rejected(build):
    with pytest.raises(InputError, match=r"at least|must be|between"):
        build()


@pytest.mark.parametrize("select", ALL, ids=repr)
def test_settings_are_values(select):
    assert select == replace(select)
    assert hash(select) == hash(replace(select))
    assert Embedding() == LCMD().features
