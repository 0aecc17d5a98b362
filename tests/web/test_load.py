"""The load test of benchmarks/page_load.py, short: many annotators, and a checker over what each of them saw."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from page_load import run


def load(place, folder, annotators, seconds):
    """In a thread: the browser of other tests keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run, place, folder, annotators, seconds).result()


@pytest.mark.long
def test_nothing_is_lost_with_many_annotators(tmp_path):
    assert load(str(tmp_path / "load.db"), tmp_path, 8, 4.0)["answers"] >= 8


@pytest.mark.slow
def test_nothing_is_lost_on_postgresql(tmp_path, new_database):
    assert load(new_database(), tmp_path, 20, 20.0)["answers"] >= 100
