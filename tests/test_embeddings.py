"""`embeddings=`: distances are measured in the given vectors, everything about the network stays with the network."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import ally
from ally.data import BLOCK, open_vectors
from ally.data.arrays.memory import ArraySource
from ally.errors import InputError, NonFiniteInput
from ally.execution.engine import LocalEngine
from ally.execution.memory import Scratch
from ally.features import Gradient
from ally.hygiene import Hygiene
from ally.hygiene.choose import Subsets
from ally.learning.dual_head import PaperHead, RidgeHead
from ally.learning.snapshot import Snapshot
from ally.learning.training import Training
from ally.rng import Streams
from ally.scoring import Margin, PredictedDual
from ally.selection import LCMD, BestMatch, Discriminative, Herding, KCenter
from ally.selection.base import Limits
from ally.testing.pools import blobs
from conformance_params import QUICK

GEOMETRY = {
    name: ally.CATALOGUE[name].select
    for name in (
        "ally",
        "ally-paper",
        "ally-herding",
        "coreset",
        "kmeanspp",
        "typiclust",
        "probcover",
        "maxherding",
        "uherding",
        "dropquery",
        "cluster-margin",
    )
} | {"dal": Discriminative(sub_batches=2, steps=20)}
NETWORK = {
    "badge": ally.CATALOGUE["badge"].select,
    "bait": ally.CATALOGUE["bait"].select,
    "lcmd": ally.CATALOGUE["lcmd"].select,
    "coverage of gradients": Herding(features=Gradient()),
}


def vectors(n, d=3, seed=5):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def ask(strategy="coreset", n=6, *, embeddings=None, scene=None, task="classification", **more):
    scene = scene or blobs(task)
    return ally.query(scene.X, scene.y, n=n, strategy=strategy, embeddings=embeddings, **scene.arguments(**more))


def k_center(points, labelled, n):
    """Farthest first by the definition."""
    centres = list(labelled)
    if not centres:
        centres.append(int((points.astype(np.float64) ** 2).sum(1).argmax()))
    while len(centres) < len(labelled) + n:
        gaps = ((points[:, None].astype(np.float64) - points[None, centres]) ** 2).sum(-1).min(1)
        centres.append(int(gaps.argmax()))
    return centres[len(labelled) :]


def with_geometry(snapshot, seed=9, d=3):
    """The snapshot with fixed vectors beside its embeddings, and the snapshot with those in place of its embeddings."""
    generator = torch.Generator().manual_seed(seed)

    def fixed(view):
        return torch.randn(len(view), d, generator=generator)

    candidates, labelled = (replace(side, geometry=fixed(side)) for side in (snapshot.candidates, snapshot.labelled))
    given = replace(snapshot, candidates=candidates, labelled=labelled)
    instead = replace(
        snapshot,
        candidates=replace(snapshot.candidates, embeddings=candidates.geometry),
        labelled=replace(snapshot.labelled, embeddings=labelled.geometry),
    )
    return given, instead


def picks(select, snapshot):
    scores = torch.from_numpy(np.random.default_rng(3).random(len(snapshot.candidates)))
    return select(snapshot, scores, 12, Streams(4), Limits()).rows.tolist()


@pytest.mark.parametrize("name", GEOMETRY)
def test_selections_measure_distances_in_the_given_vectors(name, make_snapshot):
    plain = make_snapshot()
    given, instead = with_geometry(plain)
    assert picks(GEOMETRY[name], given) == picks(GEOMETRY[name], instead) != picks(GEOMETRY[name], plain)


@pytest.mark.parametrize("name", NETWORK)
def test_gradients_and_information_stay_with_the_network(name, make_snapshot):
    plain = make_snapshot()
    given, _ = with_geometry(plain)
    assert picks(NETWORK[name], given) == picks(NETWORK[name], plain)


def test_lcmd_of_a_regression_takes_the_given_vectors(make_snapshot):
    plain = make_snapshot(task="regression")
    given, instead = with_geometry(plain)
    lcmd = ally.CATALOGUE["lcmd"].select
    assert picks(lcmd, given) == picks(LCMD(), instead) != picks(lcmd, plain)


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("head", [RidgeHead(), PaperHead(epochs=2)])
def test_the_dual_head_keeps_the_embeddings_of_the_network(make_snapshot, task, head):
    plain = make_snapshot(task=task)
    given, _ = with_geometry(plain)
    score = PredictedDual(head)
    assert torch.equal(score(given, Streams(0)).scores, score(plain, Streams(0)).scores)


def test_simulated_labels_follow_the_network_and_matching_the_vectors(make_snapshot):
    plain = make_snapshot()
    given, instead = with_geometry(plain)
    found = picks(BestMatch(Margin(), paths=3), given)
    assert found != picks(BestMatch(Margin(), paths=3), plain)
    assert found != picks(BestMatch(Margin(), paths=3), instead)
    gradients = BestMatch(Margin(), paths=3, features=Gradient())
    assert picks(gradients, given) == picks(gradients, plain)


def test_parts_of_a_view_keep_their_vectors(make_snapshot):
    given, _ = with_geometry(make_snapshot())
    some = torch.tensor([3, 17, 40])
    assert torch.equal(given.among(some).candidates.points, given.candidates.geometry[some])
    keep = torch.arange(200) % 3 == 0
    with Scratch() as scratch:
        kept, _ = Subsets(given, torch.zeros(200), scratch)(keep)
        assert torch.equal(kept.candidates.points, given.candidates.geometry[keep])


@pytest.mark.parametrize("name", ["coreset", "kmeanspp", "maxherding", "probcover", "ally-paper"])
def test_shards_change_nothing(name, make_snapshot):
    given, _ = with_geometry(make_snapshot(n=2 * BLOCK + 100))
    scores = torch.zeros(len(given.candidates), dtype=torch.float64)
    whole, parted = (
        GEOMETRY[name](given, scores, 9, Streams(4), Limits(engine=engine)).rows.tolist()
        for engine in (LocalEngine(1), LocalEngine(2, 3))
    )
    assert parted == whole


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("labelled", [0, 12])
def test_coreset_covers_the_given_vectors(task, labelled):
    scene, points = blobs(task), vectors(60)
    scene = replace(scene, y=np.where(np.arange(60) < labelled, scene.y, np.nan))
    q = ask("coreset", 8, embeddings=points, scene=scene)
    assert q.ids.tolist() == k_center(points, range(labelled), 8)
    if labelled:
        gaps = np.linalg.norm(points[q.ids][:, None] - points[None, :labelled], axis=-1)
        np.testing.assert_allclose(q.why["distance"], gaps.min(1), rtol=1e-5)
        assert q.why["nearest_labelled"].tolist() == gaps.argmin(1).tolist()


def test_the_first_batch_covers_the_given_vectors():
    """Six far blobs in the vectors, none in the inputs."""
    points = 20 * np.repeat(vectors(6, 4, 0), 30, axis=0) + 0.1 * vectors(180, 4, 1)
    X = vectors(180, 4, 2)
    for strategy in ("margin", "ally", "coreset", "lcmd", "uherding"):
        q = ally.query(X, n=6, strategy=strategy, classes=[0, 1], random_state=0, embeddings=points)
        assert set(q.ids // 30) == set(range(6)), strategy
        assert any("covers the space of the given embeddings" in note for note in q.notes)


def test_vectors_may_come_as_anything_samples_may(tmp_path):
    points = np.round(vectors(60), 2)
    np.save(tmp_path / "points.npy", points)
    kinds = {
        "memory map": np.load(tmp_path / "points.npy", mmap_mode="r"),
        "sparse": scipy.sparse.csr_matrix(points),
        "tensor": torch.from_numpy(points),
        "frame": pd.DataFrame(points.astype(np.float64), columns=["a", "b", "c"]),
        "double": points.astype(np.float64),
        "list": points.tolist(),
        "data set": torch.utils.data.TensorDataset(torch.from_numpy(points)),
    }
    expected = ask("coreset", 8, embeddings=points).ids.tolist()
    for kind, given in kinds.items():
        assert ask("coreset", 8, embeddings=given).ids.tolist() == expected, kind
    assert (np.load(tmp_path / "points.npy") == points).all()


@pytest.mark.parametrize("shape", [(4,), (2, 3, 3)])
def test_inputs_are_standardised_vectors(shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, *shape)) * 5 + 3
    y = np.where(np.arange(60) < 12, np.arange(60) % 3, np.nan)
    axes = (0,) if len(shape) == 1 else (0, 2, 3)
    standard = ((X - X.mean(axes, keepdims=True)) / X.std(axes, keepdims=True)).reshape(60, -1)
    for given in ("inputs", standard):
        q = ally.query(X, y, n=6, strategy="coreset", embeddings=given, model="mlp", random_state=0)
        assert q.ids.tolist() == k_center(standard.astype(np.float32), range(12), 6)


@pytest.mark.parametrize("strategy", ["ally", "coreset", "typiclust", "uherding", "ally-herding"])
def test_neither_chunks_nor_the_budget_change_ids(strategy):
    scene, points = blobs("classification", n=2600), vectors(2600)
    whole = ask(strategy, 5, scene=scene, embeddings=points).ids.tolist()
    assert ask(strategy, 5, scene=scene, embeddings=points, chunk_size=1).ids.tolist() == whole
    assert ask(strategy, 5, scene=scene, embeddings=points, memory_budget=0).ids.tolist() == whole


@pytest.mark.parametrize(
    ("strategy", "task"), [(name, task) for name, entry in ally.CATALOGUE.items() for task in sorted(entry.tasks)]
)
def test_every_strategy_takes_vectors(strategy, task):
    q = ask(QUICK.get(strategy, strategy), 5, task=task, embeddings=vectors(60))
    assert len(set(q.ids.tolist())) == 5
    assert set(q.ids.tolist()) <= blobs(task).free
    assert np.isfinite(q.why["distance"]).all() or not ally.CATALOGUE[strategy].trains


def test_predictions_stay_with_the_network():
    plain, given = ask("margin"), ask("margin", embeddings=vectors(60))
    assert plain.ids.tolist() == given.ids.tolist()
    assert plain.why["probability"].tolist() == given.why["probability"].tolist()
    assert plain.why["distance"].tolist() != given.why["distance"].tolist()


def test_near_duplicates_are_told_in_the_given_vectors():
    scene, points = blobs("classification"), vectors(60)
    points[40:] = points[20:40] + 1e-5
    q = ask("random", 30, embeddings=points, hygiene=Hygiene("near", near=0.01))
    kept = [row - 20 if row >= 40 else row for row in q.ids.tolist()]
    # 28 of the 48 free samples are different; two are recalled and come last.
    assert len(set(kept[:28])) == 28
    assert q.report["set_aside"]["recalled"] == 2
    loop = ally.Loop(
        scene.X, scene.y, strategy="coreset", embeddings=points, hygiene=Hygiene("near", near=0.01), **scene.arguments()
    )
    first = loop.ask(10).ids % 20
    assert not set(first.tolist()) & set((loop.ask(10).ids % 20).tolist()), "picks keep apart from pending samples"


class Watched(ArraySource):
    """Remembers how many rows were read at a time."""

    def __init__(self, array):
        super().__init__(array)
        self.reads = []

    def read(self, rows):
        self.reads.append(len(rows))
        return super().read(rows)


def test_vectors_are_read_by_the_chunk():
    points = Watched(vectors(5 * BLOCK + 7))
    scene = blobs("classification", n=5 * BLOCK + 7)
    ask("coreset", 3, scene=scene, embeddings=points, chunk_size=BLOCK)
    assert max(points.reads) == BLOCK
    assert sum(points.reads) == 5 * BLOCK + 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (vectors(59), r"embeddings= has 59 rows and the pool 60 samples; give one vector for each"),
        (np.ones(60), r"embeddings= has shape \(60,\); pass one row per sample"),
        (np.ones((60, 2, 2)), r"embeddings= has shape \(60, 2, 2\); give one vector per sample: reshape to \(60, d\)"),
        (np.ones((60, 0)), r"embeddings= has shape \(60, 0\)"),
        (np.full((60, 2), "a"), r"embeddings= has dtype <U1"),
        ("pixels", r"embeddings='pixels' is not known; pass an array of one vector per sample, or 'inputs'"),
        (7, r"embeddings= is a int; pass an array"),
        (np.full((60, 2), 1e30), r"embeddings= holds 1e\+30 at row \d+, column 0: too large to square"),
    ],
)
def test_vectors_that_cannot_be_used(given, message):
    with pytest.raises(InputError, match=message):
        ask(embeddings=given)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vectors_are_finite_where_they_are_needed(bad):
    points = vectors(60)
    points[33, 1] = bad
    with pytest.raises(NonFiniteInput, match=r"embeddings= holds -?(nan|inf) at row 33, column 1; give finite vectors"):
        ask(embeddings=points)
    assert 33 not in ask(embeddings=points, candidates=np.arange(60) != 33).ids.tolist()


def test_vectors_are_not_copied_when_they_are_opened(tmp_path):
    np.save(tmp_path / "points.npy", vectors(60))
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    opened = open_vectors(mapped, 60)
    assert np.shares_memory(opened.source._array, mapped)


def test_a_query_takes_validation_samples():
    scene, truth = blobs("classification"), blobs("classification", n=30, labelled=30, seed=1)
    q = ask("margin", validation=(truth.X, truth.y))
    assert q.report["fit"].validation_loss is not None
    assert ask("margin").report["fit"].validation_loss is None
    with pytest.raises(InputError, match="validation has 30 samples and 29 labels"):
        ask("margin", scene=scene, validation=(truth.X, truth.y[:29]))


def test_distances_without_vectors_are_those_of_the_network(make_snapshot):
    snapshot = make_snapshot()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.candidates.points is snapshot.candidates.embeddings
    assert picks(KCenter(), snapshot) != picks(KCenter(), with_geometry(snapshot)[0])


def networks(shape=(), rng=0):
    """A loop over 60 samples of that shape with a small network, and ten labels."""
    X = np.random.default_rng(rng).normal(size=(60, *shape)).astype(np.float32)
    y = np.where(np.arange(60) < 10, np.arange(60) % 2, np.nan)
    return lambda strategy, **more: ally.Loop(
        X, y, strategy=strategy, model="mlp", task="classification", random_state=0, training=Training(epochs=5), **more
    )


def test_the_default_compares_the_inputs_of_a_network_and_others_its_embedding():
    loop = networks((7,))
    default, given = loop("ally").ask(6), loop("ally", embeddings="inputs").ask(6)
    assert default.ids.tolist() == given.ids.tolist()
    np.testing.assert_array_equal(default.why["distance"], given.why["distance"])
    learned, fixed = loop("uherding").ask(6), loop("uherding", embeddings="inputs").ask(6)
    assert learned.why["distance"].tolist() != fixed.why["distance"].tolist()


def test_wide_samples_are_compared_by_the_embedding_of_a_network():
    loop = networks((3, 30, 30))
    default, fixed = loop("ally").ask(6), loop("ally", embeddings="inputs").ask(6)
    assert default.why["distance"].tolist() != fixed.why["distance"].tolist()
