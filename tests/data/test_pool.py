import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ally.data import Ids, Oracle, Pool, State
from ally.errors import AnswerError, IdError, LabelError, PoolExhausted


class PoolMachine(RuleBasedStateMachine):
    """Random histories against a plain dictionary of states."""

    def __init__(self):
        super().__init__()
        self.pool = Pool(np.asarray([1.0, np.nan, np.nan, np.nan, np.nan, np.nan]))
        self.model = {0: State.LABELLED} | dict.fromkeys(range(1, 6), State.FREE)

    def rows(self, state):
        return [row for row, known in self.model.items() if known == state]

    @rule(data=st.data())
    @precondition(lambda self: self.rows(State.FREE))
    def lend(self, data):
        row = data.draw(st.sampled_from(self.rows(State.FREE)))
        self.pool.lend(np.asarray([row]), row + 1)
        self.model[row] = State.PENDING

    @rule(data=st.data())
    @precondition(lambda self: self.rows(State.PENDING))
    def release(self, data):
        row = data.draw(st.sampled_from(self.rows(State.PENDING)))
        assert self.pool.release(row + 1) == 1
        self.model[row] = State.FREE

    @rule(row=st.integers(0, 5), value=st.sampled_from([1.0, 2.0]))
    def label(self, row, value):
        if self.model[row] == State.LABELLED and self.pool.labels(np.asarray([row]))[0] != value:
            with pytest.raises(AnswerError):
                self.pool.label(row, value)
        else:
            self.pool.label(row, value)
            self.model[row] = State.LABELLED

    @rule(row=st.integers(0, 5))
    def ignore(self, row):
        if self.model[row] == State.LABELLED:
            with pytest.raises(AnswerError):
                self.pool.ignore(row)
        else:
            self.pool.ignore(row)
            self.model[row] = State.IGNORED

    @rule(row=st.integers(0, 5))
    def never_lend_twice(self, row):
        if self.model[row] != State.FREE:
            with pytest.raises(AnswerError, match="not free"):
                self.pool.lend(np.asarray([row]), 9)

    @invariant()
    def states_agree_and_part_the_pool(self):
        for state in State:
            assert self.pool.rows(state).tolist() == self.rows(state)
        assert sum(len(self.pool.rows(state)) for state in State) == 6


PoolMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestPool = PoolMachine.TestCase


def test_exhausted_says_both_counts():
    with pytest.raises(PoolExhausted) as caught:
        Pool(np.asarray([np.nan, 1.0])).ensure_free(5)
    assert (caught.value.available, caught.value.requested) == (1, 5)


def test_oracle_counts_what_it_gives_away_and_hides_the_rest():
    oracle = Oracle(np.asarray([5, 6, 7]), ids=["a", "b", "c"])
    assert oracle.answer(["a", "c"]) == {"a": 5, "c": 7}
    oracle.answer(["a"])
    assert oracle.bought == 2
    assert [name for name in vars(oracle) if not name.startswith("_Oracle__")] == []
    with pytest.raises(IdError):
        oracle.answer(["z"])
    with pytest.raises(LabelError, match="no label for id 1"):
        Oracle(np.asarray([1.0, np.nan])).answer([1])


def test_ids_translate_both_ways():
    ids = Ids(3, np.asarray(["x", "y", "z"]))
    assert ids.rows(["z", "x"]).tolist() == [2, 0]
    assert ids.of(np.asarray([1])).tolist() == ["y"]
    assert Ids(3).rows([np.int64(2)]).tolist() == [2]
    mixed = Ids(3, [1, "x", (2, 3)])
    assert mixed.rows([(2, 3), 1]).tolist() == [2, 0]
    for odd in ([[1], [2], [3]], [1, None, 2], [1.0, np.nan, 2.0], 7, "abc"):
        with pytest.raises(IdError):
            Ids(3, odd)
    for bad in (-1, 3, True, "x", 1.0):
        with pytest.raises(IdError):
            Ids(3).row(bad)
    with pytest.raises(IdError, match="id 'w' is not in the pool of 3 samples; ids look like 'x'"):
        ids.row("w")
