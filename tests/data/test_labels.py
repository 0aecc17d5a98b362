import numpy as np
import pandas as pd
import pytest

from ally.data import LabelCode, parse_labels
from ally.errors import LabelError


@pytest.mark.parametrize(
    ("y", "task", "classes"),
    [
        ([0.0, 1.0, np.nan], "classification", [0.0, 1.0]),
        ([0.5, 1.0, None], "regression", None),
        (["b", "a", None], "classification", ["a", "b"]),
        ([True, False, None], "classification", [False, True]),
        ([3, 1, None], "classification", [1, 3]),
        (pd.Series(["x", pd.NA, "y"], dtype="string"), "classification", ["x", "y"]),
        (pd.Series([1, None, 2], dtype="Int64"), "classification", [1, 2]),
        (pd.Categorical(["x", None, "y"]), "classification", ["x", "y"]),
    ],
)
def test_auto_decides_by_the_rule(y, task, classes):
    parsed = parse_labels(y, 3)
    assert parsed.code.task == task
    assert (parsed.code.classes.tolist() if classes else parsed.code.classes) == classes
    assert parsed.known.sum() == 2
    assert np.isnan(parsed.labels[~parsed.known]).all()
    assert parsed.notes


def test_decoding_inverts_encoding():
    parsed = parse_labels(["b", "a", "c", None], 4)
    assert parsed.code.decode(parsed.labels[:3]).tolist() == ["b", "a", "c"]


def test_nulls_are_missing_beside_a_given_marker():
    parsed = parse_labels([0, -1, None, 1], 4, missing_label=-1)
    assert parsed.known.tolist() == [True, False, False, True]


def test_declared_classes_keep_their_order():
    code = parse_labels(["low", None], 2, classes=["low", "mid", "high"]).code
    assert code.classes.tolist() == ["low", "mid", "high"]
    assert code.encode("high") == 2


def test_extension_appends():
    code = LabelCode("classification", np.asarray(["b", "c"]))
    assert code.extended(["c", "a"]).classes.tolist() == ["b", "c", "a"]
    assert code.extended(["c"]) is code
    with pytest.raises(LabelError, match="mixes"):
        code.extended([3])


def test_regression_rejects_what_is_not_a_finite_number():
    code = LabelCode("regression", None)
    for bad in ("x", None, np.nan, np.inf):
        with pytest.raises(LabelError):
            code.encode(bad)
