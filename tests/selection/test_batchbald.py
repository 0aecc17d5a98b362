from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import entropy

import ally
from ally.errors import InputError, MemoryBudgetExceeded, NonFiniteScore, UnsupportedTask
from ally.learning.posterior import mutual_information
from ally.models import MLP
from ally.rng import Streams
from ally.scoring import Constant
from ally.selection.base import Limits, largest
from ally.selection.batchbald import BatchBALD, greedy
from ally.strategies import Strategy


def posterior(m, draws, classes, seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(m, draws, classes, generator=generator, dtype=torch.float64)).softmax(2)


def joint_information(p, batch):
    """I(y_batch; θ) by its definition, over all configurations of labels."""
    p = p.numpy()
    given = np.stack(
        [
            np.prod([p[i, :, c] for i, c in zip(batch, labels, strict=True)], axis=0)
            for labels in product(range(p.shape[2]), repeat=len(batch))
        ]
    )
    return entropy(given.mean(1)) - entropy(given, axis=0).mean()


def naive(p, n):
    batch = []
    for _ in range(n):
        free = [i for i in range(len(p)) if i not in batch]
        gains = [joint_information(p, [*batch, i]) for i in free]
        batch.append(free[int(np.argmax(gains))])
    return batch


def with_samples(snapshot, selection, p):
    (readout,) = selection.readouts
    return replace(snapshot, candidates=replace(snapshot.candidates, readouts={readout.name: p.float()}))


def select(make_snapshot, selection, p, n, limits=Limits()):
    snapshot = with_samples(make_snapshot(n=len(p), classes=p.shape[2]), selection, p)
    return selection(snapshot, torch.zeros(len(p), dtype=torch.float64), n, Streams(0), limits), snapshot


@pytest.mark.parametrize(("draws", "classes", "n"), [(2, 2, 5), (5, 3, 4), (7, 4, 3), (3, 2, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_equals_brute_force_over_configurations(draws, classes, n, seed):
    p = posterior(14, draws, classes, seed)
    positions, gains = greedy(p, n)
    assert positions.tolist() == naive(p, n)
    for size in range(1, n + 1):
        assert float(gains[:size].sum()) == pytest.approx(joint_information(p, positions[:size].tolist()), abs=1e-10)


def test_bounds_do_not_change_the_picks_of_a_larger_pool():
    p = posterior(400, 6, 3, seed=5, scale=1.0)
    positions, gains = greedy(p, 3)
    assert positions.tolist() == naive(p, 3)
    assert (np.diff(gains) <= 1e-12).all()


def test_copies_are_not_picked_while_others_inform(make_snapshot):
    p = posterior(6, 30, 3, seed=1)
    p = torch.cat([p[largest(mutual_information(p), 1)].expand(5, -1, -1), p])
    top = largest(mutual_information(p), 3)
    chosen, snapshot = select(make_snapshot, BatchBALD(), p, 3)
    positions = np.searchsorted(snapshot.candidates.rows, chosen.rows)
    assert all(torch.equal(p[top[0]], p[i]) for i in top)
    distinct = {tuple(p[int(i)].flatten().tolist()) for i in positions}
    assert len(distinct) == 3


def test_copies_are_picked_after_other_informative_samples(make_snapshot):
    weak = posterior(1, 20, 3, seed=1, scale=0.1)
    strong = posterior(1, 20, 3, seed=2, scale=0.5).expand(5, -1, -1)
    p = torch.cat([weak, strong])
    copy = joint_information(p, [1, 2]) - joint_information(p, [1])
    assert copy > joint_information(p, [1, 0]) - joint_information(p, [1]) > 0
    chosen, snapshot = select(make_snapshot, BatchBALD(), p, 4)
    assert chosen.rows.tolist() == snapshot.candidates.rows[[1, 0, 2, 3]].tolist()


def test_information_of_k_samples_is_at_most_log_k():
    positions, gains = greedy(posterior(50, 4, 3, seed=2, scale=30.0), 8)
    assert len(set(positions.tolist())) == 8
    assert 0.9 * np.log(4) < float(gains.sum()) <= np.log(4) + 1e-9
    assert (gains >= 0).all()


def test_equal_samples_go_to_the_first_rows(make_snapshot):
    p = posterior(1, 5, 3).expand(40, -1, -1).clone()
    chosen, snapshot = select(make_snapshot, BatchBALD(), p, 4)
    assert chosen.rows.tolist() == snapshot.candidates.rows[:4].tolist()


def test_shortlist_keeps_the_most_informative(make_snapshot):
    p = posterior(60, 8, 3, seed=3)
    best = set(largest(mutual_information(p), 5).tolist())
    chosen, snapshot = select(make_snapshot, BatchBALD(shortlist=5), p, 3)
    assert set(np.searchsorted(snapshot.candidates.rows, chosen.rows).tolist()) <= best
    everyone, _ = select(make_snapshot, BatchBALD(shortlist=None), p, 3)
    assert everyone.rows.tolist() == snapshot.candidates.rows[naive(p, 3)].tolist()


def test_an_infeasible_batch_error_gives_the_largest_size(make_snapshot):
    assert [BatchBALD().feasible(classes) for classes in (2, 3, 10, 1000, 10**6)] == [10, 10, 6, 2, 1]
    with pytest.raises(InputError, match=r"n=7 is too large .* 10 classes: it takes n <= 6 .* strategy='powerbald'"):
        select(make_snapshot, BatchBALD(), posterior(30, 3, 10), 7)
    with pytest.raises(InputError, match="it takes n <= 4"):
        select(make_snapshot, BatchBALD(limit=4), posterior(30, 3, 2), 5)
    for setting in ({"limit": 0}, {"shortlist": 0}, {"samples": 1}):
        with pytest.raises(InputError):
            BatchBALD(**setting)


def test_memory_is_checked_before_the_work(make_snapshot):
    with pytest.raises(MemoryBudgetExceeded, match="shortlist of 50 samples"):
        select(make_snapshot, BatchBALD(shortlist=50), posterior(300, 8, 3), 3, Limits(1000))


def test_a_diverged_sample_stops_the_round(make_snapshot):
    p = posterior(30, 3, 3)
    p[4, 1] = torch.nan
    with pytest.raises(NonFiniteScore, match="row 24"):
        select(make_snapshot, BatchBALD(), p, 2)


def test_regression_is_refused():
    with pytest.raises(UnsupportedTask):
        ally.query(
            np.eye(5), [0.1, 0.5, 0.7, None, None], n=1, task="regression", strategy=Strategy(Constant(), BatchBALD())
        )


def test_equal_seeds_give_equal_ids_for_any_chunk_and_copies_are_avoided():
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(230, 4)), (10, 1)).astype(np.float32)
    y = ((X[:, 0] > 0) + 0.0 + (X[:, 1] > 0.5)).astype(float)
    y[30:] = np.nan
    model = partial(MLP, hidden=(16,), dropout=0.3)
    ask = partial(
        ally.query, X, y, n=4, strategy=Strategy(Constant(), BatchBALD(samples=50)), model=model, task="classification"
    )
    whole, small = ask(random_state=3), ask(random_state=3, chunk_size=100)
    assert small.ids.tolist() == whole.ids.tolist()
    assert small.scores.tolist() == whole.scores.tolist()
    assert len(set((whole.ids % 230).tolist())) == 4
