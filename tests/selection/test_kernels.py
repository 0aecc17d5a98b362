"""Fast kernels against naive twins that build every matrix."""

import numpy as np
import pytest
import torch

from ally.data import BLOCK
from ally.features import Embedding, FisherFactors, Gradient, fisher_factors
from ally.rng import Streams
from ally.selection import FisherGreedy, KCenter, KMeansPP
from ally.selection.base import Limits, largest


def rows_of(seed, n=70, d=5, classes=None, dtype=torch.float64):
    """Factors, and the rows they stand for."""
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, d, generator=generator, dtype=dtype)
    if classes is None:
        return (h,), h.numpy()
    a = torch.randn(n, classes, generator=generator, dtype=dtype)
    return (a, h), torch.einsum("nc,nd->ncd", a, h).reshape(n, -1).numpy()


def picks_of(build, pool, n, streams=Streams(0)):
    """`pool` is a representation and a snapshot whose candidates are numbered from 0."""
    features, snapshot = pool
    return build(features)(snapshot, torch.zeros(len(snapshot.candidates)), n, streams, Limits()).rows.tolist()


def naive_k_center(g, centres, n):
    distances = ((g[:, None] - centres[None]) ** 2).sum(-1).min(1) if len(centres) else None
    picks = []
    for _ in range(n):
        if distances is None:
            pick = int((g**2).sum(1).argmax())
            distances = ((g - g[pick]) ** 2).sum(1)
        else:
            pick = int(np.where(np.isin(np.arange(len(g)), picks), -1, distances).argmax())
            distances = np.minimum(distances, ((g - g[pick]) ** 2).sum(1))
        picks.append(pick)
    return picks


def naive_k_means_pp(g, uniforms):
    picks = [int((g**2).sum(1).argmax())]
    distances = ((g - g[picks[0]]) ** 2).sum(1)
    for uniform in uniforms[1:]:
        edges = np.cumsum(distances)
        pick = int(np.searchsorted(edges, uniform * edges[-1], side="right"))
        picks.append(pick)
        distances = np.minimum(distances, ((g - g[pick]) ** 2).sum(1))
    return picks


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [None, 4])
def test_k_center(pool_of, seed, classes):
    rows, g = rows_of(seed, classes=classes)
    centres, c = rows_of(seed + 100, n=9, classes=classes)
    assert picks_of(KCenter, pool_of(rows, centres), 30) == naive_k_center(g, c, 30)
    assert picks_of(KCenter, pool_of(rows), 30) == naive_k_center(g, np.empty((0, g.shape[1])), 30)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [None, 4])
def test_k_means_pp(pool_of, seed, classes):
    rows, g = rows_of(seed, classes=classes)
    uniforms = Streams(seed).numpy("d2 draws").random(40)
    assert picks_of(KMeansPP, pool_of(rows), 40, Streams(seed)) == naive_k_means_pp(g, uniforms)


@pytest.mark.parametrize("seed", range(3))
def test_badge_on_a_snapshot_equals_the_definition(make_snapshot, seed):
    snapshot = make_snapshot(n=150, seed=seed)
    p, h = snapshot.candidates.probabilities.double().numpy(), snapshot.candidates.embeddings.double().numpy()
    a = p - np.eye(p.shape[1])[p.argmax(1)]
    g = (a[:, :, None] * h[:, None, :]).reshape(len(h), -1)
    streams = Streams(seed)
    picked = KMeansPP(Gradient())(snapshot, torch.zeros(150), 25, streams, Limits())
    naive = naive_k_means_pp(g, streams.numpy("d2 draws").random(25))
    assert picked.rows.tolist() == snapshot.candidates.rows[naive].tolist()


def test_several_blocks_equal_one_computation(pool_of):
    rows, g = rows_of(0, n=2 * BLOCK + 100, d=3)
    centres, c = rows_of(1, n=BLOCK + 7, d=3)
    assert picks_of(KCenter, pool_of(rows, centres), 6) == naive_k_center(g, c, 6)
    assert picks_of(KMeansPP, pool_of(rows), 20) == naive_k_means_pp(g, Streams(0).numpy("d2 draws").random(20))


def test_copies_are_picked_last_and_by_position(pool_of):
    pool = pool_of((torch.tensor([[3.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 1.0], [3.0, 0.0]]),))
    for seed in range(10):
        assert picks_of(KCenter, pool, 5, Streams(seed)) == [0, 1, 2, 3, 4]
        first, second, *copies = picks_of(KMeansPP, pool, 5, Streams(seed))
        assert first == 0
        assert second in (1, 3)
        assert copies == sorted({1, 2, 3, 4} - {second})


@pytest.mark.parametrize("seed", range(20))
def test_largest_equals_a_stable_sort(seed):
    values = torch.from_numpy(np.random.default_rng(seed).integers(0, 6, size=50).astype(float))
    for n in (1, 7, 49, 50):
        assert largest(values, n).tolist() == np.argsort(-values.numpy(), kind="stable")[:n].tolist()


def fisher_of(seed, n, d, classes):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if classes == 1:
        return FisherFactors(h, torch.ones(n, 1, 1, dtype=torch.float64))
    p = (2 * torch.randn(n, classes, generator=generator, dtype=torch.float64)).softmax(1)
    return FisherFactors(h, torch.diag_embed(p.sqrt()) - p.sqrt()[:, :, None] * p[:, None, :])


def information_of(factors, row):
    return torch.kron(
        factors.roots[row].T @ factors.roots[row], torch.outer(factors.embeddings[row], factors.embeddings[row])
    )


def naive_bait(candidates, labelled, n, ridge, forward):
    """tr(M⁻¹F) recomputed with a full inverse for every candidate of every step."""
    total = len(labelled) + n
    scale = n / total
    parts = [information_of(candidates, row) for row in range(len(candidates))]
    known = sum(information_of(labelled, row) for row in range(len(labelled)))
    pooled = (sum(parts) + known) / (len(candidates) + len(labelled))
    matrix = ridge * torch.eye(len(pooled), dtype=torch.float64) + known / total

    def objective(m):
        return float(torch.trace(torch.linalg.solve(m, pooled)))

    picks = []
    for _ in range(forward):
        values = [np.inf if row in picks else objective(matrix + scale * parts[row]) for row in range(len(candidates))]
        picks.append(int(np.argmin(values)))
        matrix = matrix + scale * parts[picks[-1]]
    kept = list(picks)
    for _ in range(forward - n):
        values = [objective(matrix - scale * parts[row]) for row in kept]
        out = kept.pop(int(np.argmin(values)))
        matrix = matrix - scale * parts[out]
    return picks, kept


def test_fisher_factors_equal_the_definition(make_snapshot):
    view = make_snapshot(n=12, classes=3).candidates
    factors = fisher_factors(view)
    p = view.probabilities.double()
    torch.testing.assert_close(
        factors.curvature, torch.diag_embed(p) - p[:, :, None] * p[:, None, :], atol=1e-7, rtol=1e-6
    )
    mean = sum(information_of(factors, row) for row in range(12)) / 12
    torch.testing.assert_close(factors.mean(), mean)


def test_bait_through_a_snapshot_returns_exactly_n(make_snapshot):
    for task in ("classification", "regression"):
        snapshot = make_snapshot(n=30, task=task)
        for n in (1, 8, 20, 30):
            chosen = FisherGreedy()(snapshot, torch.zeros(30), n, Streams(0), Limits())
            assert len(set(chosen.rows.tolist())) == n


@pytest.mark.parametrize("seed", range(3))
def test_fisher_greedy_adds_and_removes(make_snapshot, seed):
    snapshot = make_snapshot(n=22, m=6, d=3, classes=3, seed=seed)
    chosen = FisherGreedy(ridge=0.5)(snapshot, torch.zeros(22), 4, Streams(0), Limits())
    _, kept = naive_bait(fisher_factors(snapshot.candidates), fisher_factors(snapshot.labelled), 4, 0.5, 8)
    assert chosen.rows.tolist() == snapshot.candidates.rows[kept].tolist()


def test_gains_are_the_distances_of_the_definition(make_snapshot):
    snapshot = make_snapshot()
    chosen = KCenter(Embedding())(snapshot, torch.zeros(200), 10, Streams(0), Limits())
    h, labelled = snapshot.candidates.embeddings.double(), snapshot.labelled.embeddings.double()
    first = torch.cdist(h, labelled).amin(1)
    assert chosen.values[0] == pytest.approx(float(first.max()), rel=1e-4)
    assert (np.diff(chosen.values) <= 1e-5).all()
