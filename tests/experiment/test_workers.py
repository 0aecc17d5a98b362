"""Processes that work through calls."""

import os
import signal

from ally.experiment.workers import Killed, work_through


def add(a, b):
    return a + b


def end_if(condition):
    if condition:
        os.kill(os.getpid(), signal.SIGKILL)
    return condition


def setting(name):
    return os.environ.get(name)


def ended(function, calls, processes=1):
    return sorted((one for one in work_through(function, calls, processes) if one is not None), key=lambda one: one[0])


def test_every_call_ends_once_with_its_result_or_its_error():
    good, bad = ended(add, [(1, 2), (1, "2")])
    assert (good.result, good.error) == (3, None)
    assert isinstance(bad.error, TypeError)


def test_a_process_that_dies_fails_its_call_and_is_replaced():
    first, second, third = ended(end_if, [(False,), (True,), (False,)])
    assert (first.result, third.result) == (False, False)
    assert isinstance(second.error, Killed)


def test_processes_have_the_environment_of_the_time_when_they_are_started(monkeypatch):
    seen = []
    for value in ("one", "two"):
        monkeypatch.setenv("ALLY_TEST_SETTING", value)
        seen += [one.result for one in ended(setting, [("ALLY_TEST_SETTING",)])]
    monkeypatch.delenv("ALLY_TEST_SETTING")
    seen += [one.result for one in ended(setting, [("ALLY_TEST_SETTING",)])]
    assert seen == ["one", "two", None]
