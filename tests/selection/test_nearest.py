"""k-center, k-means++ and LCMD over shards against naive forms: float64, every distance computed, nothing quantised."""

import os
import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ally.data import BLOCK
from ally.errors import NonFiniteInput
from ally.execution.compiled import compiled
from ally.execution.engine import LocalEngine
from ally.features import Embedding, Gradient, ProductRows
from ally.features.product import Patched
from ally.learning.snapshot import Snapshot, View
from ally.rng import Streams
from ally.selection import LCMD, KCenter, KMeansPP, scans
from ally.selection import kcenter as kcenter_module
from ally.selection import nearest as nearest_module
from ally.selection.arrays import arrays
from ally.selection.base import Limits
from ally.selection.field import NO_LENGTHS, Field, read_factors
from ally.selection.kcenter import Farthest, farthest_first
from ally.selection.kmeanspp import Weighted, draw
from ally.selection.lcmd import Clusters, farthest_of_largest
from ally.selection.shards import Pick, Shard, best, greedy, shards
from ally.selection.sketch import SHARE, directions, frame
from ally.selection.weights import bits, is_worn, scale_of, share
from ally.strategies import CATALOGUE

KINDS = ["random", "clustered", "copies", "offset", "tiny", "huge", "flat", "long tail", "outlier", "few columns"]


def points(kind, n, seed, d=24):
    """(n, d) float32."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    if kind == "clustered":
        x = 5 * np.random.default_rng(9).normal(size=(12, d))[rng.integers(0, 12, n)] + 0.3 * x
    if kind == "copies":
        x = x[rng.integers(0, n // 5 + 1, n)]
    if kind == "offset":
        x += 1e4
    if kind == "tiny":
        x *= 1e-30
    if kind == "huge":
        x *= 1e15
    if kind == "flat":
        x = x[:, :2] @ np.random.default_rng(9).normal(size=(2, d))
    if kind == "long tail":
        x *= np.exp(4 * rng.normal(size=(n, 1)))
    if kind == "outlier":
        x[n // 2 : n // 2 + 1] *= 1e9
    if kind == "few columns":
        x = x[:, :2]
    return torch.from_numpy(x.astype(np.float32))


def residual(n, seed, classes=5):
    p = (3 * torch.randn(n, classes, generator=torch.Generator().manual_seed(seed))).softmax(1)
    return p - torch.nn.functional.one_hot(p.argmax(1), classes)


def full(factors):
    """g, (n, …) float64."""
    g = np.ones((len(factors[0]), 1))
    for factor in factors:
        g = np.einsum("nc,nd->ncd", g, factor.double().numpy()).reshape(len(g), g.shape[1] * factor.shape[1])
    return g


def squares(g, c):
    return ((g - c) ** 2).sum(1)


def naive(select, factors, known, n, uniforms):
    """Picks and D by the definition."""
    g, c = full(factors), full(known)
    near, owner = np.full(len(g), np.inf), np.zeros(len(g), int)
    centres = 0 if isinstance(select, KMeansPP) else len(c)
    for s in range(centres):
        found = squares(g, c[s])
        owner, near = np.where(found < near, s, owner), np.minimum(near, found)
    picks, values = [], []
    for number in range(n):
        free = ~np.isin(np.arange(len(g)), picks)
        if not centres:
            reach = (g**2).sum(1)
        elif near[free].max() == 0 or isinstance(select, KCenter):
            reach = np.where(free, near, -1)
        elif isinstance(select, KMeansPP):
            edges = near.cumsum()
            reach = np.arange(len(g)) == np.searchsorted(edges, uniforms[number] * edges[-1], side="right")
        else:
            reach = np.where((owner == np.bincount(owner, near).argmax()) & free, near, -1)
        pick = int(reach.argmax())
        picks.append(pick)
        values.append((g[pick] ** 2).sum() if not centres else near[pick])
        found = squares(g, g[pick])
        owner, near = np.where(found < near, centres, owner), np.minimum(near, found)
        near[pick] = 0
        centres += 1
    return picks, np.asarray(values)


SELECTIONS = [KCenter, KMeansPP, LCMD]


def run(select, snapshot, n, engine=LocalEngine(1), seed=0):
    return select(snapshot, torch.zeros(len(snapshot.candidates)), n, Streams(seed), Limits(engine=engine))


def check(pool_of, kind, factors, known, n, seed=0):
    features, snapshot = pool_of(factors, known)
    for build in SELECTIONS:
        chosen = run(build(features), snapshot, n, seed=seed)
        picks, values = naive(build(), factors, known, n, Streams(seed).numpy("d2 draws").random(n))
        values = values if build is KMeansPP else np.sqrt(values)
        assert chosen.rows.tolist() == picks, (build.__name__, kind)
        np.testing.assert_allclose(chosen.values, values, rtol=1e-9, atol=1e-9 * values.max(), err_msg=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("labelled", "seed"), [(0, 0), (1, 1), (30, 2)])
def test_rows_of_one_factor(pool_of, kind, labelled, seed):
    check(pool_of, kind, [points(kind, 300, seed)], [points(kind, labelled, seed + 50)], 60, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("labelled", "seed"), [(0, 0), (30, 1)])
def test_rows_of_two_factors(pool_of, kind, labelled, seed):
    factors, known = ([residual(m, at), points(kind, m, at)] for m, at in ((300, seed), (labelled, seed + 50)))
    check(pool_of, kind, factors, known, 60, seed)


def test_rows_of_three_factors(pool_of):
    """The first two become one."""
    factors, known = (
        [residual(m, m, 2).double(), residual(m, m + 1, 3).double(), points("random", m, m, 4).double()]
        for m in (90, 10)
    )
    check(pool_of, "three", factors, known, 20)


def test_rows_in_double_precision(pool_of):
    """Differences that single precision does not hold."""
    rows = 1 + 1e-9 * points("random", 200, 0).double()
    check(pool_of, "double", [rows], [1 + 1e-9 * points("random", 5, 1).double()], 50)


def test_many_labelled_samples_and_several_blocks(pool_of):
    for kind in ("random", "clustered", "offset", "copies"):
        size, labelled = BLOCK + 100, nearest_module.BATCH + 50
        check(pool_of, kind, [points(kind, size, 0)], [points(kind, labelled, 1)], 12)
        check(
            pool_of,
            kind,
            [residual(size, 0), points(kind, size, 0)],
            [residual(labelled, 1), points(kind, labelled, 1)],
            12,
        )


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_small_whole_numbers(data):
    """Every distance and every sum is exact here, so ties must go as the definition says."""
    n, m, d = data.draw(st.integers(1, 30)), data.draw(st.integers(0, 6)), data.draw(st.integers(1, 3))
    number = st.integers(-2, 2)
    rows, known = (
        torch.tensor(data.draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=size, max_size=size)))
        .float()
        .reshape(size, d)
        for size in (n, m)
    )
    candidates, labelled = (View(np.arange(len(x)), x, None, torch.zeros(len(x))) for x in (rows, known))
    snapshot, picks = Snapshot("regression", candidates, labelled), data.draw(st.integers(1, n))
    seed = data.draw(st.integers(0, 1000))
    for build in SELECTIONS:
        expected, _ = naive(build(), [rows], [known], picks, Streams(seed).numpy("d2 draws").random(picks))
        assert run(build(), snapshot, picks, seed=seed).rows.tolist() == expected, build


def test_lcmd_of_the_catalogue_against_explicit_gradients(make_snapshot):
    """Classification: a ⊗ h, an n×(dC) matrix. Regression: (h, 1), whose distances are those of h."""
    lcmd = CATALOGUE["lcmd"].select
    for seed in range(5):
        snapshot = make_snapshot(n=150, m=15, seed=seed)
        gradients = [explicit(view) for view in (snapshot.candidates, snapshot.labelled)]
        picks, values = naive(LCMD(), [gradients[0]], [gradients[1]], 40, None)
        chosen = run(lcmd, snapshot, 40)
        assert (chosen.rows - 15).tolist() == picks
        np.testing.assert_allclose(chosen.values, np.sqrt(values), rtol=1e-5)
        assert chosen.rows.tolist() != run(LCMD(), snapshot, 40).rows.tolist()
        targets = make_snapshot(n=150, m=15, seed=seed, task="regression")
        h, known = (
            torch.nn.functional.pad(view.embeddings, (0, 1), value=1.0)
            for view in (targets.candidates, targets.labelled)
        )
        assert (run(lcmd, targets, 40).rows - 15).tolist() == naive(LCMD(), [h], [known], 40, None)[0]


def explicit(view):
    """(n, C·d) float64."""
    p = view.probabilities.double()
    a = p - torch.nn.functional.one_hot(p.argmax(1), p.shape[1])
    return torch.einsum("nc,nd->ncd", a, view.embeddings.double()).flatten(1)


def scene(kind, n, labelled, gradient, folder=None):
    """A snapshot, memory-mapped from `folder` if it is given."""

    def side(m, seed):
        h, p = (
            points(kind, m, seed, 12),
            (3 * torch.randn(m, 4, generator=torch.Generator().manual_seed(seed))).softmax(1),
        )
        if folder is not None:
            h, p = (mapped(folder / f"{seed}-{i}.npy", x) for i, x in enumerate((h, p)))
        return View(np.arange(m), h, p, torch.zeros(m))

    return Gradient() if gradient else Embedding(), Snapshot("classification", side(n, 0), side(labelled, 1))


def mapped(path, tensor):
    np.save(path, tensor.numpy())
    return torch.from_numpy(np.load(path, mmap_mode="r+"))


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("build", SELECTIONS)
@pytest.mark.parametrize("kind", ["clustered", "copies", "long tail"])
@pytest.mark.parametrize(
    ("blocks", "picks", "engines"),
    [
        pytest.param(5, 30, [(1, 2), (2, 4), (3, 100)], id="six blocks"),
        pytest.param(17, 60, [(1, 2), (2, 2), (1, 5), (2, 16), (3, 100)], id="eighteen blocks", marks=pytest.mark.slow),
    ],
)
def test_shards_threads_and_maps_change_nothing(tmp_path, build, kind, gradient, blocks, picks, engines):
    n = blocks * BLOCK + 300
    features, snapshot = scene(kind, n, 40, gradient)
    whole = run(build(features), snapshot, picks)
    for threads, parts in engines:
        parted = run(build(features), snapshot, picks, LocalEngine(threads, parts))
        assert parted.rows.tolist() == whole.rows.tolist(), (threads, parts)
        assert parted.values.tolist() == whole.values.tolist(), (threads, parts)
    _, from_disk = scene(kind, n, 40, gradient, tmp_path)
    assert run(build(features), from_disk, picks, LocalEngine(2, 3)).rows.tolist() == whole.rows.tolist()


def test_copies_across_shards_follow_by_position(pool_of):
    rows = torch.ones(2 * BLOCK + 5, 3)
    rows[BLOCK + 7] = 2.0
    features, snapshot = pool_of([rows])
    for build in SELECTIONS:
        for engine in (LocalEngine(1), LocalEngine(2, 3)):
            chosen = run(build(features), snapshot, 6, engine)
            first, second, *others = chosen.rows.tolist()
            assert first == BLOCK + 7
            assert (chosen.values[2:] == 0).all()
            assert second == 0 or build is KMeansPP
            assert others == [row for row in range(5) if row != second][:4]
    everything = run(KCenter(features), snapshot, len(rows), LocalEngine(2, 3)).rows
    assert sorted(everything.tolist()) == list(range(len(rows)))


def picks_of(worker, features, snapshot, n, **settings):
    """Picks and values of one worker class under one way of pruning."""
    limits, size = Limits(engine=LocalEngine(1, 2)), len(snapshot.candidates)
    known = None if worker is Weighted else snapshot.labelled
    with limits.engine.crew(
        shards(snapshot, torch.zeros(size), limits), partial(worker, features, known, n, **settings)
    ) as crew:
        if worker is Farthest:
            positions, values = farthest_first(crew, n)
            return positions.tolist(), values.tolist()
        choose = {
            Weighted: partial(draw, crew, size, np.random.default_rng(1).random(n)),
            Clusters: partial(farthest_of_largest, crew, size, np.zeros(len(snapshot.labelled) + n, np.int64)),
        }[worker]
        positions, values = greedy(crew, n, choose)
    return positions.tolist(), values.tolist()


@pytest.mark.parametrize("worker", [Farthest, Weighted, Clusters])
@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("kind", ["random", "clustered", "flat", "long tail", "offset"])
def test_pruning_changes_no_bit(monkeypatch, worker, gradient, kind):
    features, snapshot = scene(kind, 2 * BLOCK + 200, nearest_module.BATCH + 100, gradient)
    plain = picks_of(worker, features, snapshot, 50, prune="never")
    assert picks_of(worker, features, snapshot, 50, prune="always") == plain
    assert picks_of(worker, features, snapshot, 50, prune="auto") == plain
    monkeypatch.setattr(nearest_module, "REMEMBERED", 7)
    assert picks_of(worker, features, snapshot, 50, prune="always") == plain


def scans_of(monkeypatch, *args, **settings):
    """The arguments of `Field.scan` and what it counted, call by call."""
    seen, scan = [], Field.scan

    def spy(self, centres, first, by, reach=np.empty(0)):
        counts = scan(self, centres, first, by, reach)
        seen.append((len(centres.h), by, len(reach) > 0, counts))
        return counts

    monkeypatch.setattr(Field, "scan", spy)
    picks_of(*args, **settings)
    return seen


def test_most_distances_are_never_computed(monkeypatch):
    features, snapshot = scene("flat", 6 * BLOCK, 600, False)
    seen = scans_of(monkeypatch, Farthest, features, snapshot, 200)
    known, later = [s for s in seen if s[0] > 1], [s for s in seen if s[0] == 1]
    assert {by for _, by, _, _ in known + later} == {"sketches"}
    assert sum(counts[2] for *_, counts in later) < 0.02 * sum(counts[0] for *_, counts in later)
    assert sum(counts[2] for *_, counts in known) < 0.05 * sum(counts[0] for *_, counts in known)


def test_the_triangle_inequality_helps_where_sketches_do_not(monkeypatch, pool_of):
    """Two hundred tight groups in as many directions: seven numbers separate few of them."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(200, 400))
    rows = torch.from_numpy(
        (centres[np.arange(4 * BLOCK) % 200] + 0.5 * rng.normal(size=(4 * BLOCK, 400))).astype(np.float32)
    )
    features, snapshot = pool_of([rows])
    later = [s for s in scans_of(monkeypatch, Farthest, features, snapshot, 300) if s[2]][-100:]
    assert sum(counts[1] for *_, counts in later) > 0.3 * sum(counts[0] for *_, counts in later)
    assert sum(counts[2] for *_, counts in later) < 0.1 * sum(counts[0] for *_, counts in later)


def test_checks_that_do_not_pay_rest_and_products_take_over(monkeypatch, pool_of):
    features, snapshot = pool_of(
        [points("random", 2 * BLOCK, 0, 60)], [points("random", 20 * nearest_module.BATCH, 1, 60)]
    )
    seen = scans_of(monkeypatch, Farthest, features, snapshot, 40)
    known = [by for many, by, _, _ in seen if many > 1]
    assert known[0] == "sketches"
    assert known.count("products") > len(known) // 2
    computed = sum(counts[2] for many, by, _, counts in seen if by == "products")
    assert computed < 0.01 * sum(counts[0] for many, by, _, counts in seen if by == "products")
    later = [by for many, by, _, _ in seen if many == 1]
    assert 0 < later.count("sketches") < len(later)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("product", [False, True])
def test_bounds_are_below_every_distance(kind, product):
    n, m = 400, 60
    lefts = [residual(size, seed) if product else torch.empty(size, 0) for size, seed in ((n, 0), (m, 1))]
    rows, centres = (
        arrays(ProductRows((left, points(kind, len(left), seed)) if product else (points(kind, len(left), seed),)))
        for left, seed in zip(lefts, (0, 1), strict=True)
    )
    field = Field(rows, m)
    field._survey(centres, sketches := np.empty((1, scans.NUMBERS, m), np.float32), NO_LENGTHS)
    seen, single = field._frame, field._single_frame()
    bounds = (
        single.singles(read_factors(centres, slice(None)))
        .bound_pairs(single.singles(read_factors(rows, slice(None))))
        .astype(float)
        * single.scale**-2
    )
    slack = seen.slack(2 * np.sqrt(field._largest[3])) + 2 * field._error
    for q in range(m):
        exact, left, right = np.empty(n), *(x[0] for x in centres.read(slice(q, q + 1)))
        scans.distances_to(*rows, left, right, exact)
        lower = np.empty(BLOCK, np.float32)
        scans.lower_bounds(field._sketches[0], np.ascontiguousarray(sketches[0, :, q]), lower)
        assert (lower[:n].astype(float) * seen.area < np.nextafter(exact, np.inf) * (1 + 2 * SHARE) + slack).all()
        assert (bounds[q] <= exact + 2 * field._error).all()
        if product:
            sizes = float(scans.squared_norm(left)), float(np.sqrt(scans.squared_norm(right)))
            by_first = [
                scans.first_factor_bound(*rows[:3], i, float(field._lengths[i]), left, *sizes) for i in range(n)
            ]
            assert (np.asarray(by_first) < np.nextafter(exact, np.inf) * (1 + 2.0**-20) + 2 * field._error).all()
    if kind in ("random", "clustered", "offset", "tiny", "huge"):
        assert (bounds > 0.99 * full_distances(rows, centres).T).mean() > 0.9


def full_distances(rows, centres):
    out = np.empty((len(rows.h), len(centres.h)))
    for q in range(len(centres.h)):
        column = np.empty(len(rows.h))
        scans.distances_to(*rows, *(x[0] for x in centres.read(slice(q, q + 1))), column)
        out[:, q] = column
    return out


def test_a_sketch_of_few_dimensions_is_the_distance():
    x = points("flat", 300, 0).double().numpy()
    seen = frame(np.empty((300, 0)), x)
    p = (x - seen.mean) @ seen.v.T
    np.testing.assert_allclose(
        np.square(p[:, None] - p[None]).sum(-1), np.square(x[:, None] - x[None]).sum(-1), atol=1e-9
    )


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1.0, 1e200])
def test_directions_are_orthonormal(scale):
    for d in (1, 3, 40):
        found = directions(scale * np.random.default_rng(0).normal(size=(50, d)))
        np.testing.assert_allclose(found @ found.T, np.eye(min(7, d)), atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_of_products_equal_the_definition(dtype):
    rows = [residual(200, 0).to(dtype), points("offset", 200, 0).to(dtype)]
    out = np.empty(200)
    scans.distances_to(*arrays(ProductRows(tuple(rows))), *(factor[17].numpy() for factor in rows), out)
    g = full(rows)
    np.testing.assert_allclose(out, squares(g, g[17]), rtol=1e-9)
    assert out[17] == 0


def test_copies_are_at_exactly_zero():
    a, h = residual(50, 0).repeat(2, 1), points("offset", 50, 0).repeat(2, 1)
    patched = Patched(torch.rand(100, 5), torch.arange(100, dtype=torch.int32) % 50 % 5, torch.rand(50).repeat(2))
    patched.matrix[50:] = patched.matrix[:50]
    for rows in (ProductRows((h,)), ProductRows((a, h)), ProductRows((patched, h))):
        table = full_distances(arrays(rows), arrays(rows))
        assert (table[np.arange(50), np.arange(50, 100)] == 0).all()
        assert (np.diag(table) == 0).all()


def test_replaced_entries_are_read_as_if_they_stood_there():
    h, matrix = points("random", 80, 0), torch.rand(80, 4)
    patched = Patched(matrix, torch.randint(0, 4, (80,), dtype=torch.int32), torch.randn(80))
    lazy, plain = (arrays(ProductRows((left, h))) for left in (patched, patched[:]))
    assert lazy.a is not plain.a
    assert len(lazy.places) == 80
    np.testing.assert_array_equal(full_distances(lazy, lazy), full_distances(plain, plain))


def test_nothing_is_copied_for_one_or_two_factors():
    h, a = points("random", 50, 0), residual(50, 0)
    for rows in (ProductRows((h,)), ProductRows((a, h))):
        assert np.shares_memory(arrays(rows).h, h.numpy())
    assert np.shares_memory(arrays(ProductRows((a, h))).a, a.numpy())
    view = View(np.arange(50), h, a.softmax(1), torch.zeros(50))
    assert np.shares_memory(arrays(Gradient()(view)).a, view.probabilities.numpy())


def test_overflowing_squares_are_reported():
    huge = View(np.arange(9), torch.full((9, 4), 1e19), None, torch.zeros(9))
    small = View(np.arange(9), torch.ones(9, 4), None, torch.zeros(9))
    for snapshot in (Snapshot("regression", huge, small), Snapshot("regression", small, huge)):
        with pytest.raises(NonFiniteInput, match="their squares overflow"):
            run(KCenter(), snapshot, 2)


def test_draws_follow_the_squared_distances(pool_of):
    rows = torch.zeros(3 * BLOCK, 2)
    rows[:, 0] = 9.0
    rows[[5, BLOCK + 1, 3 * BLOCK - 1]] = torch.tensor([[8.0, 0.0], [8.0, 1.0], [8.0, 2.0]])
    features, snapshot = pool_of([rows])
    for engine in (LocalEngine(1), LocalEngine(2, 3)):
        limits, counts = Limits(engine=engine), {}
        with engine.crew(
            shards(snapshot, torch.zeros(len(rows)), limits), partial(Weighted, features, None, 2)
        ) as crew:
            first = draw(crew, len(rows), np.zeros(2), crew.each("offer"))
            assert (first.position, first.value) == (0, 81.0)
            offers = crew.each("take", first)
            for uniform in (np.arange(4000) + 0.5) / 4000:
                pick = draw(crew, len(rows), np.asarray([0.0, uniform]), offers)
                counts[pick.position] = counts.get(pick.position, 0) + 1
            ends = [draw(crew, len(rows), np.asarray([0.0, u]), offers).position for u in (0.0, np.nextafter(1.0, 0.0))]
        assert counts == {5: 500, BLOCK + 1: 1000, 3 * BLOCK - 1: 2500}
        assert ends == [5, 3 * BLOCK - 1]


def test_distances_of_any_size_are_drawn_before_copies(pool_of):
    """Squared distances 2, 2e-20, 2e-40: each is far below the resolution of the weights before it. The others are
    copies of one row."""
    rows = torch.zeros(40, 3)
    rows[:, 2] = 1.0
    for place, size in ((11, 1.0), (23, 1e-10), (35, 1e-20)):
        rows[place, :2] = size
    features, snapshot = pool_of([rows])
    for build in (KMeansPP, LCMD):
        first, *rest = run(build(features), snapshot, 6).rows.tolist()
        distinct, copies = rest[:3], rest[3:]
        assert first == 11
        assert {23, 35} < set(distinct)
        assert copies == [row for row in range(3) if row not in distinct][:2]
    assert run(LCMD(features), snapshot, 6).rows.tolist() == [11, 0, 23, 35, 1, 2]


@given(st.integers(1, 10**9), st.floats(1e-280, 1e300))
def test_weights_cannot_overflow(n, largest):
    scale = scale_of(largest, n)
    assert 2.0 ** (bits(n) - 1) <= largest * scale < 2.0 ** bits(n)
    assert n * 2 ** bits(n) < 2**63
    assert not is_worn(int(largest * scale), n)


@given(st.integers(1, 2**62), st.floats(0.0, 1.0, exclude_max=True))
def test_shares_lie_below_the_total(total, uniform):
    assert 0 <= share(total, uniform) < total
    assert abs(share(total, uniform) - uniform * total) <= 1 + 1e-15 * total


def test_shards_are_whole_blocks_without_copies(make_snapshot):
    snapshot = make_snapshot(n=5 * BLOCK + 9)
    scores = torch.arange(5 * BLOCK + 9)
    for wanted, expected in ((1, 1), (2, 2), (4, 4), (50, 6)):
        found = shards(snapshot, scores, Limits(engine=LocalEngine(1, wanted)))
        assert len(found) == expected
        assert [shard.start for shard in found] == [int(shard.scores[0]) for shard in found]
        assert all(shard.start % BLOCK == 0 for shard in found)
        assert np.concatenate([shard.view.rows for shard in found]).tolist() == snapshot.candidates.rows.tolist()
        assert found[-1].view.embeddings.data_ptr() == snapshot.candidates.embeddings[found[-1].start :].data_ptr()


def test_the_best_pick_is_the_lowest_of_equals():
    picks = [Pick(1.0, 9, None), Pick(2.0, 8, None), Pick(2.0, 7, None), Pick(-1.0, -1, None)]
    assert best(picks).position == 7


def test_a_shard_that_is_used_up_offers_nothing():
    view = View(np.arange(3), torch.eye(3), None, torch.zeros(3))
    worker = Farthest(Embedding(), None, 4, Shard(view, torch.zeros(3), 10))
    offers = [worker.offer().picks[0]]
    for _ in range(3):
        offers.append(worker.take([offers[-1]]).picks[0])
    assert [offer.position for offer in offers] == [10, 11, 12, -1]
    assert offers[-1].value == -1


class Told:
    """A crew that counts its messages."""

    def __init__(self, crew):
        self.crew, self.messages = crew, 0

    def each(self, *message):
        self.messages += 1
        return self.crew.each(*message)


@pytest.mark.parametrize("kind", ["random", "clustered", "flat", "long tail", "offset"])
def test_one_message_may_decide_several_picks(monkeypatch, kind):
    features, snapshot = scene(kind, 3 * BLOCK, 20, False)
    limits = Limits(engine=LocalEngine(1, 3))
    found, messages = [], []
    for offered in (1, 16, 64):
        monkeypatch.setattr(kcenter_module, "OFFERED", offered)
        parts = shards(snapshot, torch.zeros(len(snapshot.candidates)), limits)
        with limits.engine.crew(parts, partial(Farthest, features, snapshot.labelled, 60)) as crew:
            told = Told(crew)
            positions, squared = farthest_first(told, 60)
        found.append((positions.tolist(), squared.tolist()))
        messages.append(told.messages)
    assert found[0] == found[1] == found[2]
    assert messages[0] >= messages[1] >= messages[2]
    assert messages[2] < 45


def test_loops_compile_where_nothing_can_be_kept():
    names: dict = {}
    exec("def twice(x):\n    return 2 * x", names)
    assert compiled("reassoc")(names["twice"])(21) == 42


def peak_resident(work):
    """How far the resident memory rises, in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def resident(field):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(field))


@pytest.fixture(scope="module")
def small_and_large():
    """Snapshots of 2000 and of 200 000 candidates."""
    d, classes = 64, 64
    generator = torch.Generator().manual_seed(0)

    def side(m):
        p = torch.rand(m, classes, generator=generator)
        return View(
            np.arange(m), torch.randn(m, d, generator=generator), p.div_(p.sum(1, keepdim=True)), torch.zeros(m)
        )

    return tuple(Snapshot("classification", side(m), side(20)) for m in (2000, 200_000))


@pytest.mark.xdist_group("memory of the nearest")  # they share the snapshots
@pytest.mark.parametrize("build", SELECTIONS)
@pytest.mark.parametrize("features", [Embedding(), Gradient()])
def test_memory_is_a_few_numbers_per_row(build, features, small_and_large):
    small, snapshot = small_and_large
    n = len(snapshot.candidates)
    run(build(features), small, 5)
    tracemalloc.start()
    try:
        run(build(features), snapshot, 8, LocalEngine(2))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 56 * n + 2**22
    if os.path.exists("/proc/self/clear_refs"):
        assert peak_resident(lambda: run(build(features), snapshot, 8, LocalEngine(2))) < 80 * n + 2**23
