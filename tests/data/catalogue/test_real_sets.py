"""The real files, where ALLY_DATA holds them."""

import numpy as np
import pytest

from ally.data.catalogue import DATASETS, load, state, verify
from ally.errors import DataError


@pytest.fixture
def real(data_folder):
    def get(name):
        if state(DATASETS[name], data_folder) not in ("here", "partly"):
            pytest.skip(f"{name} is not in ALLY_DATA")
        return load(name, data_folder)

    return get


def size(data):
    return f"{data.pool.shape[0]} + {data.test.shape[0]}"


def test_mnist(real, data_folder):
    data = real("mnist")
    assert size(data) == "60000 + 10000"
    assert abs(data.pool.mean() / 255 - 0.1307) < 1e-4
    assert np.bincount(data.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert {check.verdict for check in verify("mnist", data_folder)} == {"good"}


def test_cifar10(real):
    data = real("cifar10")
    assert data.test.shape == (10000, 3, 32, 32)
    assert np.bincount(data.test_labels).tolist() == [1000] * 10
    np.testing.assert_allclose(data.pool.mean(axis=(0, 2, 3)) / 255, [0.4914, 0.4822, 0.4465], atol=0.005)
    assert (len(data.pool) == 50000) == (data.notes == ())


@pytest.mark.parametrize("target", ["total", "motor"])
@pytest.mark.parametrize("by_subject", [False, True])
def test_parkinsons(real, data_folder, target, by_subject):
    name = f"ptd-{target}" + "-by-subject" * by_subject
    data = real(name)
    assert DATASETS[name].size == f"{size(data)}, 19 features"
    import pandas as pd

    table = pd.read_csv(data_folder / "parkinsons" / "parkinsons_updrs.data")
    both = np.concatenate([data.pool, data.test])
    assert np.isfinite(both).all()
    for column in ("subject#", "motor_UPDRS", "total_UPDRS"):
        values = np.sort(table[column].to_numpy(float))
        assert not any(np.array_equal(np.sort(feature), values) for feature in both.T)
    np.testing.assert_allclose(
        np.sort(np.concatenate([data.pool_labels, data.test_labels])), np.sort(table[f"{target}_UPDRS"])
    )
    key = table.drop(columns=["subject#", "motor_UPDRS", "total_UPDRS"]).to_numpy(float)
    person = {row.tobytes(): who for row, who in zip(key, table["subject#"], strict=True)}
    assert len(person) == len(table)
    shared = {person[row.tobytes()] for row in data.pool} & {person[row.tobytes()] for row in data.test}
    assert (not shared) == by_subject
    assert {check.verdict for check in verify(name, data_folder)} == {"good"}


@pytest.mark.parametrize("name", ["concrete", "energy", "kin8nm", "power-plant", "wine-quality-red"])
def test_uci(real, name):
    data = real(name)
    assert DATASETS[name].size == f"{size(data)}, {data.pool.shape[1]} features"
    assert data.pool_labels.dtype == np.float64


@pytest.mark.parametrize(("name", "classes"), [("trec", 6), ("sst2", 2)])
def test_texts(real, name, classes):
    data = real(name)
    assert DATASETS[name].size.replace("60 614", "60614") == f"{size(data)}, {data.pool.shape[1]} words and pairs"
    assert len(np.unique(data.pool_labels)) == classes
    assert set(data.test_labels) <= set(data.pool_labels)


def test_tiny_imagenet_32(real):
    data = real("tiny-imagenet-32")
    assert size(data) == "10000 + 2000"
    assert len(np.unique(data.pool_labels)) == 200
    assert not any("cannot be read" in note for note in data.notes)


@pytest.mark.parametrize("name", ["svhn", "stl10", "tiny-imagenet"])
def test_whole_image_sets(real, name):
    data = real(name)
    assert (
        DATASETS[name]
        .size.replace(" 000", "000")
        .replace("73 257", "73257")
        .replace("26 032", "26032")
        .startswith(size(data))
    )


def test_a_missing_set_says_where_it_was_looked_for(tmp_path):
    for name, entry in DATASETS.items():
        if entry.files:
            with pytest.raises(DataError) as error:
                load(name, tmp_path)
            needed = [file.path for file in entry.files if file.needed]
            said = f"ally datasets fetch {name}" if entry.fetchable else entry.by_hand
            assert all(part in str(error.value) for part in (str(tmp_path), said, *needed))
