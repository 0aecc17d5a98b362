"""Copies, near duplicates and outliers stay out of a batch, and exactly n ids come back all the same."""

from collections import Counter

import numpy as np
import pytest
import torch
from scipy import sparse

import ally
from ally.data import as_source
from ally.data.arrays.memory import ArraySource
from ally.errors import InputError
from ally.estimators import ConstrainedClassifier
from ally.execution.memory import Scratch
from ally.hygiene import EqualInputs, Hygiene, choose, find_copies, put_last
from ally.hygiene.choose import REPEATS, Subsets, typical_distance
from ally.hygiene.copies import fingerprints
from ally.hygiene.distances import farthest, find_near, find_repeats
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection import Selection, Top
from ally.selection.base import Limits
from ally.testing.pools import blobs
from conformance_params import QUICK

SMALL = ConstrainedClassifier(hidden=(8,), epochs=3, batch_size=16)
NEAR = Hygiene(duplicates="near")


def redundant(copies=4, distinct=40, labelled=12, jitter=0.0, seed=0):
    """Labelled samples, then every other sample `copies` times in mixed order: X, y and the number of the sample behind
    each row."""
    scene = blobs("classification", n=labelled + distinct, labelled=labelled)
    rng = np.random.default_rng(seed)
    number = np.concatenate(
        [np.arange(labelled), rng.permutation(np.repeat(np.arange(labelled, labelled + distinct), copies))]
    )
    X = scene.X[number] + jitter * rng.normal(size=(len(number), scene.X.shape[1]))
    return X, np.concatenate([scene.y[:labelled], np.full(len(number) - labelled, np.nan)]), number


def ask(X, y, n, hygiene, strategy="margin", **more):
    q = ally.query(X, y, n=n, strategy=strategy, model=SMALL, random_state=0, hygiene=hygiene, **more)
    assert len(set(q.ids.tolist())) == n
    return q


def naive_first(X):
    """The lowest row with the same values, row by row."""
    seen = {}
    return [
        seen.setdefault(tuple((np.asarray(row, dtype=float) + 0.0).ravel().tolist()), place)
        for place, row in enumerate(X)
    ]


class Tokens(torch.utils.data.Dataset):
    def __init__(self, values):
        self.values = torch.from_numpy(values)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, row):
        return self.values[row], 0


def pools():
    rng = np.random.default_rng(1)
    small = rng.integers(0, 3, size=(3000, 7))
    images = rng.integers(0, 2, size=(2500, 1, 3, 3), dtype=np.uint8) * np.uint8(200)
    yield "float64", small.astype(float), small
    yield "float32 of an odd width", (small * 0.1).astype(np.float32), small
    yield "float16", small.astype(np.float16), small
    yield "bool", small > 0, small > 0
    yield "int64", small, small
    yield "uint8 images", images, images
    yield "sparse", sparse.csr_matrix(small.astype(float)), small
    yield "sparse float32", sparse.csr_array(small.astype(np.float32)), small
    yield "tokens", Tokens(small), small
    yield "big endian", small.astype(">f8"), small
    yield "one column", small[:, :1].astype(np.float32), small[:, :1]
    yield "no copies", np.arange(2000.0).reshape(1000, 2), np.arange(2000.0).reshape(1000, 2)


@pytest.mark.parametrize(("X", "plain"), [case[1:] for case in pools()], ids=[case[0] for case in pools()])
def test_copies_are_those_of_a_dictionary(X, plain):
    source, rows = as_source(X), np.arange(len(plain))
    expected = naive_first(plain)
    for chunk_size in (None, 1, 2000):
        assert find_copies(source, rows, chunk_size).first.tolist() == expected
    some = rows[::3]
    assert find_copies(source, some).first.tolist() == [
        int(some[place]) for place in naive_first(np.asarray(plain)[some])
    ]


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_collision_never_merges_samples_that_differ(parts):
    X = np.random.default_rng(2).integers(0, 3, size=(400, 4)).astype(float)

    def weak(values):
        sums = values.sum(axis=1).astype(np.uint64) % np.uint64(parts)
        return np.stack([sums, sums], 1)

    copies = find_copies(as_source(X), np.arange(400), fingerprint=weak)
    assert copies.first.tolist() == naive_first(X)
    assert len(set(copies.first.tolist())) > 70


def test_copies_are_compared_by_value_not_by_bits():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, np.nextafter(1.0, 2.0)], [0.0, -1.0], [np.nan, 1.0], [np.nan, 1.0]])
    assert find_copies(as_source(X), np.arange(6)).first.tolist() == [0, 0, 2, 3, 4, 4]
    assert find_copies(as_source(X[:4].astype(np.float32)), np.arange(4)).first.tolist() == [0, 0, 0, 3]


def test_fingerprints_of_whole_numbers_do_not_collide():
    numbers = np.arange(50_000)
    for X in (
        np.stack([numbers // 256, numbers % 256], 1).astype(np.float64),
        np.stack([numbers // 256, 0 * numbers, numbers % 256, 0 * numbers], 1).astype(np.float32),
        np.stack([0 * numbers, numbers // 256, 0 * numbers, numbers % 256], 1).astype(np.float32),
    ):
        marks = fingerprints(X)
        assert len(np.unique(marks[:, 0])) == len(np.unique(marks[:, 1])) == 50_000


def test_collapse_keeps_one_and_orders_the_rest():
    copies = EqualInputs(np.arange(10), np.array([0, 1, 0, 1, 4, 4, 6, 0, 4, 9]))
    distinct, rest = copies.collapse(np.array([2, 3, 4, 5, 6, 7, 8, 9]))  # 0 and 1 are taken
    assert distinct.tolist() == [4, 6, 9]
    assert rest.tolist() == [5, 8, 2, 3, 7]
    assert copies.collapse(np.arange(10))[0].tolist() == [0, 1, 4, 6, 9]


class Counted(ArraySource):
    reads = 0

    def read(self, rows):
        Counted.reads += len(rows)
        return super().read(rows)


def test_the_pool_is_compared_once():
    X, y, _ = redundant()
    loop = ally.Loop(Counted(X), y, strategy="random", hygiene=Hygiene(), random_state=0)
    Counted.reads = 0
    loop.ask(5)
    assert Counted.reads >= len(X)
    before = Counted.reads
    loop.ask(5)
    assert Counted.reads == before


FAMILIES = ["margin", "badge", "ally", "random", "coreset", "typiclust", "bald", "dropquery"]
CASES = [*((duplicates, name) for duplicates in ("exact", "near") for name in FAMILIES), ("exact", "ally-unlabelled")]


@pytest.mark.parametrize(("duplicates", "strategy"), CASES)
def test_no_two_copies_in_a_batch(duplicates, strategy):
    X, y, number = redundant()
    q = ask(X, y, 20, Hygiene(duplicates=duplicates, near=1e-6), QUICK.get(strategy, strategy))
    assert len(set(number[q.ids])) == 20
    assert "120 exact copies set aside" in q.notes
    assert q.report["candidates"] == 40
    assert q.report["set_aside"] == {"exact": 120, "near": 0, "outliers": 0, "bound": 0, "recalled": 0}
    assert all(row == np.flatnonzero(number == number[row])[0] for row in q.ids), "not the lowest row"


def test_without_hygiene_a_batch_holds_copies():
    X, y, number = redundant()
    for q in (ask(X, y, 20, None), ask(X, y, 20, Hygiene(duplicates="keep"))):
        assert max(Counter(number[q.ids]).values()) == 4
        assert not any("set aside" in note for note in q.notes)
        assert q.report["candidates"] == 160
    loop = ally.Loop(X, y, strategy="margin", model=SMALL, random_state=0)
    assert loop.ask(20).ids.tolist() == ask(X, y, 20, None).ids.tolist()
    exact = ally.query(X, y, n=20, strategy="margin", model=SMALL, random_state=0)
    assert exact.ids.tolist() == ask(X, y, 20, Hygiene()).ids.tolist()


def test_copies_are_not_embedded():
    X, y, _ = redundant()
    seen = []
    ask(X, y, 5, Hygiene(), progress=lambda *event: seen.append(event))
    assert ("read", 172, 172) in seen
    assert ("embed", 40, 40) in seen


def test_nothing_is_noted_when_nothing_happened():
    scene = blobs("classification")
    q, plain = (ask(scene.X, scene.y, 6, hygiene) for hygiene in (Hygiene(), None))
    assert q.notes == plain.notes
    assert q.ids.tolist() == plain.ids.tolist()
    assert set(q.report["set_aside"].values()) == {0}
    assert ask(scene.X, scene.y, 6, Hygiene(duplicates="near", near=1e-9)).ids.tolist() == plain.ids.tolist()


@pytest.mark.parametrize("strategy", ["margin", "coreset", "random", "ally"])
@pytest.mark.parametrize("hygiene", [Hygiene(), Hygiene("near", near=0.3, outliers=0.1)], ids=["exact", "all"])
def test_exactly_n_up_to_everything(strategy, hygiene):
    X, y, number = redundant(copies=3, distinct=15)
    X[-5:], number[-5:] = X[:5], number[:5]  # five of the free rows are copies of labelled ones
    fresh = len(set(number[12:]) - set(number[:12]))
    for n in (1, fresh - 1, fresh, fresh + 1, 30, 41, 45):
        q = ask(X, y, n, hygiene, strategy)
        assert min(q.ids) >= 12
        found = number[q.ids]
        distinct = min(n, fresh)
        assert len(set(found[:distinct])) == distinct
        assert not set(found[:distinct]) & set(number[:12])
        assert (q.report["set_aside"]["exact"]) == 45 - fresh
        if n > fresh:
            lows = {value: row for row, value in reversed(list(enumerate(number.tolist())))}
            spare = [row for row in range(12, len(X) - 5) if lows[number[row]] != row] + list(range(len(X) - 5, len(X)))
            assert q.ids[fresh:].tolist() == spare[: n - fresh]
            assert q.report["set_aside"]["recalled"] == n - fresh
            assert f"{n - fresh} of those set aside are used after all" in q.notes[-1]


def test_a_pool_of_one_sample_over_and_over():
    y = np.where(np.arange(30) < 4, np.arange(30) % 2, np.nan)
    for hygiene in (
        Hygiene(),
        NEAR,
        Hygiene("near", outliers=0.5),
        Hygiene("keep", outliers=0.5),
        Hygiene("near", near=1e6),
    ):
        for strategy in ("margin", "random", "badge"):
            q = ask(np.ones((30, 3)), y, 9, hygiene, strategy)
            if hygiene.duplicates != "keep":
                assert q.ids.tolist() == list(range(4, 13))
            assert q.report["set_aside"]["outliers"] == 0


def test_copies_of_labelled_pending_and_skipped_samples_are_avoided():
    distinct = np.random.default_rng(3).normal(size=(20, 4))
    X = np.concatenate([distinct, distinct, distinct])
    y = np.where(np.arange(60) < 6, np.arange(60) % 2, np.nan)
    loop = ally.Loop(X, y, strategy="margin", model=SMALL, random_state=0, hygiene=Hygiene())
    first = loop.ask(6)
    assert set(first.ids.tolist()) <= set(range(6, 20))
    a, b, *pending = first.ids.tolist()
    loop.tell(first.id, {a: 1, b: ally.SKIP})
    second = loop.ask(8)
    assert not set(second.ids % 20) & {*range(6), a, b, *pending}
    assert len(set(second.ids % 20)) == 8
    loop.release(first.id)
    third = loop.ask(4)
    assert sorted(third.ids) == sorted(pending), "given back, they are free again"
    fourth = loop.ask(loop.free)
    assert fourth.report["set_aside"] == {"exact": 40, "near": 0, "outliers": 0, "bound": 0, "recalled": 40}


def test_candidates_are_kept_to():
    distinct = np.random.default_rng(4).normal(size=(20, 4))
    X = np.concatenate([distinct, distinct, distinct])
    X[5] = np.nan
    y = np.where(np.arange(60) < 4, np.arange(60) % 2, np.nan)
    allowed = (np.arange(60) >= 20) | (np.arange(60) < 4)
    for strategy in ("margin", "random"):
        q = ask(X, y, 16, Hygiene(), strategy, candidates=allowed)
        assert sorted(q.ids) == list(range(24, 40)), "rows that may not be asked about took the place of their copies"
        full = ask(X, y, 40, Hygiene(), strategy, candidates=allowed)
        assert sorted(full.ids) == list(range(20, 60))


def test_cold_start_and_one_candidate():
    X, y, number = redundant()
    for hygiene in (Hygiene(), NEAR, Hygiene("near", outliers=0.1)):
        for strategy in ("margin", "random"):
            q = ask(X, None, 20, hygiene, strategy)
            assert len(set(number[q.ids])) == 20
            assert ask(X, y, 1, hygiene, strategy, candidates=[33]).ids.tolist() == [33]


@pytest.mark.parametrize("strategy", ["margin", "badge", "random", "ally"])
def test_images_and_sparse_rows(strategy):
    rng = np.random.default_rng(5)
    number = np.arange(60) % 20
    y = np.where(np.arange(60) < 8, np.arange(60) % 2, np.nan)
    images = rng.integers(0, 255, size=(20, 1, 8, 8), dtype=np.uint8)[number]
    table = sparse.csr_matrix(rng.normal(size=(20, 30)) * (rng.random((20, 30)) < 0.2))[number]
    for X, model in ((images, None), (table, SMALL)):
        q = ally.query(X, y, n=10, strategy=strategy, model=model, random_state=0)
        assert len(set(number[q.ids])) == 10
        assert not set(number[q.ids]) & set(range(8))
        assert q.report["set_aside"]["exact"] == 40


HYGIENES = [Hygiene(), NEAR, Hygiene("near", near=0.3, outliers=0.05), Hygiene("keep", outliers=0.05)]


@pytest.mark.parametrize("hygiene", HYGIENES, ids=repr)
@pytest.mark.parametrize("strategy", ["margin", "badge", "random", "bald"])
def test_chunks_and_budgets_do_not_change_ids(hygiene, strategy, tmp_path):
    X, y, _ = redundant(copies=2, distinct=1100)
    np.save(tmp_path / "X.npy", X)
    whole = ask(X, y, 12, hygiene, strategy)
    for more in ({"chunk_size": 1}, {"chunk_size": 1500}, {"memory_budget": 0}, {"memory_budget": 20_000}):
        q = ask(np.load(tmp_path / "X.npy", mmap_mode="r"), y, 12, hygiene, strategy, **more)
        assert q.ids.tolist() == whole.ids.tolist(), more
        assert q.scores.tolist() == whole.scores.tolist()
        assert q.report["set_aside"] == whole.report["set_aside"]


@pytest.mark.parametrize("strategy", ["margin", "entropy", "ally", "random", "coreset"])
def test_near_duplicates_are_removed_and_others_kept(strategy):
    X, y, number = redundant(copies=4, distinct=40, jitter=1e-3)
    assert len(set(number[ask(X, y, 30, Hygiene(), "margin").ids])) < 20
    q = ask(X, y, 30, Hygiene("near", near=0.02), strategy)
    assert len(set(number[q.ids])) == 30
    assert q.report["set_aside"]["exact"] == 0
    near = q.report["set_aside"]["near"]
    if strategy == "margin":
        assert 30 <= near <= 120
        assert f"{near} near duplicates set aside" in q.notes


def test_near_duplicates_of_labelled_pending_and_skipped_samples():
    rng = np.random.default_rng(6)
    distinct = rng.normal(size=(20, 4))
    X = np.concatenate(
        [distinct, distinct + 1e-4 * rng.normal(size=(20, 4)), distinct + 1e-4 * rng.normal(size=(20, 4))]
    )
    y = np.where(np.arange(60) < 6, np.arange(60) % 2, np.nan)
    for strategy in ("margin", "random"):
        loop = ally.Loop(X, y, strategy=strategy, model=SMALL, random_state=0, hygiene=Hygiene("near", near=0.005))
        first = loop.ask(6)
        assert len(set(first.ids % 20)) == 6
        assert not set(first.ids % 20) & set(range(6))
        a, b, *_ = first.ids.tolist()
        loop.tell(first.id, {a: 1, b: ally.SKIP})
        second = loop.ask(8)
        assert len(set(first.ids % 20) | set(second.ids % 20)) == 14
        rest = loop.ask(loop.free)
        assert rest.report["set_aside"]["near"] == 0, "nothing can be set aside when all are asked for"


def test_if_too_few_are_apart_the_first_set_aside_come_last():
    X, y, number = redundant(copies=4, distinct=10, jitter=1e-3)
    q = ask(X, y, 25, Hygiene("near", near=0.02))
    assert len(set(number[q.ids])) == 10
    aside = q.report["set_aside"]
    assert aside["recalled"] >= 1
    assert (
        q.notes[-1]
        == f"{aside['recalled']} of those set aside are used after all, because too few others are left; they come last"
    )


def made(embeddings, task="classification"):
    """A snapshot of candidates at rows 100, 102, ... with all it may hold."""
    n = len(embeddings)
    generator = torch.Generator().manual_seed(0)
    candidates = View(
        100 + 2 * np.arange(n),
        embeddings.float(),
        torch.rand(n, 3, generator=generator),
        torch.arange(n),
        {"samples": torch.rand(n, 4, 2, generator=generator)},
    )
    labelled = View(np.arange(2), torch.zeros(2, embeddings.shape[1]), torch.rand(2, 3), torch.arange(2))
    return Snapshot(task, candidates, labelled, torch.zeros(2), torch.ones(2), torch.rand(n, generator=generator))


def top(snapshot, scores, n):
    return Top()(snapshot, scores, n, Streams(0), Limits())


def test_repeats_are_bounded():
    crowd = 1e-3 * torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    points = torch.cat([crowd, torch.tensor([[9.0, 0, 0], [0, 9, 0], [0, 0, 9]])])
    scores = torch.arange(303, 0, -1).double()
    with Scratch() as scratch:
        selection, aside = choose(Hygiene("near", near=0.05), made(points), scores, 2, top, (), Streams(0), scratch)
        assert selection.rows.tolist() == [100, 100 + 2 * REPEATS]
        assert (aside.near, aside.recalled) == (REPEATS, 1)
        wide, aside = choose(Hygiene("near", near=0.05), made(points), scores, 100, top, (), Streams(0), scratch)
    assert len(set(wide.rows.tolist())) == 100
    assert wide.rows[:6].tolist() == [100, 696, 698, 700, 702, 704], "three rounds of 99 set aside, six left"
    assert (aside.near, aside.recalled) == (297, 94)
    assert wide.rows[6:].tolist() == (102 + 2 * np.arange(94)).tolist()


def test_near_is_a_share_of_the_typical_distance():
    points = torch.randn(500, 6, generator=torch.Generator().manual_seed(1))
    apart = (points[:, None].double() - points[None].double()).square().sum(2)
    exact = float(apart.sum() / (500 * 499)) ** 0.5
    assert typical_distance(points, torch.arange(500), Streams(0)) == pytest.approx(exact, rel=0.03)
    assert typical_distance(points, torch.tensor([3, 7]), Streams(0)) == pytest.approx(float(apart[3, 7]) ** 0.5)
    assert typical_distance(points, torch.tensor([3]), Streams(0)) == 0.0
    pair = torch.stack([points[0], points[0] + torch.tensor([0.1 * exact, 0, 0, 0, 0, 0])])
    scores = torch.arange(502, 0, -1).double()
    crowd = torch.cat([pair, 100 + points])
    with Scratch() as scratch:
        scale = typical_distance(crowd, torch.arange(502), Streams(0))
        for factor, near in ((0.99, 0), (1.01, 1)):
            share = factor * 0.1 * exact / scale
            found, aside = choose(Hygiene("near", near=share), made(crowd), scores, 2, top, (), Streams(0), scratch)
            assert aside.near == near
            assert found.rows.tolist() == [100, 104 if near else 102]


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_near_points_and_repeats_have_naive_twins(offset):
    generator = torch.Generator().manual_seed(2)
    points = (torch.randn(2500, 3, generator=generator) + offset).float()
    others = (torch.randn(1100, 3, generator=generator) + offset).float()
    limit = 0.02
    squared = (points.double()[:, None] - others.double()[None]).square().sum(2)
    assert find_near(points, others, limit).tolist() == (squared <= limit).any(1).tolist()
    assert find_near(points, others[:0], limit).sum() == 0
    kept = []
    expected = []
    for place, point in enumerate(points.double()):
        repeat = bool(((points.double()[kept] - point).square().sum(1) <= limit).any())
        expected.append(repeat)
        if not repeat:
            kept.append(place)
    found = find_repeats(points, limit)
    assert found.tolist() == expected
    assert 0 < sum(expected[2100:]) < 400


def test_a_subset_holds_what_the_whole_holds():
    snapshot, scores = made(torch.randn(1500, 5)), torch.rand(1500).double()
    for budget in (None, 0):
        with Scratch(budget) as scratch:
            subsets = Subsets(snapshot, scores, scratch)
            assert subsets(torch.ones(1500, dtype=torch.bool))[0] is snapshot
            for seed in (0, 1):
                keep = torch.rand(1500, generator=torch.Generator().manual_seed(seed)) < 0.8
                part, some = subsets(keep)
                assert part.candidates.rows.tolist() == snapshot.candidates.rows[keep.numpy()].tolist()
                for name in ("embeddings", "probabilities", "predictions"):
                    assert torch.equal(getattr(part.candidates, name), getattr(snapshot.candidates, name)[keep])
                assert torch.equal(part.candidates.readouts["samples"], snapshot.candidates.readouts["samples"][keep])
                assert torch.equal(part.candidate_duals, snapshot.candidate_duals[keep])
                assert torch.equal(some, scores[keep])
                assert part.labelled is snapshot.labelled
                assert part.duals is snapshot.duals


def test_put_last_moves_what_was_recalled():
    selection = Selection(
        np.array([5, 1, 9, 3]), np.array([0.5, 0.1, 0.9, 0.3]), np.array([0, 1, 2, 3]), np.array([4, 5, 6, 7])
    )
    moved = put_last(selection, np.array([9, 5]))
    assert moved.rows.tolist() == [1, 3, 9, 5]
    assert moved.values.tolist() == [0.1, 0.3, 0.9, 0.5]
    assert moved.clusters.tolist() == [1, 3, 2, 0]
    assert moved.cluster_sizes.tolist() == [5, 7, 6, 4]
    assert put_last(selection, np.array([], dtype=np.int64)) is selection


@pytest.mark.parametrize("strategy", ["coreset", "margin", "random", "badge"])
def test_planted_outliers_are_guarded_against(strategy):
    scene = blobs("classification", n=200, labelled=12)
    planted = np.array([50, 90, 130, 170])
    scene.X[planted] += 60.0 * np.random.default_rng(7).normal(size=(4, 4))
    guard = Hygiene(outliers=4 / 188 + 1e-9)
    q = ask(scene.X, scene.y, 30, guard, strategy)
    assert not set(q.ids) & set(planted)
    assert q.report["set_aside"] == {"exact": 0, "near": 0, "outliers": 4, "bound": 0, "recalled": 0}
    assert "4 outliers set aside" in q.notes
    if strategy == "coreset":
        assert set(planted) <= set(ask(scene.X, scene.y, 30, Hygiene(), strategy).ids), "unguarded they are picked"
    for n in (184, 186, 188):
        q = ask(scene.X, scene.y, n, guard, strategy)
        assert len(set(q.ids) & set(planted)) == n - 184


def test_the_farthest_are_those_of_a_full_sort():
    points = torch.randn(3000, 4, generator=torch.Generator().manual_seed(3)).float()
    gaps = torch.cdist(points.double(), points.double()).fill_diagonal_(torch.inf).sort(1).values[:, 4]
    expected = gaps.argsort(descending=True)[:60]

    def found(points, count):
        view = View(np.arange(len(points)), points, None, torch.empty(0))
        return farthest(view, count, Streams(0)).tolist()

    assert found(points, 60) == expected.tolist()
    assert found(points, 0) == []
    many = torch.randn(9000, 4, generator=torch.Generator().manual_seed(4))
    many[[5, 4500, 8999]] *= 50
    assert set(found(many, 3)) == {5, 4500, 8999}
    assert found(torch.zeros(50, 2), 5) == []
    assert found(torch.zeros(1, 2), 1) == []


def test_an_outlier_does_not_set_what_is_near():
    X, y, number = redundant(copies=1, distinct=100)
    X[40] += 1e6
    q = ask(X, y, 20, Hygiene("near", near=0.02, outliers=0.01))
    assert q.report["set_aside"]["outliers"] == 1
    assert 40 not in q.ids
    assert q.report["set_aside"]["recalled"] == 0
    assert len(set(number[q.ids])) == 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"duplicates": "all"}, r"duplicates='all'; pass 'keep', 'exact' or 'near'"),
        ({"duplicates": None}, r"duplicates=None; pass"),
        ({"near": 0}, r"near=0 must be a finite number > 0"),
        ({"near": -0.1}, r"near=-0.1 must be"),
        ({"near": np.nan}, r"near=nan must be"),
        ({"near": "close"}, r"near='close' must be"),
        ({"outliers": 0}, r"outliers=0 must be a finite number > 0"),
        ({"outliers": 1.0}, r"outliers=1.0 is not a share of the candidates; use a number below 1"),
        ({"outliers": 2}, r"outliers=2 is not a share"),
        ({"outliers": "few"}, r"outliers='few' must be"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        Hygiene(**settings)


@pytest.mark.parametrize("wrong", ["exact", True, {"duplicates": "near"}, Hygiene])
def test_bad_hygiene_arguments_are_refused(wrong):
    with pytest.raises(InputError, match=r"hygiene=.* is not a setting; pass ally.Hygiene\(...\), or None"):
        ally.query(np.eye(4), [0, 1, None, None], n=1, hygiene=wrong)


def test_repr_is_the_configuration():
    assert repr(Hygiene()) == "Hygiene(duplicates='exact', near=0.05, outliers=None)"
    assert ally.Hygiene is Hygiene
    assert hash(Hygiene()) == hash(Hygiene("exact"))


@pytest.mark.parametrize("seed", range(3))
def test_rounds_with_everything_on(seed):
    X, y, number = redundant(copies=3, distinct=40, jitter=1e-3, seed=seed)
    X[-6:] = X[12:18]
    loop = ally.Loop(
        X, y, strategy="ally", model=SMALL, random_state=seed, hygiene=Hygiene("near", near=0.01, outliers=0.05)
    )
    seen = set()
    for _ in range(3):
        q = loop.ask(7)
        ids = q.ids.tolist()
        assert len(set(ids)) == 7
        assert not seen & set(ids)
        seen |= set(ids)
        assert len({X[id].tobytes() for id in seen}) == len(seen)
        loop.tell(q.id, {id: float(number[id] % 3) for id in ids[:4]} | {ids[4]: ally.SKIP})
