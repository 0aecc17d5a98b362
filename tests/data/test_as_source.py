import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from ally.data import BLOCK, Source, as_source, blocks, chunks, fit_scaler, open_pool
from ally.data.labels_file import read_labels
from ally.data.samples import ById
from ally.errors import AllyError, IdError, InputError, LabelError


def test_standardised_equals_numpy():
    X = np.random.default_rng(0).normal(3, 5, size=(2500, 4))
    source = fit_scaler(as_source(X), np.arange(2500)).of(as_source(X))
    values = source.read(np.arange(2500))
    np.testing.assert_allclose(values, (X - X.mean(0)) / X.std(0), atol=1e-5)
    assert values.dtype == np.float32


def test_chunk_size_does_not_change_a_bit():
    X = np.random.default_rng(0).normal(1e3, 5, size=(3000, 4))
    whole, small = (fit_scaler(as_source(X), np.arange(3000), size) for size in (None, 7))
    assert np.array_equal(whole.mean, small.mean)
    assert np.array_equal(whole.scale, small.scale)


def test_a_large_offset_and_a_constant_feature():
    X = np.stack([1e9 + np.random.default_rng(0).normal(size=500), np.full(500, 1e9), np.zeros(500)], 1)
    values = fit_scaler(as_source(X), np.arange(500)).of(as_source(X)).read(np.arange(500))
    assert values[:, 0].std() == pytest.approx(1, abs=1e-3)
    assert np.abs(values[:, 1:]).max() < 1e-6


def test_images_are_standardised_per_channel():
    X = np.random.default_rng(0).integers(0, 255, size=(50, 3, 8, 8), dtype=np.uint8)
    values = fit_scaler(as_source(X), np.arange(50)).of(as_source(X)).read(np.arange(50))
    np.testing.assert_allclose(values.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(values.std((0, 2, 3)), 1, atol=1e-5)


def test_blocks_and_chunks_cover_everything_once():
    for n in (1, BLOCK, BLOCK + 1, 5 * BLOCK + 3):
        assert np.concatenate([np.arange(n)[part] for part in blocks(n)]).tolist() == list(range(n))
        for size in (None, 1, BLOCK + 1):
            parts = list(chunks(n, size))
            assert np.concatenate([np.arange(n)[part] for part in parts]).tolist() == list(range(n))
            assert all(part.start % BLOCK == 0 for part in parts)


def test_integer_datasets_stay_integers():
    data = torch.utils.data.TensorDataset(torch.arange(12).reshape(4, 3))
    values = as_source(data).read(np.asarray([1, 3]))
    assert values.dtype == np.int64
    assert values.tolist() == [[3, 4, 5], [9, 10, 11]]


def test_wide_integers_keep_their_digits():
    for X in (np.asarray([[1_700_000_000], [1_700_000_001]]), sparse.csr_matrix([[1_700_000_000], [1_700_000_001]])):
        values = as_source(X).read(np.arange(2))
        assert values[1, 0] - values[0, 0] == 1


def test_datasets_of_every_kind_of_item():
    X = np.arange(6.0).reshape(3, 2)
    items = {
        "tuple": lambda row: (X[row], 1),
        "list of features": lambda row: X[row].tolist(),
        "gradient": lambda row: torch.tensor(X[row], requires_grad=True),
        "bfloat16": lambda row: torch.tensor(X[row], dtype=torch.bfloat16),
    }
    for name, item in items.items():
        data = type("Data", (), {"__len__": lambda self: 3, "__getitem__": lambda self, row, item=item: item(row)})()
        assert as_source(data).read(np.arange(3)).tolist() == X.tolist(), name
    words = type("Words", (), {"__len__": lambda self: 3, "__getitem__": lambda self, row: "word"})()
    with pytest.raises(InputError, match="X holds texts, and numbers are needed"):
        as_source(words)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ma.masked_array(np.ones((3, 2)), np.eye(3, 2)), "masked array"),
        (torch.eye(3).to_sparse(), "sparse tensor"),
        (pl.DataFrame({"a": [1.0]}).lazy(), r"pass X.collect\(\)"),
        (pl.DataFrame({"a": [1.0], "b": ["x"]}), "column 'b' holds 'x'"),
        (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), "column 'a' appears more than once"),
    ],
)
def test_containers_that_cannot_be_read(X, message):
    with pytest.raises(InputError, match=message):
        as_source(X)


def test_other_byte_orders_and_long_doubles():
    for dtype in (">f8", ">f4", np.longdouble, np.float16):
        values = as_source(np.ones((2, 2), dtype=dtype)).read(np.arange(2))
        torch.from_numpy(values)


def test_own_sources_are_taken_as_they_are():
    source = fit_scaler(as_source(np.eye(3)), np.arange(3)).of(as_source(np.eye(3)))
    assert as_source(source) is source


def test_half_precision_tensors():
    assert as_source(torch.ones(3, 2, dtype=torch.bfloat16)).read(np.arange(3)).dtype == np.float32


def test_files_round_trip(tmp_path):
    X = np.random.default_rng(0).normal(size=(5, 2))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(id=list("vwxyz"))
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "X.npz", X=X, ids=np.asarray(list("vwxyz")))
    frame.to_csv(tmp_path / "X.csv", index=False)
    frame.to_parquet(tmp_path / "X.parquet")
    frame.rename(columns={"id": "key"}).to_csv(tmp_path / "key.csv", index=False)
    for name, ids, column in (
        ("X.npy", None, None),
        ("X.npz", "vwxyz", None),
        ("X.csv", "vwxyz", None),
        ("X.parquet", "vwxyz", None),
        ("key.csv", "vwxyz", "key"),
    ):
        pool = open_pool(tmp_path / name, **({} if column is None else {"id_column": column}))
        assert pool.labels is None
        np.testing.assert_allclose(pool.source.read(np.arange(5)), X)
        assert pool.ids is None if ids is None else pool.ids.tolist() == list(ids)
    assert open_pool(tmp_path / "X.npy").source.by_path, "it stays on disk"


def test_bad_files(tmp_path):
    (tmp_path / "pool.xls").write_text("1,2")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY nothing")
    (tmp_path / "broken.npz").write_bytes(b"PK nothing")
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01\n")
    np.savez(tmp_path / "other.npz", Z=np.ones(3))
    np.save(tmp_path / "objects.npy", np.asarray([{}], dtype=object), allow_pickle=True)
    (tmp_path / "good.csv").write_text("a\n1\n")
    for name, message in (
        ("missing.csv", "does not exist"),
        ("", "holds both .npy and .parquet files"),
        ("pool.xls", r"has the ending '.xls'; use .csv, .tsv, .csv.gz, .tsv.gz, .xlsx, .parquet"),
        ("broken.npy", "is not a complete .npy file"),
        ("broken.npz", "cannot be read as an .npz file"),
        ("broken.parquet", "cannot be read as Parquet"),
        ("empty.csv", "is empty; give a file with samples"),
        ("binary.csv", "line 1 of .* is not utf-8"),
        ("other.npz", "holds Z; save the features as X"),
        ("objects.npy", "is not a complete .npy file"),
    ):
        with pytest.raises(AllyError, match=message):
            open_pool(tmp_path / name)
    with pytest.raises(InputError, match=r"has no column 'key' \(id_column\); its columns are a"):
        open_pool(tmp_path / "good.csv", id_column="key")


def test_labels_file(tmp_path):
    path = tmp_path / "L.csv"
    path.write_text("id,label\n3,cat\n4,\n7,dog\n")
    assert read_labels(path) == {3: "cat", 7: "dog"}
    path.write_text("id,label\n007,NA\n08,None\n")
    assert read_labels(path) == {"007": "NA", "08": "None"}
    path.write_text("id,label\n1,1.5\n2,2\n3,\n")
    assert read_labels(path) == {1: 1.5, 2: 2.0}
    path.write_text("id,label\n1,1\n2,2\n3,\n")
    assert read_labels(path) == {1: 1, 2: 2}
    path.write_text("id,label\n3,cat\n3,dog\n")
    with pytest.raises(IdError, match=r"labels id .*3.* more than once"):
        read_labels(path)
    path.write_text("name,label\n3,cat\n")
    with pytest.raises(LabelError, match="has no column 'id'"):
        read_labels(path)


def test_vectors_share_one_scale():
    X = np.random.default_rng(0).standard_normal((200, 3)) * [1, 5, 0.1] + [0, 3, 9]
    for source, scaling in (
        (ById(list(map(str, range(200))), (3,), lambda ids: X[[*map(int, ids)]], vectors=True), None),
        (as_source(X), "common"),
    ):
        values = fit_scaler(source, np.arange(200), scaling=scaling).of(source).read(np.arange(200))
        assert values.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-5)
        assert np.square(values).mean() == pytest.approx(1, rel=1e-5)
        assert values.std(axis=0) / values.std(axis=0)[0] == pytest.approx(X.std(axis=0) / X.std(axis=0)[0], rel=1e-4)


class OwnReader:
    """A pool of one's own: no class of ours, and it declares that zeros mean absence."""

    shape = (2,)
    sparse = True

    def __len__(self):
        return 3

    def read(self, rows):
        return np.asarray([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]])[rows]

    def column(self, number):
        return f"word {number}"


def test_a_reader_of_ones_own_becomes_a_source():
    source = as_source(OwnReader())
    assert isinstance(source, Source)
    assert (source.sparse, source.vectors, source.numeric, source.divisible) == (True, False, True, False)
    assert source.take(np.array([1])).tolist() == source.read(np.array([1])).tolist() == [[2.0, 0.0]]
    assert source.column(1) == "word 1"
    assert (fit_scaler(source, np.arange(3)).mean == 0).all()
