"""Large sources in little memory, and without torch."""

import subprocess
import sys

import numpy as np
import pytest

from ally.data.identity import Index, SeenIds, id_keys
from ally.data.problems import KEPT, Problems

ROWS = 200_000
PER_SAMPLE = 96
"""Bytes per sample: the table of ids met and the index, also while they grow."""
CONSTANT = 4 * 2**20


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.csv"
    with path.open("w") as out:
        out.write("id,text,x\n")
        for number in range(ROWS):
            out.write(f'sample-{number:07d},"a text, about {number} things and {"many" * 20}",{number}\n')
    return path


def test_a_large_table_is_scanned_in_little_memory(large):
    code = f"""
import resource, sys
from ally.data import open_source

def peak():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

samples = open_source({str(large)!r}, id_column="id")
scan = samples.scan()
next(scan)
before = peak()
found = 1 + sum(1 for _ in scan)
print(found, peak() - before, samples.show("sample-0123456").text[:20])
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=300, capture_output=True, text=True)
    found, grown, text = done.stdout.split(maxsplit=2)
    assert int(found) == ROWS
    assert int(grown) < CONSTANT + PER_SAMPLE * ROWS < large.stat().st_size
    assert text.strip() == "a text, about 123456"


def test_no_torch_to_open_scan_and_show(tmp_path, photos):
    (tmp_path / "t.csv").write_text("id,x\na,1\nb,2\n")
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    np.save(tmp_path / "X.npy", np.zeros((2, 2)))
    code = f"""
import sys
from ally.data import open_source
for place in {[str(photos), *(str(tmp_path / name) for name in ("t.csv", "t.txt", "X.npy"))]!r}:
    samples = open_source(place)
    for sample in samples.scan():
        samples.show(sample.id)
heavy = {{"torch", "pandas", "sklearn", "pyarrow", "polars"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_ids_met_before():
    seen, plain = SeenIds(), set()
    for number in np.random.default_rng(0).integers(0, 20_000, 30_000).tolist():
        assert seen.add(str(number)) is (number not in plain)
        plain.add(number)


def test_the_index_finds_what_it_was_given():
    ids = [f"id {number}" for number in range(5000)]
    index = Index()
    for place, id in enumerate(ids):
        index.add(id, 7 * place)
    index.close()
    places, there = index.find(id_keys([*ids[::-1], "absent"]))
    assert places[:-1].tolist() == [7 * place for place in range(5000)][::-1]
    assert there.tolist() == [True] * 5000 + [False]
    assert not Index().close().find(id_keys(["a"]))[1].any()


def test_problems_are_counted_when_there_are_many():
    problems = Problems()
    for number in range(KEPT + 50):
        problems.add(str(number), "unreadable", "why")
    problems.add("3", "unreadable", "why")
    assert len(problems) == KEPT + 50
    assert len(list(problems)) == KEPT
    assert str(problems).endswith("and 50 more")
    assert repr(problems) == f"Problems(unreadable={KEPT + 50})"
