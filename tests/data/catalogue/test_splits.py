import subprocess
import sys

import numpy as np
import pytest

from ally.data.catalogue import DATASETS, load
from ally.data.catalogue.splits import fixed_order, holdout, holdout_groups
from ally.errors import InputError, UnknownName


def test_the_order_never_changes():
    """Fixed values, because published results depend on them."""
    assert fixed_order(10).tolist() == [7, 3, 1, 6, 0, 8, 2, 4, 5, 9]
    assert sorted(fixed_order(1000).tolist()) == list(range(1000))


@pytest.mark.parametrize("n", [2, 3, 7, 100, 101])
def test_both_sides_cover_all_rows_once(n):
    pool, test = holdout(n)
    assert sorted([*pool, *test]) == list(range(n))
    assert len(test) == min(round(n / 5), n - 1)


def test_every_class_gives_its_share_and_stays_in_the_pool():
    classes = np.asarray(["a"] * 50 + ["b"] * 10 + ["c"] * 2 + ["d"])
    pool, test = holdout(len(classes), classes)
    count = {name: int(np.sum(classes[test] == name)) for name in "abcd"}
    assert count == {"a": 10, "b": 2, "c": 0, "d": 0}
    assert set(classes[pool]) == set("abcd")


def test_no_group_is_on_both_sides():
    groups = np.repeat(np.arange(42), np.random.default_rng(0).integers(1, 9, 42))
    pool, test = holdout_groups(groups)
    assert not set(groups[pool]) & set(groups[test])
    assert len(set(groups[test])) == 8
    assert sorted([*pool, *test]) == list(range(len(groups)))


@pytest.mark.parametrize("name", ["digits", "diabetes", "breast-cancer", "wine", "iris"])
def test_sets_that_ship_with_scikit_learn(name, tmp_path):
    data = load(name, tmp_path)
    assert DATASETS[name].size == f"{len(data.pool)} + {len(data.test)}, {data.pool.shape[1]} features"
    assert data.pool_labels.dtype == (np.float64 if data.task == "regression" else np.int64)
    again = load(name, tmp_path)
    np.testing.assert_array_equal(again.test, data.test)
    assert (
        not {row.tobytes() for row in data.test} & {row.tobytes() for row in data.pool} or name == "iris"
    )  # iris has twins itself


def test_names_and_targets_that_do_not_exist(tmp_path):
    with pytest.raises(UnknownName, match="unknown data set 'digit'; did you mean 'digits'"):
        load("digit", tmp_path)
    with pytest.raises(InputError, match="does not go with 'digits'"):
        load("digits", tmp_path, label="y")
    with pytest.raises(InputError, match="does not exist; give a file"):
        load(str(tmp_path / "none.csv"))
    (tmp_path / "a.doc").write_text("x")
    with pytest.raises(InputError, match=r"has the ending '\.doc'; use one of \.csv"):
        load(str(tmp_path / "a.doc"))


def test_the_catalogue_is_whole():
    assert list(DATASETS) == [
        "mnist",
        "cifar10",
        "svhn",
        "stl10",
        "tiny-imagenet",
        "tiny-imagenet-32",
        "ptd-total",
        "ptd-motor",
        "ptd-total-by-subject",
        "ptd-motor-by-subject",
        "concrete",
        "energy",
        "kin8nm",
        "power-plant",
        "wine-quality-red",
        "digits",
        "digits-images",
        "diabetes",
        "breast-cancer",
        "wine",
        "iris",
        "trec",
        "sst2",
    ]
    for entry in DATASETS.values():
        assert all((entry.describe, entry.size, entry.citation, entry.terms))


def test_the_import_is_light():
    heavy = ("torch", "pandas", "sklearn", "scipy", "PIL", "pooch", "requests")
    code = f"import sys, ally.data.catalogue; sys.exit(', '.join(set({heavy}) & set(sys.modules)) or 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
