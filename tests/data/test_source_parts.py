import pickle

import numpy as np
import pytest

import ally
from ally.data import as_source
from ally.errors import DataError
from ally.execution.engine import LocalEngine
from ally.testing.engine import TrainedOnce

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(params=["npy", "parquet"])
def folder(request, tmp_path):
    """2500 rows in three parts, and the same in one array."""
    X = np.random.default_rng(0).normal(size=(2500, 3))
    for number, part in enumerate(np.split(X, [1000, 1100])):
        if request.param == "npy":
            np.save(tmp_path / f"part-{number}.npy", part)
        else:
            table = pa.table({name: part[:, k] for k, name in enumerate("abc")})
            parquet.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=700)
    return tmp_path, X


def test_parts_are_read_as_one_pool(folder):
    place, X = folder
    source = as_source(place)
    assert (len(source), source.shape) == (2500, (3,))
    sent = pickle.loads(pickle.dumps(source))
    for rows in (np.arange(2500), np.asarray([2499, 0, 1050, 1000, 999]), np.empty(0, np.int64)):
        np.testing.assert_array_equal(source.read(rows), X[rows])
        np.testing.assert_array_equal(sent.read(rows), X[rows])


@pytest.mark.parametrize("engine", ["local", LocalEngine(1, 2, holds=True)])
def test_a_query_of_a_folder_gives_the_ids_of_the_array(folder, engine):
    place, X = folder
    y = [number % 2 if number < 20 else None for number in range(2500)]
    settings = {"n": 3, "strategy": "margin", "model": TrainedOnce(), "random_state": 0}
    found = ally.query(str(place), y, engine=engine, **settings)
    assert found.ids.tolist() == ally.query(X, y, **settings).ids.tolist()


def test_parts_that_do_not_belong_together_are_named(tmp_path):
    with pytest.raises(DataError, match=r"holds no \.npy or \.parquet files"):
        as_source(tmp_path)
    np.save(tmp_path / "a.npy", np.eye(3))
    np.save(tmp_path / "b.npy", np.eye(4))
    with pytest.raises(DataError, match=r"b\.npy has samples of \(4,\) and .*a\.npy of \(3,\)"):
        as_source(str(tmp_path))
    (tmp_path / "b.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"b\.npy is not a complete .npy file"):
        as_source(tmp_path)
    parquet.write_table(pa.table({"a": ["x"]}), tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"both \.npy and \.parquet"):
        as_source(tmp_path)
    for name in ("a.npy", "b.npy"):
        (tmp_path / name).unlink()
    with pytest.raises(DataError, match=r"the column 'a' \(string\)"):
        as_source(tmp_path)
