"""Every bad input gets one error that names the thing, the value met and the next step."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

import ally
from ally.errors import (
    AllyError,
    DataError,
    IdError,
    InputError,
    LabelError,
    ModelError,
    NonFiniteInput,
    OneClassError,
    PoolExhausted,
    UnknownName,
)
from ally.learning.objectives import PDCL, Feasibility
from ally.models import Split

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.where(np.arange(30) < 10, np.arange(30) % 2, np.nan)


def with_value(array, row, column, value):
    array = array.copy()
    array[row, column] = value
    return array


class TwoOutputs(nn.Module):
    def forward(self, x):
        return x, x


def ragged():
    return [[1.0, 2.0], [3.0]]


OWN = Split(nn.Identity(), nn.Linear(3, 2))
HUGE = np.where(np.arange(30) < 10, 1e200, np.nan)
CASES = {
    "inf feature": ({"X": with_value(X, 20, 0, np.inf)}, NonFiniteInput, r"X holds inf at row 20, feature 0: infinity"),
    "minus inf feature": ({"X": with_value(X, 0, 0, -np.inf)}, NonFiniteInput, r"X holds -inf at row 0"),
    "infinity in a named column": (
        {"X": pd.DataFrame(with_value(X, 4, 1, np.inf), columns=["a", "width", "c"])},
        NonFiniteInput,
        r"row 4, feature 'width'",
    ),
    "too large": ({"X": with_value(X, 3, 1, 1e200)}, InputError, r"X holds 1e\+200 at row 3, feature 1: too large"),
    "empty pool": ({"X": np.empty((0, 3)), "y": []}, InputError, r"0 sample\(s\).*the pool is empty"),
    "no features": ({"X": np.empty((30, 0))}, InputError, r"0 feature\(s\)"),
    "one dimension": ({"X": X[:, 0]}, InputError, r"X has shape \(30,\).*reshape"),
    "ragged list": ({"X": ragged(), "y": [0, None]}, InputError, r"rows differ in length"),
    "text features": ({"X": np.full((30, 2), "red")}, InputError, r"features must be numbers"),
    "complex": ({"X": X.astype(complex)}, InputError, r"[Cc]omplex"),
    "complex sparse": ({"X": sparse.csr_matrix(X.astype(complex))}, InputError, r"[Cc]omplex"),
    "a string": ({"X": "pool.csv"}, DataError, r"pool\.csv does not exist; give a folder"),
    "none": ({"X": None}, InputError, r"X is a NoneType"),
    "nan in an image": ({"X": np.full((30, 1, 8, 8), np.nan)}, NonFiniteInput, r"X holds nan in sample 0"),
    "y too short": ({"y": Y[:-1]}, LabelError, r"y has 29 entries and X 30 rows"),
    "y two columns": ({"y": np.stack([Y, Y], 1)}, LabelError, r"y has shape \(30, 2\)"),
    "y a number": ({"y": 3}, LabelError, r"y is a int"),
    "inf target": ({"y": np.where(np.arange(30) == 2, np.inf, Y)}, LabelError, r"y holds inf"),
    "mixed labels": ({"y": ["a", 1] * 5 + [None] * 20}, LabelError, r"mixes int and str"),
    "unknown class": ({"classes": [0, 5]}, LabelError, r"label 1.0 is not one of the 2 classes \(0, 5\)"),
    "one declared class": ({"classes": ["a"]}, LabelError, r"declares 1; a classifier needs at least two"),
    "repeated class": ({"classes": [0, 1, 1]}, LabelError, r"repeats a class"),
    "classes for regression": ({"classes": [0, 1], "task": "regression"}, LabelError, r"leave one out"),
    "text for regression": (
        {"y": ["a"] * 10 + [None] * 20, "task": "regression"},
        LabelError,
        r"label 'a' is not a number",
    ),
    "unknown task": ({"task": "ranking"}, LabelError, r"task='ranking'"),
    "one class only": (
        {"y": np.where(np.arange(30) < 10, 1.0, np.nan)},
        OneClassError,
        r"one class only: all 10 are 1.0.*classes=\[1.0, ...\]",
    ),
    "n too large": ({"n": 21}, PoolExhausted, r"20 samples are free and 21 were requested"),
    "n zero": ({"n": 0}, InputError, r"n=0 is not a positive whole number"),
    "n negative": ({"n": -3}, InputError, r"n=-3"),
    "n fractional": ({"n": 2.5}, InputError, r"n=2.5"),
    "n boolean": ({"n": True}, InputError, r"n=True"),
    "-1 for unlabelled": (
        {"y": np.where(np.arange(30) < 9, np.arange(30) % 2, -1), "n": 1},
        PoolExhausted,
        r"free .* if -1 marks unlabelled samples, pass missing_label=-1",
    ),
    "empty for unlabelled": (
        {"y": [["a", "b", ""][min(row, 2)] for row in range(30)], "n": 1},
        PoolExhausted,
        r"if '' marks unlabelled samples, pass missing_label=''",
    ),
    "all labelled": ({"y": np.arange(30) % 2, "n": 1}, PoolExhausted, r"0 samples are free and 1 were requested"),
    "duplicate ids": ({"ids": ["a"] * 30}, IdError, r"id 'a' appears more than once"),
    "ids too short": ({"ids": list(range(29))}, IdError, r"ids has 29 entries and X 30 rows"),
    "ids nan": ({"ids": np.full(30, np.nan)}, IdError, r"NaN"),
    "unknown candidate": (
        {"candidates": [99]},
        IdError,
        r"id 99 is not a row number of the pool; rows go from 0 to 29",
    ),
    "repeated candidate": ({"candidates": [12, 12]}, IdError, r"id 12 is listed more than once"),
    "short mask": ({"candidates": np.ones(3, bool)}, InputError, r"mask has shape \(3,\) and the pool 30"),
    "unknown strategy": (
        {"strategy": "aly"},
        UnknownName,
        r"unknown strategy 'aly'; did you mean 'ally'\? known: ally, ",
    ),
    "strategy of the wrong type": ({"strategy": 7}, InputError, r"strategy is a int"),
    "unknown objective": ({"objective": "pdlc"}, UnknownName, r"did you mean 'pdcl'"),
    "strategy for the other task": (
        {"y": np.where(np.arange(30) < 10, 0.5 * np.arange(30), np.nan), "strategy": "badge"},
        InputError,
        r"strategy 'badge' is not defined for regression; use one of ally",
    ),
    "duals without constraints": (
        {"objective": "erm", "strategy": "ally-clusters"},
        InputError,
        r"needs an objective with constraints; use objective='pdcl'",
    ),
    "unknown model": ({"model": "resnet50"}, UnknownName, r"unknown model 'resnet50'"),
    "model of the wrong type": ({"model": 3}, ModelError, r"model is a int"),
    "model without a split": (
        {"model": nn.Sequential(nn.Linear(3, 2), nn.Softmax(1))},
        ModelError,
        r"does not end with a linear layer \(more follows '0', the last one\).*ally.models.Split.at\(network, ",
    ),
    "unknown device": ({"device": "warp"}, InputError, r"device='warp' cannot be used here"),
    "unknown engine": ({"engine": "slurm"}, InputError, r"engine='slurm' is not known; use 'local', 'ray'"),
    "bad seed": ({"random_state": "x"}, InputError, r"random_state='x' is not a seed"),
    "negative seed": ({"random_state": -1}, InputError, r"random_state=-1"),
    "bad chunk size": ({"chunk_size": 0}, InputError, r"chunk_size=0 must be a whole number of at least 1"),
    "bad memory budget": ({"memory_budget": -1}, InputError, r"memory_budget=-1 must be a whole number of at least 0"),
    "candidates a number": ({"candidates": 5}, InputError, r"candidates=5; pass a list of ids"),
    "classes a number": ({"classes": 3}, LabelError, r"classes=3; pass a list"),
    "a table of labels": ({"y": pd.DataFrame({"a": Y, "b": Y})}, LabelError, r"y is a table with 2 columns"),
    "a huge target": ({"y": HUGE, "task": "regression"}, LabelError, r"label 1e\+200 is not finite or too large"),
    "an unhashable id": ({"ids": [[row] for row in range(30)]}, IdError, r"an id cannot be used as a key"),
    "an objective class": ({"objective": PDCL}, InputError, r"pass a name"),
    "an estimator class": (
        {"model": ally.ConstrainedClassifier},
        ModelError,
        r"pass an instance, ConstrainedClassifier\(\)",
    ),
    "a builder of nothing": (
        {"model": lambda shape, outputs: None},
        ModelError,
        r"gave a NoneType; it must give a torch module",
    ),
    "a tuple from the backbone": (
        {"model": Split(TwoOutputs(), nn.Linear(3, 2))},
        ModelError,
        r"does not take samples of shape \(3,\)",
    ),
    "nan before an own module": (
        {"X": with_value(X, 25, 1, np.nan), "model": OWN},
        NonFiniteInput,
        r"row 25, feature 1",
    ),
    "an own module that overflows": (
        {"X": X * 1e20, "model": OWN, "strategy": "coreset"},
        NonFiniteInput,
        r"their squares overflow",
    ),
    "negative eps": ({"objective": PDCL(eps=-0.1)}, InputError, r"eps holds -0.1"),
    "eps of the wrong length": (
        {"objective": PDCL(eps=[0.1, 0.2])},
        InputError,
        r"eps has shape \(2,\) and there are 10 labelled",
    ),
    "eps without a class": ({"objective": PDCL(eps={0.0: 0.1})}, InputError, r"eps has no value for class 1.0"),
    "eps word": ({"objective": PDCL(eps="tight")}, InputError, r"eps='tight'"),
    "a secondary loss that is a mean": (
        {"objective": PDCL(secondary_loss=lambda o, t: o.mean())},
        InputError,
        r"one number per sample",
    ),
    "a mean as secondary loss, eps by itself": (
        {"objective": PDCL(eps="auto", secondary_loss=lambda o, t: o.mean())},
        InputError,
        r"gave \(\) for a batch of 10; .* per sample",
    ),
    "an unknown secondary loss": (
        {"objective": PDCL(secondary_loss="hinge")},
        UnknownName,
        r"unknown classification loss 'hinge'",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name):
    arguments, error, message = CASES[name]
    with pytest.raises(error, match=message) as caught:
        ally.query(**{"X": X, "y": Y, "n": 2, "random_state": 0, **arguments})
    assert isinstance(caught.value, AllyError)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dual_init": -1}, "dual_init=-1 must be a finite number >= 0"),
        ({"dual_init": np.nan}, "dual_init=nan"),
        ({"dual_lr": -1.0}, "dual_lr=-1.0 must be"),
        ({"dual_lr": np.inf}, "dual_lr=inf must be"),
        ({"dual_cap": -1.0}, "dual_cap=-1.0 must be a finite number > 0"),
        ({"primal_steps": 0}, "primal_steps=0 must be a whole number of at least 1"),
        ({"primal_steps": 1.5}, "primal_steps=1.5"),
        ({"slacks": "some"}, "slacks='some'; pass 'minibatch' or 'all'"),
        ({"dual_every": "round"}, "dual_every='round'; pass 'step' or 'epoch'"),
    ],
)
def test_bad_objective(settings, message):
    with pytest.raises(InputError, match=message):
        PDCL(**settings)


def test_constraints_alone_need_their_weights():
    with pytest.raises(InputError, match=r"nothing to learn from.*PDCL\(weighted=False\)"):
        Feasibility(weighted=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "lr=0 must be a finite number > 0"),
        ({"lr": np.nan}, "lr=nan"),
        ({"epochs": 0}, "epochs=0 must be a whole number of at least 1"),
        ({"patience": 0}, "patience=0 must be a whole number of at least 1"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"epochs": 2.5}, "epochs=2.5"),
        ({"lr": "fast"}, "lr='fast'"),
        ({"hidden": (8, 0)}, "must list positive widths"),
        ({"hidden": 2.5}, "must list positive widths"),
    ],
)
def test_bad_training_settings(settings, message):
    with pytest.raises(InputError, match=message):
        ally.query(X, Y, n=2, model=ally.ConstrainedClassifier(**settings))


def test_divergence_is_an_error():
    with pytest.raises(ally.errors.TrainingDiverged, match=r"lower lr"):
        ally.query(X, Y, n=2, model=ally.ConstrainedClassifier(lr=1e30, epochs=1, batch_size=30))


def test_nan_rows_can_be_left_out_through_candidates():
    q = ally.query(with_value(X, 25, 1, np.nan), Y, n=3, candidates=np.arange(30) < 25, model="linear", random_state=0)
    assert max(q.ids) < 25


def test_a_head_of_the_wrong_size():
    with pytest.raises(ModelError, match=r"the head gives shape \(2, 7\); \(2, 2\) is needed: set its outputs to 2"):
        ally.query(X, Y, n=2, model=Split(nn.Linear(3, 4), nn.Linear(4, 7)))
    with pytest.raises(ModelError, match=r"does not take samples of shape \(3,\)"):
        ally.query(X, Y, n=2, model=Split(nn.Linear(5, 4), nn.Linear(4, 2)))
    with pytest.raises(ModelError, match=r"it must be \(B, d\)"):
        ally.query(X, Y, n=2, model=Split(nn.Unflatten(1, (3, 1)), nn.Linear(1, 2)))


def test_a_dataset_with_samples_of_different_shapes():
    class Odd(torch.utils.data.Dataset):
        def __len__(self):
            return 30

        def __getitem__(self, row):
            return torch.zeros(3 if row != 8 else 4), 0

    with pytest.raises(InputError, match=r"sample 8 has shape \(4,\), the first one \(3,\)"):
        ally.query(Odd(), Y, n=2)


def test_parts_of_the_wrong_kind():
    from ally.scoring import Margin

    for bad in (Margin, "margin", 3):
        with pytest.raises(InputError, match="is not a score; pass an instance such as Margin"):
            ally.Strategy(score=bad)
        with pytest.raises(InputError, match="is not a select"):
            ally.Strategy(select=bad)


def test_a_one_column_table_of_labels_is_fine():
    assert len(ally.query(X, pd.DataFrame({"label": Y}), n=2, model="linear", random_state=0)) == 2


def test_settings_of_an_estimator_that_a_query_does_not_use_are_noted():
    q = ally.query(X, Y, n=2, model=ally.ConstrainedClassifier(hidden=8, epochs=2, eps=3.0), random_state=0)
    assert "eps of the model are not used; pass them as objective=PDCL(...)" in q.notes
