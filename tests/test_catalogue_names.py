"""The names that are checked without torch are those of the catalogues."""

import numpy as np
import pytest

from ally import catalogue_names
from ally.errors import UnknownName, UnsupportedTask
from ally.learning import objectives
from ally.learning.learner import Examples
from ally.learning.resolve import LEARNERS, resolve_learner
from ally.learning.training import Training
from ally.models import MODELS
from ally.rng import streams
from ally.scoring import Random
from ally.strategies import CATALOGUE, Strategy


def test_names_are_those_of_the_catalogues():
    assert {name: entry.tasks for name, entry in catalogue_names.STRATEGIES.items()} == {
        name: entry.tasks for name, entry in CATALOGUE.items()
    }
    assert list(catalogue_names.STRATEGIES) == list(CATALOGUE)
    assert list(catalogue_names.OBJECTIVES) == list(objectives.OBJECTIVES)
    assert list(catalogue_names.MODELS) == list(MODELS)
    assert list(catalogue_names.LEARNERS) == list(LEARNERS)


@pytest.mark.parametrize("name", catalogue_names.ANY_SHAPE)
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (3, 8, 8), (2, 2, 2, 2)])
def test_models_of_any_shape_take_it(name, shape):
    MODELS[name](shape, 2)


@pytest.mark.parametrize("name", catalogue_names.LEARNERS)
@pytest.mark.parametrize("shape", [(1,), (3, 4), (3, 8, 8)])
def test_learners_take_any_shape(name, shape):
    samples = np.random.default_rng(0).random((8, *shape))
    # A Gaussian process learns numbers only.
    examples = Examples.of(samples, np.arange(8) % 2, None if name == "gaussian-process" else (0, 1))
    learner = resolve_learner(name, shape, Training(epochs=1)).prepared(examples.source, examples.rows)
    assert len(learner.fit(examples, objectives.ERM(), streams(0)).predict(examples.source)) == 8


def test_a_strategy_that_a_program_adds_is_known(monkeypatch):
    monkeypatch.setitem(CATALOGUE._entries, "mine", Strategy(Random()))
    catalogue_names.ensure_strategy("mine", "regression")


def test_unknown_names_and_tasks_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'badge'"):
        catalogue_names.ensure_strategy("bagde", "classification")
    with pytest.raises(UnsupportedTask, match="strategy 'badge' is not defined for regression; use one of ally"):
        catalogue_names.ensure_strategy("badge", "regression")
    with pytest.raises(UnknownName, match="unknown objective 'nope'"):
        catalogue_names.ensure_objective("nope")
    with pytest.raises(UnknownName, match="unknown model 'nope'"):
        catalogue_names.ensure_model("nope")
