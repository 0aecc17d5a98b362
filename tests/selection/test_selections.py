from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ally.data import BLOCK
from ally.errors import InputError, MemoryBudgetExceeded
from ally.execution.engine import LocalEngine
from ally.rng import Streams
from ally.selection import (
    ByTask,
    ClusterCentre,
    ClusterMargin,
    ClusterTop,
    FisherGreedy,
    Herding,
    Influence,
    Perturbed,
    Top,
    cluster_top,
    kmeans,
    perturbed,
    top,
)
from ally.selection.base import Limits
from ally.selection.cluster_top import equal_top
from ally.selection.kmeans import k_means
from ally.selection.ties import tie_order
from ally.selection.top import leaders


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_equal_top_is_fair_and_exact(data):
    m = data.draw(st.integers(1, 40))
    k = data.draw(st.integers(1, m))
    n = data.draw(st.integers(1, m))
    clusters = np.asarray(data.draw(st.lists(st.integers(0, k - 1), min_size=m, max_size=m)), dtype=np.int64)
    scores = np.asarray(data.draw(st.lists(st.integers(0, 5), min_size=m, max_size=m)), dtype=float)
    ties = np.asarray(data.draw(st.permutations(range(m))), dtype=np.int64)
    picks = equal_top(scores, clusters, k, n, ties)
    assert len(set(picks.tolist())) == n
    taken = np.bincount(clusters[picks], minlength=k)
    held = np.bincount(clusters, minlength=k)
    full = taken < held
    if full.any():
        assert taken.max() - taken[full].min() <= 1
    for cluster in range(k):
        members = np.flatnonzero(clusters == cluster)
        best = members[np.lexsort((ties[members], -scores[members]))][: taken[cluster]]
        assert set(best.tolist()) == set(picks[clusters[picks] == cluster].tolist())


def naive_equal_top(scores, clusters, n, ties):
    """Every member of every cluster in its turn."""
    turns = []
    for cluster in set(clusters.tolist()):
        members = sorted(np.flatnonzero(clusters == cluster).tolist(), key=lambda one: (-scores[one], ties[one]))
        turns += [(turn, -scores[member], ties[member], member) for turn, member in enumerate(members)]
    return [member for *_, member in sorted(turns)[:n]]


@pytest.mark.parametrize("seed", range(8))
def test_equal_top_goes_run_by_run(monkeypatch, seed):
    monkeypatch.setattr(cluster_top, "RUN", 16)
    rng = np.random.default_rng(seed)
    clusters = rng.choice(12, p=rng.dirichlet(np.full(12, 0.5)), size=300)
    scores = rng.integers(0, 20, size=300).astype(float)
    for n in (1, 5, 12, 100, 299, 300):
        ties = tie_order(np.arange(300), seed)
        assert equal_top(scores, clusters, 12, n, ties).tolist() == naive_equal_top(scores, clusters, n, ties)


def test_one_pick_per_cluster_when_k_is_n(make_snapshot):
    snapshot = make_snapshot(n=300)
    chosen = ClusterTop()(snapshot, torch.rand(300, dtype=torch.float64), 20, Streams(0), Limits())
    assert len(np.unique(chosen.clusters)) >= 18
    again = k_means(snapshot.candidates.embeddings, 20, 20, Streams(0).seed("k-means"))
    assert chosen.cluster_sizes.tolist() == np.bincount(again, minlength=20)[chosen.clusters].tolist()
    assert chosen.clusters.shape == chosen.rows.shape


def test_clusters_are_separate_groups():
    centres = torch.tensor([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    points = centres.repeat_interleave(20, dim=0) + torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    found = k_means(points, 3, 20, seed=1)
    assert [len(set(found[start : start + 20].tolist())) for start in (0, 20, 40)] == [1, 1, 1]
    assert len(set(found.tolist())) == 3


def test_a_large_offset_does_not_hide_clusters():
    points = torch.tensor([[0.0], [1.0]]).repeat(20, 1) + 1e6
    assert len(set(k_means(points, 2, 20, seed=0).tolist())) == 2


def test_shortlist_keeps_to_the_highest(make_snapshot):
    snapshot = make_snapshot(n=200)
    scores = torch.arange(200, dtype=torch.float64)
    chosen = ClusterTop(shortlist=3)(snapshot, scores, 10, Streams(0), Limits())
    assert min(chosen.values) >= 170


def test_low_diversity_takes_several_per_cluster(make_snapshot):
    chosen = ClusterTop(clusters=2)(make_snapshot(), torch.rand(200, dtype=torch.float64), 10, Streams(0), Limits())
    assert np.bincount(chosen.clusters).tolist() == [5, 5]


SELECTIONS = [
    Top(),
    Perturbed("power"),
    Perturbed("softmax"),
    Perturbed("softrank"),
    ClusterTop(),
    ClusterTop(clusters=5),
    ClusterTop(shortlist=20),
    ClusterMargin(),
    ClusterCentre(),
    ClusterCentre(threshold=0.2),
]


@pytest.mark.parametrize("select", SELECTIONS, ids=repr)
def test_shards_and_runs_do_not_change_the_picks(monkeypatch, make_snapshot, select):
    monkeypatch.setattr(kmeans, "SAMPLE", 1500)
    monkeypatch.setattr(kmeans, "PER_CLUSTER", 10)
    snapshot = make_snapshot(n=3 * BLOCK + 77)
    scores = (
        torch.randint(-5, 50, (len(snapshot.candidates),), generator=torch.Generator().manual_seed(1)).double() / 49
    )
    expected = select(snapshot, scores, 100, Streams(0), Limits(engine=LocalEngine(1, shards=1)))
    monkeypatch.setattr(top, "RUN", 150)
    monkeypatch.setattr(perturbed, "RUN", 150)
    for engine in (LocalEngine(1, shards=1), LocalEngine(1, shards=3), LocalEngine(2, shards=4)):
        found = select(snapshot, scores, 100, Streams(0), Limits(engine=engine))
        assert found.rows.tolist() == expected.rows.tolist()
        assert found.values.tolist() == expected.values.tolist()


def test_shortlisted_rows_are_clustered_as_if_alone(make_snapshot):
    snapshot = make_snapshot(n=400)
    scores = torch.rand(400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chosen = ClusterTop(shortlist=4)(snapshot, scores, 20, Streams(0), Limits())
    among = np.sort(np.argsort(-scores.numpy())[:80])
    clusters = k_means(snapshot.candidates.embeddings[torch.from_numpy(among)], 20, 20, Streams(0).seed("k-means"))
    picks = naive_equal_top(scores.numpy()[among], clusters, 20, among)
    assert chosen.rows.tolist() == snapshot.candidates.rows[among[picks]].tolist()
    assert chosen.clusters.tolist() == clusters[picks].tolist()


@pytest.mark.parametrize("bad", [{"clusters": 0}, {"shortlist": 0}, {"iterations": 0}])
def test_cluster_top_rejects(bad):
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        ClusterTop(**bad)


def plackett_luce(weights, pair):
    total = weights.sum()
    i, j = pair
    return weights[i] / total * weights[j] / (total - weights[i]) + weights[j] / total * weights[i] / (
        total - weights[j]
    )


@pytest.mark.parametrize(
    ("form", "weights_of"),
    [
        ("softmax", lambda s: np.exp(s)),
        ("power", lambda s: s),
        ("softrank", lambda s: 1 / (1 + (-s).argsort().argsort())),
    ],
)
def test_perturbed_follows_plackett_luce(make_snapshot, form, weights_of):
    snapshot = make_snapshot(n=4)
    scores = torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64)
    draws, counts = 4000, {}
    for seed in range(draws):
        rows = Perturbed(form)(snapshot, scores, 2, Streams(seed), Limits()).rows - 20
        pair = tuple(sorted(rows.tolist()))
        counts[pair] = counts.get(pair, 0) + 1
    weights = weights_of(scores.numpy())
    for pair in [(i, j) for i in range(4) for j in range(i + 1, 4)]:
        expected = plackett_luce(weights, pair)
        assert counts.get(pair, 0) / draws == pytest.approx(
            expected, abs=4 * np.sqrt(expected * (1 - expected) / draws) + 1e-3
        )


def test_noise_is_one_stream(make_snapshot):
    scores = torch.rand(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    noise = Streams(3).numpy("gumbel noise").gumbel(size=200)
    for form, weights in (("softmax", 2 * scores.numpy()), ("power", 2 * np.log(scores.numpy()))):
        rows = Perturbed(form, 2.0)(make_snapshot(), scores, 50, Streams(3), Limits()).rows
        assert (rows - 20).tolist() == np.argsort(-(weights + noise))[:50].tolist()


def test_power_takes_zero_scores_last(make_snapshot):
    scores = torch.tensor([0.0, 1.0, 0.0, 2.0, -1.0], dtype=torch.float64)
    rows = Perturbed("power")(make_snapshot(n=5), scores, 2, Streams(0), Limits()).rows - 20
    assert set(rows.tolist()) == {1, 3}


def test_perturbed_rejects():
    with pytest.raises(InputError, match="form is"):
        Perturbed("gumbel")
    with pytest.raises(InputError, match="sharpness"):
        Perturbed(sharpness=0)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_leaders(data):
    values = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=60))
    n, run = data.draw(st.integers(1, len(values))), data.draw(st.integers(1, 20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top, "RUN", run)
        rows = 3 * np.arange(len(values))
        found = leaders(torch.tensor(values, dtype=torch.float64), n, rows, 5, start=7)
    ties = tie_order(rows, 5)
    expected = sorted(range(len(values)), key=lambda place: (-values[place], ties[place]))[:n]
    assert found.positions.tolist() == [7 + place for place in expected]
    assert found.values.tolist() == [values[place] for place in expected]


def test_the_order_of_ties_is_one_to_one_and_changes_with_the_seed():
    rows = np.concatenate([np.arange(5000), np.arange(2**62, 2**62 + 5000)])
    orders = [tie_order(rows, seed) for seed in (0, 1, 2**63 - 1)]
    assert all(len(np.unique(order)) == len(rows) for order in orders)
    # Of any half of the rows, about a half goes first: 5000 of 10 000, give or take five standard deviations.
    for order in orders:
        assert abs((order[:5000].argsort().argsort() < 2500)[:2500].sum() - 1250) < 130
        assert abs((order < np.median(order))[:5000].sum() - 2500) < 250
    assert abs(np.corrcoef(orders[0].argsort().argsort(), orders[1].argsort().argsort())[0, 1]) < 0.05


TIED = {
    "top": Top(),
    "clusters": ClusterTop(clusters=1),
    "shortlist": ClusterTop(clusters=1, shortlist=2),
    "margin": ClusterMargin(shortlist=2, clusters=1),
}


@pytest.mark.parametrize("select", TIED.values(), ids=TIED)
def test_equal_scores_do_not_favour_the_first_rows(make_snapshot, select):
    """A pool sorted by class would otherwise give one class only."""
    snapshot = make_snapshot(n=400)
    scores = torch.zeros(400, dtype=torch.float64)
    rows = {seed: select(snapshot, scores, 40, Streams(seed), Limits()).rows for seed in range(5)}
    again = select(snapshot, scores, 40, Streams(0), Limits()).rows
    assert again.tolist() == rows[0].tolist()
    assert len({tuple(picks.tolist()) for picks in rows.values()}) == 5
    late = np.concatenate([picks >= snapshot.candidates.rows[200] for picks in rows.values()])
    assert 0.35 < late.mean() < 0.65


def test_a_row_keeps_its_place_among_equals_when_others_leave(make_snapshot):
    snapshot = make_snapshot(n=100)
    scores = torch.zeros(100, dtype=torch.float64)
    first = Top()(snapshot, scores, 10, Streams(0), Limits()).rows
    left = torch.from_numpy(np.flatnonzero(~np.isin(snapshot.candidates.rows, first[:5])))
    part = replace(snapshot, candidates=snapshot.candidates.at(left))
    assert Top()(part, scores[left], 5, Streams(0), Limits()).rows.tolist() == first[5:].tolist()


def test_bait_says_what_it_needs_before_it_starts(make_snapshot):
    with pytest.raises(
        MemoryBudgetExceeded, match=r"BAIT on 200 candidates with 4 classes needs .* MiB; raise memory_budget"
    ):
        FisherGreedy()(make_snapshot(), torch.zeros(200), 5, Streams(0), Limits(memory_budget=1000))


@pytest.mark.parametrize(
    ("task", "expected"), [("classification", Herding(weighted=True)), ("regression", Influence())]
)
def test_the_task_decides_which_selection_chooses(make_snapshot, task, expected):
    snapshot = make_snapshot(n=60, m=12, task=task)
    scores = torch.rand(60, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found, wanted = (part(snapshot, scores, 8, Streams(0), Limits()) for part in (ByTask(), expected))
    assert found.rows.tolist() == wanted.rows.tolist()
    assert found.values.tolist() == wanted.values.tolist()
    assert found.notes[-1].startswith(f"the batch is chosen by {type(expected).__name__}")
