import numpy as np
import pandas as pd
import pytest

from ally.data import open_source
from ally.errors import DataError, IdError, InputError

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_rows_are_numbered_or_named(tmp_path):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "ids.txt").write_text("a\nb\nc\nd\n")
    numbered = open_source(tmp_path / "X.npy")
    assert [sample.id for sample in numbered.scan()] == ["0", "1", "2", "3"]
    named = open_source(tmp_path / "X.npy", ids=tmp_path / "ids.txt")
    assert [sample.id for sample in named.scan()] == list("abcd")
    assert named.kind.name == "features"
    np.testing.assert_array_equal(named.features(["d", "a"]).read(np.array([0, 1])), X[[3, 0]])
    assert named.show("b").columns == {"0": 3.0, "1": 4.0, "2": 5.0}
    assert [sample.hash for sample in named.scan()] == [sample.hash for sample in numbered.scan()]
    with pytest.raises(InputError, match="numbered"):
        open_source(tmp_path / "X.npy", ids=list("abcd"), known=numbered.fingerprint())


def test_a_row_that_is_not_finite_is_left_out():
    values = X.copy()
    values[2, 1] = np.inf
    samples = open_source(values, ids=["a", "b", "c", "a"])
    assert [sample.id for sample in samples.scan()] == ["a", "b"]
    assert {problem.id: problem.kind for problem in samples.problems} == {"c": "unreadable", "a": "duplicate"}


@pytest.mark.parametrize("kind", ["pair", "mapping", "npz", "csv", "parquet", "files"])
def test_embeddings_are_aligned_by_id(photos, tmp_path, kind):
    ids = ["dog/3.jpg", "5.jpg", "cat/1.jpg", "other.jpg"]
    place = {
        "pair": (X, ids),
        "mapping": dict(zip(ids, X, strict=True)),
        "npz": tmp_path / "e.npz",
        "csv": tmp_path / "e.csv",
        "parquet": tmp_path / "e.parquet",
        "files": (tmp_path / "e.npy", tmp_path / "ids.txt"),
    }[kind]
    np.savez(tmp_path / "e.npz", X=X, ids=np.array(ids))
    np.save(tmp_path / "e.npy", X)
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    table = pd.DataFrame(X, columns=list("xyz")).assign(id=ids)
    table.to_csv(tmp_path / "e.csv", index=False)
    table.to_parquet(tmp_path / "e.parquet")
    samples = open_source(photos, embeddings=place)
    assert samples.kind.name == "images"
    assert [sample.id for sample in samples.scan()] == ["5.jpg", "cat/1.jpg", "dog/3.jpg"]
    assert samples.problems.of("cat/2.png")[0].reason == "it has no embedding"
    source = samples.features(["cat/1.jpg", "dog/3.jpg"])
    assert source.shape == (3,)
    np.testing.assert_array_equal(source.read(np.arange(2)), X[[2, 0]])
    with pytest.raises(IdError, match="1 of 1"):
        samples.features(["cat/2.png"])
    with pytest.raises(InputError, match="embeddings"):
        open_source(photos, embeddings=(X[:, :2], ids), known=samples.fingerprint())


def test_an_embedding_that_is_not_finite(photos):
    samples = open_source(photos, embeddings={"5.jpg": [1.0, 2.0], "cat/1.jpg": [np.nan, 2.0], "dog/3.jpg": [3.0, 4.0]})
    assert [sample.id for sample in samples.scan()] == ["5.jpg", "dog/3.jpg"]
    assert "NaN" in samples.problems.of("cat/1.jpg")[0].reason


def test_embeddings_that_do_not_fit(tmp_path, photos):
    with pytest.raises(DataError, match="4 embeddings and 3 ids"):
        open_source(photos, embeddings=(X, list("abc")))
    with pytest.raises(IdError, match="'a' has more than one"):
        open_source(photos, embeddings=(X, list("abca")))
    np.save(tmp_path / "e.npy", X)
    with pytest.raises(DataError, match="there are 4 embeddings"):
        open_source(photos, embeddings=tmp_path / "e.npy")
    (tmp_path / "e.csv").write_text("id,x\na,1\nb,red\n")
    with pytest.raises(DataError, match=r"line 3 .* holds 'red' in column 'x'"):
        open_source(photos, embeddings=tmp_path / "e.csv")
