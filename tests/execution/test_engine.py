import threading
import time

import pytest

from ally.errors import BrokenPart, InputError
from ally.execution.engine import ROWS_PER_THREAD, LocalEngine
from ally.testing.engine import CHECKS


class Worker:
    def __init__(self, part):
        self.part = part
        self.calls = 0

    def wait_then_name(self, unit):
        time.sleep(unit * (5 - self.part))
        return self.part, threading.current_thread().name

    def count(self, by=1):
        self.calls += by
        return self.calls

    def fail_if(self, part):
        if self.part == part:
            raise InputError(f"worker {self.part} failed")
        time.sleep(0.01)
        self.calls += 1
        return self.part


@pytest.mark.parametrize("engine", [LocalEngine(1), LocalEngine(2)], ids=repr)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_threads_keep_the_contract(check, engine):
    check(engine)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_results_come_in_the_order_of_the_parts(threads):
    with LocalEngine(threads).crew(range(5), Worker) as crew:
        assert len(crew) == 5
        assert [part for part, _ in crew.each("wait_then_name", 0.005)] == [0, 1, 2, 3, 4]


def test_workers_keep_their_state():
    with LocalEngine(2).crew(range(3), Worker) as crew:
        crew.each("count")
        assert crew.one(1, "count", 10) == 11
        assert crew.each("count") == [2, 12, 2]


def test_as_many_threads_work_as_are_asked_for():
    with LocalEngine(3).crew(range(5), Worker) as crew:
        names = {name for _, name in crew.each("wait_then_name", 0.01)}
    assert len(names) == 3
    assert threading.current_thread().name in names


def test_one_shard_or_one_thread_is_called_directly():
    for engine, parts in ((LocalEngine(4), range(1)), (LocalEngine(1), range(4))):
        with engine.crew(parts, Worker) as crew:
            assert {name for _, name in crew.each("wait_then_name", 0.0)} == {threading.current_thread().name}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("part", [0, 2])
def test_errors_reach_the_caller_and_the_crew_goes_on(threads, part):
    with LocalEngine(threads).crew(range(3), Worker) as crew:
        with pytest.raises(InputError, match=f"worker {part} failed"):
            crew.each("fail_if", part)
        assert crew.each("fail_if", None) == [0, 1, 2]
        with pytest.raises(InputError, match=f"worker {part} failed"):
            crew.one(part, "fail_if", part)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_while_building_leaves_no_thread(threads):
    def build(part):
        if part == 1:
            raise InputError("no such part")
        return Worker(part)

    with pytest.raises(InputError, match="no such part"):
        LocalEngine(threads).crew(range(3), build)
    assert not any(thread.name.startswith("ally") for thread in threading.enumerate())


def test_the_threads_end_with_the_block():
    with LocalEngine(2).crew(range(3), Worker) as crew:
        crew.each("wait_then_name", 0.001)
        assert any(thread.name.startswith("ally") for thread in threading.enumerate())
    assert not any(thread.name.startswith("ally") for thread in threading.enumerate())
    for call in (lambda: crew.each("count"), lambda: crew.one(0, "count"), lambda: len(crew)):
        with pytest.raises(BrokenPart, match="the workers have stopped"):
            call()


def test_small_pools_are_not_divided():
    assert LocalEngine(4).parts(ROWS_PER_THREAD - 1) == LocalEngine(4).parts(0) == 1
    assert LocalEngine(4).parts(2 * ROWS_PER_THREAD) == 2
    assert LocalEngine(4).parts(100 * ROWS_PER_THREAD) == 4
    assert LocalEngine(1).parts(100 * ROWS_PER_THREAD) == 1
    assert LocalEngine(1, shards=7).parts(10) == 7


@pytest.mark.parametrize("settings", [{"threads": 0}, {"shards": 0}, {"threads": 1.5}])
def test_impossible_settings_are_rejected(settings):
    with pytest.raises(InputError, match="must be a whole number of at least 1"):
        LocalEngine(**settings)
