"""The graph of a pool kept in a file: the same as one built anew, and never believed."""

import hashlib

import numpy as np
import pytest
from safetensors.numpy import load, save
from sklearn.datasets import load_digits

import ally
from ally.data import as_source
from ally.graph import NeighbourGraph
from ally.learning.graph import GraphLearner
from ally.learning.graph_file import DIGEST
from ally.learning.pool_graph import NEIGHBOURS, hash_points

DIGITS = load_digits().data.astype(np.float32)


def link(X, folder=None, most=50_000):
    source = as_source(X)
    (pool, *_) = GraphLearner(most, keep_in=folder).prepared(source, np.arange(len(source))).graphs
    pool.build()
    return pool


def find_file(folder):
    (path,) = folder.iterdir()
    return path


def are_equal(graph, other):
    return (
        np.array_equal(graph.points, other.points)
        and np.array_equal(graph.neighbours.numbers, other.neighbours.numbers)
        and np.array_equal(graph.neighbours.squared, other.neighbours.squared)
    )


def rewrite(path, change):
    """A file of sound form with other content, as somebody else might write it."""
    arrays = load(path.read_bytes()[DIGEST:])
    content = save({name: np.ascontiguousarray(array) for name, array in change(arrays).items()})
    path.write_bytes(hashlib.blake2b(content, digest_size=DIGEST).digest() + content)


def test_a_later_training_finds_the_graph_and_adds_what_is_new(tmp_path):
    first = link(DIGITS[:1500], tmp_path)
    written = find_file(tmp_path).stat()
    again = link(DIGITS[:1500][::-1], tmp_path)
    assert are_equal(first.build(), again.build()), "the order of the samples does not matter"
    assert find_file(tmp_path).stat().st_mtime_ns == written.st_mtime_ns, "nothing new to write"
    grown = link(DIGITS, tmp_path)
    assert np.array_equal(grown.space.axes, first.space.axes), "the space stays"
    assert are_equal(grown.build(), NeighbourGraph(grown.build().points, max(NEIGHBOURS)))
    assert are_equal(link(DIGITS, tmp_path).build(), grown.build())
    fewer = link(DIGITS[200:], tmp_path)
    assert are_equal(fewer.build(), NeighbourGraph(fewer.build().points, max(NEIGHBOURS)))


def swap_two_links(arrays):
    numbers, squared = arrays["numbers"].copy(), arrays["squared"].copy()
    numbers[0, 0], squared[0, 0] = numbers[0, 1], squared[0, 1]
    return {**arrays, "numbers": numbers, "squared": squared}


def give_other_lengths(arrays):
    return {**arrays, "squared": 0.5 * arrays["squared"]}


def link_beyond_the_points(arrays):
    numbers = arrays["numbers"].copy()
    numbers[5, 3] = 10**6
    return {**arrays, "numbers": numbers}


def shuffle_points(arrays):
    return {**arrays, "points": arrays["points"][::-1]}


def leave_out_links(arrays):
    return {**arrays, "numbers": arrays["numbers"][:, :7], "squared": arrays["squared"][:, :7]}


def put_nan(arrays):
    return {**arrays, "scale": np.full_like(arrays["scale"], np.nan)}


def turn_axes(arrays):
    return {**arrays, "axes": 3 * arrays["axes"]}


def claim_no_samples(arrays):
    return {**arrays, "samples": np.asarray([-1])}


def drop_means(arrays):
    return {name: array for name, array in arrays.items() if name != "mean"}


FOREIGN = (
    swap_two_links, give_other_lengths, link_beyond_the_points, shuffle_points, leave_out_links, put_nan, turn_axes,
    claim_no_samples, drop_means,
)  # fmt: skip


@pytest.mark.parametrize("change", FOREIGN, ids=lambda change: change.__name__)
def test_a_file_of_somebody_else_is_not_believed(tmp_path, change):
    """The pool of the file is another, so that what is read of it would show in the space."""
    link(DIGITS[:900], tmp_path)
    kept = link(DIGITS[:700], tmp_path).space
    rewrite(find_file(tmp_path), change)
    pool, fresh = link(DIGITS[:700], tmp_path), link(DIGITS[:700])
    assert np.array_equal(pool.space.axes, fresh.space.axes)
    assert not np.array_equal(pool.space.axes, kept.axes)
    assert are_equal(pool.build(), fresh.build())


@pytest.mark.parametrize("damage", [b"", b"\x00" * 4000, "cut", "flipped"])
def test_a_damaged_file_is_built_again(tmp_path, damage):
    link(DIGITS[:900], tmp_path)
    path = find_file(tmp_path)
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    path.write_bytes(damage if isinstance(damage, bytes) else content[: -100 if damage == "cut" else None])
    pool, fresh = link(DIGITS[:700], tmp_path), link(DIGITS[:700])
    assert np.array_equal(pool.space.axes, fresh.space.axes)
    assert are_equal(pool.build(), fresh.build())
    assert are_equal(link(DIGITS[:700], tmp_path).build(), fresh.build()), "written anew"


def test_a_pool_that_has_doubled_or_moved_gets_a_space_of_its_own(tmp_path):
    first = link(DIGITS[:500], tmp_path)
    for X in (DIGITS[:1100], DIGITS[:500] + 4 * DIGITS.std(), 2 * DIGITS[:500]):
        link(DIGITS[:500], tmp_path)
        pool, fresh = link(X, tmp_path), link(X)
        assert np.array_equal(pool.space.scaler.mean, fresh.space.scaler.mean)
        assert not np.array_equal(pool.space.scaler.mean, first.space.scaler.mean)
        assert are_equal(pool.build(), fresh.build())


def test_no_graph_is_lost_where_it_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert are_equal(link(DIGITS[:300], tmp_path / "file" / "graphs").build(), link(DIGITS[:300]).build())


def test_a_sample_of_a_larger_pool_hardly_changes_with_it():
    pool, grown = link(DIGITS[:1200], most=600), link(DIGITS[:1260], most=600)
    assert len(pool.build()) == len(grown.build()) == 600
    hashes = [hash_points(some.space.read(as_source(DIGITS), np.arange(1260))) for some in (pool, grown)]
    assert len(np.unique(hashes[0])) == 1260
    chosen = [np.isin(keys, hash_points(some.build().points)) for keys, some in zip(hashes, (pool, grown), strict=True)]
    assert chosen[0][1200:].sum() == 0
    spread = np.histogram(np.flatnonzero(chosen[0]), bins=4, range=(0, 1200))[0]
    assert spread.min() > 100, "from the whole pool"


def test_a_campaign_keeps_its_graph(tmp_path, monkeypatch):
    monkeypatch.setenv("ALLY_CACHE", str(tmp_path / "cache"))
    np.save(tmp_path / "digits.npy", DIGITS[:400])
    labels = load_digits().target
    with ally.Campaign.create(
        tmp_path / "digits.db", source=tmp_path / "digits.npy", classes=list(range(10)), model="graph", evaluate="cv"
    ) as campaign:
        stamps = []
        for _ in range(2):
            query = campaign.ask(15)
            campaign.tell(query.id, {id: int(labels[int(id)]) for id in query.ids})
            campaign.retrain()
            files = list((tmp_path / "cache").rglob("*.graph"))
            stamps.append({path.name: path.stat().st_mtime_ns for path in files})
    assert stamps[0]
    assert stamps[0] == stamps[1], "the second training has nothing to add"
