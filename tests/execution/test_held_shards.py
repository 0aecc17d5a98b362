"""Queries whose candidates are held shard by shard, in this process: the same code that runs on a cluster."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch

import ally
from ally.data import BLOCK, Vectors, as_source, carried
from ally.errors import BrokenPart, InputError
from ally.execution.engine import LocalEngine
from ally.execution.memory import Scratch
from ally.features import Gradient
from ally.learning.held import Far, Look, spread
from ally.learning.objectives import PDCLUnlabelled
from ally.learning.space import Space
from ally.loop import Loop
from ally.scoring import Margin
from ally.selection import Influence, KMeansPP, Shortlist
from ally.strategies import CATALOGUE
from ally.testing.engine import POOL, TrainedOnce, check_ids
from ally.testing.pools import blobs

POOL_OF_QUERIES = 3 * BLOCK + 300
"""Four blocks: of three shards one has two."""
SHARED_FITS = pytest.mark.xdist_group("held shards")
DISTINCT = [
    "ally",
    "ally-paper",
    "badge",
    "bait",
    "batchbald",
    "cluster-margin",
    "coreset",
    "dal",
    "lcmd",
    "powerbald",
    "probcover",
    "typiclust",
]
"""An entry for each kind of selection; the others choose as one of these does, or as one of `WITHOUT_CLASSES`."""
WITHOUT_CLASSES = ["ally", "bait", "coreset", "dal", "dropquery", "lcmd", "maxherding", "typiclust", "bald"]


@pytest.fixture(autouse=True)
def fewer_candidates(monkeypatch):
    monkeypatch.setattr("ally.testing.engine.POOL", POOL_OF_QUERIES)


@SHARED_FITS
@pytest.mark.parametrize(
    "name", [name if name in DISTINCT else pytest.param(name, marks=pytest.mark.slow) for name in CATALOGUE]
)
def test_every_strategy_gives_the_same_ids(name):
    strategy = CATALOGUE[name]
    if name == "ally-unlabelled":
        strategy = replace(strategy, objective=PDCLUnlabelled(steps=30))
    check_ids(LocalEngine(1, 3, holds=True), strategy)


@SHARED_FITS
@pytest.mark.parametrize("name", WITHOUT_CLASSES)
def test_the_same_for_numbers(name):
    check_ids(LocalEngine(1, 2, holds=True), name, "regression")


@SHARED_FITS
@pytest.mark.parametrize("name", ["badge", "dropquery", "ally", "coreset"])
def test_the_same_before_there_are_labels(name):
    check_ids(LocalEngine(1, 3, holds=True), name, labelled=0)


@SHARED_FITS
@pytest.mark.parametrize("name", ["ally", "badge", "dal"])
def test_the_same_where_candidates_are_set_aside(name):
    hygiene = ally.Hygiene("near", near=0.15, outliers=0.02)
    check_ids(LocalEngine(1, 3, holds=True), name, hygiene=hygiene)


@SHARED_FITS
def test_the_same_in_vectors_of_ones_own_and_on_a_shortlist():
    vectors = np.random.default_rng(1).normal(size=(POOL_OF_QUERIES, 3))
    check_ids(LocalEngine(1, 3, holds=True), "coreset", embeddings=vectors)
    check_ids(LocalEngine(1, 3, holds=True), "maxherding", embeddings="inputs")
    for select in (Shortlist(KMeansPP(Gradient()), times=40), Influence(shortlist=500)):
        check_ids(LocalEngine(1, 3, holds=True), ally.Strategy(Margin(), select))


@SHARED_FITS
def test_large_pools_are_clustered_where_they_are(monkeypatch):
    monkeypatch.setattr("ally.selection.kmeans.SAMPLE", 2000)
    for name in ("cluster-margin", "ally-paper"):
        check_ids(LocalEngine(1, 3, holds=True), name)
    monkeypatch.setattr("ally.selection.typiclust.JOINT", 2000)
    check_ids(LocalEngine(1, 3, holds=True), "typiclust")


@SHARED_FITS
def test_progress_goes_up_to_all_candidates():
    scene, said = blobs("classification", POOL, 30, features=6), []
    loop = Loop(
        scene.X,
        scene.y,
        model=TrainedOnce(),
        strategy="margin",
        engine=LocalEngine(1, 3, holds=True),
        progress=lambda *step: said.append(step),
        chunk_size=BLOCK,
    )
    loop.ask(2)
    done = [step[1] for step in said if step[0] == "embed"]
    assert done == sorted(done)
    assert len(set(done)) > 1
    assert done[-1] == POOL - 30


def doubled(view, start, more):
    assert start % BLOCK == 0
    return view.points.sum(1).double() + more + start


def block_sums(view, start):
    return torch.stack([part.double().sum(0) for part in view.points.split(BLOCK)])


@pytest.fixture(params=[1, 3, 5])
def held(request):
    """Plain points, and the same points held by this many shards."""
    points = np.random.default_rng(0).normal(size=(POOL, 3)).astype(np.float32)
    space = Space(as_source(points), None, Vectors(as_source(points)))
    with Scratch() as scratch:
        look = Look(space.source, None, space)
        yield points, spread(LocalEngine(1, request.param, holds=True), look, np.arange(POOL), scratch)


def test_rows_that_are_elsewhere_are_read_by_index(held):
    points, view = held
    far = view.points
    assert isinstance(far, Far)
    assert far.shape == (POOL, 3)
    assert len(far) == POOL
    rng = np.random.default_rng(1)
    for which in (
        slice(0, 10),
        slice(2000, 4000),
        slice(POOL - 5, None),
        slice(7, 7),
        slice(0, POOL, 700),
        slice(None),
    ):
        np.testing.assert_array_equal(far[which], points[which])
    for places in (rng.permutation(POOL)[:500], np.empty(0, np.int64), np.asarray([3, 3, POOL - 1, 0])):
        np.testing.assert_array_equal(far[torch.from_numpy(places)], points[places])
    np.testing.assert_array_equal(far[-1], points[-1])
    for block in range(0, POOL, 1000):
        np.testing.assert_array_equal(far[block : block + 1000], points[block : block + 1000])
    for use in (lambda: far + 1, lambda: far.double(), lambda: torch.cat([far]), lambda: pickle.dumps(far)):
        with pytest.raises(BrokenPart, match="candidates that the engine's workers hold"):
            use()


@pytest.mark.parametrize("share", [1.0, 0.7, 0.01])
def test_functions_see_the_same_blocks_for_any_number_of_shards(held, share):
    points, view = held
    chosen = np.sort(np.random.default_rng(2).permutation(POOL)[: int(share * POOL)])
    part, rows = view.among(torch.from_numpy(chosen)), torch.from_numpy(points[chosen])
    more = torch.arange(len(chosen), dtype=torch.float64)
    starts = part.mapped(lambda view, start: torch.full((len(view),), start))
    assert torch.equal(part.mapped(doubled, more), rows.sum(1).double() + more + starts)
    expected = torch.stack([block.double().sum(0) for block in rows.split(BLOCK)])
    np.testing.assert_array_equal(part.mapped(block_sums), expected)
    np.testing.assert_array_equal(part.points[:], rows)
    np.testing.assert_array_equal(part.rows, chosen)


def test_sources_travel_by_path_or_run_by_run(tmp_path):
    X = np.random.default_rng(0).normal(size=(70_000, 90)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = as_source(np.load(tmp_path / "X.npy", mmap_mode="r")[5:, ::2])
    assert carried(mapped, None) is mapped
    sent = pickle.dumps(mapped)
    assert len(sent) < 1000
    rows = np.asarray([0, 17, 69_000])
    np.testing.assert_array_equal(pickle.loads(sent).read(rows), X[5:, ::2][rows])

    fetched = []

    def share(value):
        number = len(fetched)
        fetched.append(0)
        text = pickle.dumps(value)

        def get():
            fetched[number] += 1
            return pickle.loads(text)

        return get

    here = carried(as_source(X), share)
    assert len(fetched) > 1
    assert (len(here), here.shape) == (70_000, (90,))
    some = np.arange(60_000, 61_000)
    np.testing.assert_array_equal(here.read(some), X[some])
    assert sum(fetched) == 1
    mixed = np.random.default_rng(0).permutation(70_000)[:500]
    np.testing.assert_array_equal(here.read(mixed), X[mixed])
    assert here.read(mixed[:0]).shape == (0, 90)
    sparse = scipy.sparse.random(50_000, 200, 0.01, format="csr", random_state=0)
    there = carried(as_source(sparse), share)
    assert there.sparse
    np.testing.assert_array_equal(there.take(mixed[:50] % 50_000).toarray(), sparse[mixed[:50] % 50_000].toarray())


def test_images_and_texts_travel_too():
    images = np.random.default_rng(0).integers(255, size=(30, 9, 9, 3)).astype(np.uint8)
    plain, sent = as_source(images), carried(as_source(images), lambda value: lambda: value)
    np.testing.assert_array_equal(sent.read(np.asarray([3, 29])), plain.read(np.asarray([3, 29])))
    texts = carried(as_source(["a", "b", "c"], objects=True), lambda value: lambda: value)
    assert not texts.numeric
    assert texts.take(np.asarray([2, 0])).tolist() == ["c", "a"]


def test_an_engine_that_is_not_known_is_named():
    scene = blobs("classification")
    for engine in ("dask", 3, None):
        with pytest.raises(InputError, match="use 'local', 'ray'"):
            ally.query(scene.X, scene.y, n=2, engine=engine)
