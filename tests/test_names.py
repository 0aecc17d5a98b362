"""The names that are checked without torch are those of the catalogues."""

import pytest

from ally import names
from ally.errors import UnknownName, UnsupportedTask
from ally.learning import objectives
from ally.learning.resolve import LEARNERS
from ally.models import MODELS
from ally.scoring import Random
from ally.strategies import CATALOGUE, Strategy


def test_names_are_those_of_the_catalogues():
    assert {name: entry.tasks for name, entry in names.STRATEGIES.items()} == {
        name: entry.tasks for name, entry in CATALOGUE.items()
    }
    assert list(names.STRATEGIES) == list(CATALOGUE)
    assert list(names.OBJECTIVES) == list(objectives.OBJECTIVES)
    assert list(names.MODELS) == list(MODELS)
    assert list(names.LEARNERS) == list(LEARNERS)


@pytest.mark.parametrize("name", names.ANY_SHAPE)
@pytest.mark.parametrize("shape", [(1,), (5,), (3, 4), (3, 8, 8), (2, 2, 2, 2)])
def test_models_of_any_shape_take_it(name, shape):
    MODELS[name](shape, 2)


def test_a_strategy_that_a_program_adds_is_known(monkeypatch):
    monkeypatch.setitem(CATALOGUE._entries, "mine", Strategy(Random()))
    names.ensure_strategy("mine", "regression")


def test_unknown_names_and_tasks_are_refused():
    with pytest.raises(UnknownName, match="did you mean 'badge'"):
        names.ensure_strategy("bagde", "classification")
    with pytest.raises(UnsupportedTask, match="strategy 'badge' is not defined for regression; use one of ally"):
        names.ensure_strategy("badge", "regression")
    with pytest.raises(UnknownName, match="unknown objective 'nope'"):
        names.ensure_objective("nope")
    with pytest.raises(UnknownName, match="unknown model 'nope'"):
        names.ensure_model("nope")
