"""Ray Datasets as pools."""

import numpy as np
import pytest

import ally
from ally.data.arrays.ray_blocks import _samples
from ally.errors import DataError, InputError
from ally.execution.ray import RayEngine
from ally.testing.engine import TrainedOnce
from ally.testing.pools import blobs


def test_columns_of_numbers_or_one_of_tensors_are_samples():
    pictures = np.ones((3, 2, 2), np.float32)
    assert _samples({"x": pictures}).read(np.arange(2)).shape == (2, 2, 2)
    table = _samples({"a": np.arange(3), "b": np.ones(3)})
    np.testing.assert_array_equal(table.read(np.arange(3)), [[0, 1], [1, 1], [2, 1]])
    assert table.column(1) == "'b'"
    assert _samples({"a": np.arange(3)}).shape == (1,)
    with pytest.raises(DataError, match="column 'name' of the Ray Dataset holds <U1"):
        _samples({"a": np.arange(1), "name": np.array(["x"])})
    with pytest.raises(DataError, match="'x' holds tensors; keep that one alone"):
        _samples({"x": pictures, "id": np.arange(3)})


@pytest.fixture(scope="module")
def scene():
    return blobs("classification", 5420, 30, features=6)


def asked(X, y, engine):
    query = ally.query(X, y, n=5, strategy="coreset", model=TrainedOnce(), random_state=0, engine=engine)
    return query.ids.tolist()


@pytest.mark.xdist_group("ray")
@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("form", ["tensor", "columns", "lazy"])
def test_a_query_of_a_ray_dataset_gives_the_ids_of_its_rows(cluster, scene, form):
    data = pytest.importorskip("ray.data")
    X = scene.X.astype(np.float64)
    blocks = np.array_split(X, 7)
    if form == "tensor":
        dataset = data.from_numpy(blocks)
    else:
        dataset = data.from_numpy(X).map_batches(lambda rows: {f"c{k}": rows["data"][:, k] for k in range(6)})
        dataset = dataset.repartition(7) if form == "columns" else dataset
    here = asked(X, scene.y, "local")
    assert asked(dataset, scene.y, "local") == here
    assert asked(dataset, scene.y, RayEngine(workers=2, shards=3)) == here


@pytest.mark.xdist_group("ray")
@pytest.mark.slow
@pytest.mark.ray
def test_an_empty_ray_dataset_is_refused(cluster):
    data = pytest.importorskip("ray.data")
    with pytest.raises(InputError, match="the Ray Dataset is empty"):
        ally.query(data.from_numpy(np.ones((4, 2))).filter(lambda row: False), n=1)
