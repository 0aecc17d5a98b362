"""Grids in folders: killed, damaged, extended, run twice at once."""

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pytest

from ally.errors import InputError, UnknownName
from ally.experiment import Cell, CellsFailed, Copies, Trial, collect, run_grid
from ally.experiment.journal import Journal
from ally.experiment.simulate import campaign
from ally.hygiene import Hygiene
from ally.learning.training import Training
from ally.rng import Streams
from ally.testing.pools import blobs

TIMINGS = ["train_seconds", "query_seconds"]


def trial(name):
    scene = blobs("classification", n=160, labelled=160)
    return Trial(name, "classification", scene.X[:120], scene.y[:120], scene.X[120:], scene.y[120:])


def changed(name):
    data = trial(name)
    return replace(data, pool=data.pool + 1)


def cell(strategy="ally", seed=0, rounds=4, epochs=4, **more):
    return Cell(
        strategy,
        seed,
        init=10,
        batch=5,
        rounds=rounds,
        model="linear-network",
        training=Training(epochs=epochs, batch_size=16),
        **more,
    )


CELLS = [("blobs", cell(strategy, seed)) for seed in range(2) for strategy in ("ally", "margin", "random")]


def untimed(results):
    return results.drop(columns=TIMINGS).sort_values(["strategy", "seed", "round"], ignore_index=True)


pytestmark = pytest.mark.xdist_group("grids")  # they share one grid


class Finished(NamedTuple):
    """A grid that has run: its folder, its table, and what it told of its progress."""

    out: Path
    results: pd.DataFrame
    told: list[tuple[str, int, int]]


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory):
    out, told = tmp_path_factory.mktemp("grid") / "out", []
    return Finished(out, run_grid(trial, CELLS, out, workers=0, progress=lambda *now: told.append(now)), told)


@pytest.fixture(scope="module")
def undisturbed(finished_once):
    """That processes give the same numbers is in test_simulate.py, and below for those that are killed."""
    return untimed(finished_once.results)


@pytest.fixture
def finished(finished_once, tmp_path):
    """A copy of the folder, to go on in."""
    return finished_once._replace(out=shutil.copytree(finished_once.out, tmp_path / "out"))


def kept(folder):
    """What is on disk; only shares of duals may be empty."""
    empty = dict.fromkeys(("positive_duals", "rank_quality"), "")
    return pd.read_csv(folder / "results.csv", keep_default_na=False, na_values=empty)


def test_a_second_run_runs_nothing(finished):
    again = run_grid(trial, CELLS, finished.out, workers=0)
    pd.testing.assert_frame_equal(finished.results, again)
    pd.testing.assert_frame_equal(kept(finished.out), again)


PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_grid import CELLS, trial
from ally.experiment import run_grid
if __name__ == "__main__":
    run_grid(trial, CELLS, Path({out!r}), workers={workers})
"""


def written(out):
    """Lines of all journals so far."""
    return sum(path.read_bytes().count(b"\n") for path in out.glob("cells/*.jsonl"))


@pytest.mark.long
@pytest.mark.parametrize("kills", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_same_numbers(tmp_path, undisturbed, kills):
    out, program = tmp_path / "out", tmp_path / "program.py"
    program.write_text(PROGRAM.format(here=str(Path(__file__).parent), out=str(out), workers=min(kills, 2)))
    rng = random.Random(0)
    done = 0
    while done < kills:
        process = subprocess.Popen([sys.executable, str(program)], start_new_session=True, stderr=subprocess.DEVNULL)
        goal = written(out) + rng.randint(1, 8)
        while process.poll() is None and written(out) < goal:
            time.sleep(rng.uniform(0.0, 0.02))
        if process.poll() is None:
            # Every second time only the first process is killed: its workers have to notice.
            (os.killpg if done % 2 else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
            assert ended(process.pid, 30), "workers outlive the process that started them"
            done += 1
        else:
            assert process.returncode == 0
            for path in (out / "cells").iterdir():
                lines = path.read_bytes().splitlines(keepends=True)
                path.write_bytes(b"".join(lines[: rng.randrange(1, len(lines))]) + b'{"record": {"dataset": "bl')
    assert written(out) > 0
    results = run_grid(trial, CELLS, out, workers=0)
    pd.testing.assert_frame_equal(untimed(results), undisturbed)


@pytest.mark.parametrize("left", [0, 1, 7, 60])
def test_a_torn_line_is_cut_off(tmp_path, left):
    done = list(campaign(trial("blobs"), cell()))
    journal = Journal(tmp_path / "cell.jsonl")
    with journal.writing({"strategy": "ally"}):
        journal.add(done[0])
        journal.add(done[1])
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:left])
    assert journal.rounds() == done[:2]
    with journal.writing({}):
        journal.add(done[2])
    assert journal.rounds() == done[:3]
    assert journal.settings == {"strategy": "ally"}


def test_a_damaged_line_is_an_error_that_names_the_file(tmp_path):
    journal = Journal(tmp_path / "cell.jsonl")
    journal.path.write_text('{"settings": {}}\nnot json\n')
    with pytest.raises(InputError, match=r"cell\.jsonl is damaged .*; delete it"):
        journal.rounds()


@pytest.mark.parametrize("strategy", ["ally", "badge", "random"])
@pytest.mark.parametrize("after", [1, 3])
def test_a_campaign_goes_on_to_the_same_numbers(strategy, after):
    whole = list(campaign(trial("blobs"), cell(strategy)))
    rest = list(campaign(trial("blobs"), cell(strategy), whole[:after]))
    assert [(done.record.value, done.record.labels, done.asked) for done in rest] == [
        (done.record.value, done.record.labels, done.asked) for done in whole[after:]
    ]


def test_more_rounds_continue_what_is_there(tmp_path, undisturbed):
    run_grid(trial, [("blobs", cell(rounds=2))], tmp_path, workers=0)
    longer = run_grid(trial, [("blobs", cell(rounds=4))], tmp_path, workers=0)
    direct = undisturbed.query("strategy == 'ally' and seed == 0").reset_index(drop=True)
    pd.testing.assert_frame_equal(untimed(longer), direct)
    assert len(list((tmp_path / "cells").iterdir())) == 1


def test_other_settings_are_other_cells(tmp_path):
    keys = {
        cell().key("a"),
        cell().key("b"),
        cell(seed=1).key("a"),
        cell("margin").key("a"),
        replace(cell(), batch=6).key("a"),
        replace(cell(), model="mlp").key("a"),
        replace(cell(), training=Training()).key("a"),
        replace(cell(), objective="erm").key("a"),
        replace(cell(), copies=Copies(2)).key("a"),
        replace(cell(), validation=5).key("a"),
        replace(cell(), hygiene=Hygiene()).key("a"),
        replace(cell(), hygiene=Hygiene("near")).key("a"),
    }
    assert len(keys) == 12
    assert cell(rounds=1).key("a") == cell(rounds=9).key("a")
    assert "/" not in cell(setting="a/b ..").key("../x")


def test_names_of_files_stay():
    """A folder of an earlier run goes on only while equal settings have equal names."""
    assert replace(cell("margin"), model="linear").key("a") == "a-margin-b5-s0-900cd81f3b"


def test_a_table_holds_what_was_asked_for(finished):
    less = run_grid(trial, [("blobs", cell("random", rounds=1))], finished.out, workers=0)
    assert (set(less["strategy"]), less["round"].tolist()) == ({"random"}, [0, 1])
    pd.testing.assert_frame_equal(kept(finished.out), less)
    assert len(collect(finished.out)) == len(finished.results) == 30


def test_campaigns_with_other_hygiene_are_refused(finished):
    with pytest.raises(InputError, match=r"the same campaign with hygiene=None; choose another folder"):
        run_grid(trial, [("blobs", cell("random", hygiene=Hygiene()))], finished.out, workers=0)


def test_one_failing_cell_leaves_the_others(tmp_path):
    cells = [("blobs", cell("random")), ("blobs", cell("entropy", rounds=99)), ("blobs", cell("margin"))]
    told = r"1 of 3 cells failed, the others are in .*: blobs-entropy.* labels are more than the pool of 120"
    with pytest.raises(CellsFailed, match=told):
        run_grid(trial, cells, tmp_path, workers=0)
    assert set(collect(tmp_path)["strategy"]) == {"random", "margin"}


def test_an_unknown_strategy_runs_nothing(tmp_path):
    with pytest.raises(UnknownName, match="unknown strategy 'nope'"):
        run_grid(trial, [("blobs", cell("random")), ("blobs", cell("nope"))], tmp_path, workers=0)
    assert not (tmp_path / "cells").exists()


def test_two_grids_in_one_folder(finished):
    script = f"""
import fcntl, time
file = open({str(finished.out / ".lock")!r}, "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process is running a grid in"):
            run_grid(trial, CELLS[:1], finished.out, workers=0)
    finally:
        process.kill()
        process.wait()
    assert len(run_grid(trial, CELLS[:1], finished.out, workers=0)) == 5


def test_a_learner_chosen_once_is_not_continued(tmp_path):
    """As it was before learners were chosen again: another file name, and a setting that says so."""
    one = replace(cell("random", rounds=0), model="auto", init=8)
    run_grid(trial, [("blobs", one)], tmp_path, workers=0)
    (path,) = (tmp_path / "cells").iterdir()
    first, rest = path.read_text().split("\n", 1)
    settings = json.loads(first)["settings"] | {"chooses_again": "False"}
    path.with_stem(f"{path.stem[:-10]}0123456789").write_text(json.dumps({"settings": settings}) + "\n" + rest)
    path.unlink()
    with pytest.raises(InputError, match="the same campaign with a learner chosen once, from its first labels"):
        run_grid(trial, [("blobs", one)], tmp_path, workers=0)


def test_other_data_under_the_same_name_is_refused(finished):
    with pytest.raises(
        InputError,
        match=r"holds blobs-ally.*, made when blobs had other data, labels or settings",
    ):
        run_grid(changed, CELLS[:1], finished.out, workers=0)


def test_other_settings_of_the_same_series_are_refused(finished):
    with pytest.raises(InputError, match=r"the same campaign with init=10; choose another folder"):
        run_grid(trial, [("blobs", replace(cell("random"), init=12))], finished.out, workers=0)
    assert len(list((finished.out / "cells").iterdir())) == len(CELLS)


def test_a_journal_may_be_read_while_it_is_written(tmp_path):
    done = list(campaign(trial("blobs"), cell()))
    journal = Journal(tmp_path / "cell.jsonl")
    with journal.writing({}):
        journal.add(done[0])
        line = journal.path.read_bytes().splitlines(keepends=True)[-1]
        with journal.path.open("ab") as file:
            for part in (line[:40], line[40:]):
                file.write(part)
                file.flush()
                assert journal.rounds() == done[:1]


def test_an_interrupt_ends_the_grid_at_once(tmp_path):
    """Ctrl-C while a worker is in the middle of a long campaign."""
    workers = []

    def press(_, done, __):
        if done and not workers:
            workers.extend(multiprocessing.active_children())
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_grid(trial, [("blobs", cell(rounds=20, epochs=100))], tmp_path, 1, press)
    assert len(workers) == 1
    assert not workers[0].is_alive()
    assert 0 < written(tmp_path) < 22


def test_progress_counts_rounds(finished_once):
    seen = finished_once.told
    assert seen[-1] == ("rounds", 30, 30)
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)


def test_validation_labels_are_counted_and_never_asked():
    validated = list(campaign(trial("blobs"), cell("margin", validation=20)))
    assert [done.record.labels for done in validated] == [30, 35, 40, 45, 50]
    assert {done.record.validation_labels for done in validated} == {20}
    plain = list(campaign(trial("blobs"), cell("margin")))
    asked = {row for done in validated for row in done.asked}
    assert len(asked) == 20
    assert plain[0].record.labels == 10


def test_campaigns_that_follow_another_train_on_its_labels():
    lead = list(campaign(trial("blobs"), cell("entropy")))
    own = list(campaign(trial("blobs"), cell("entropy", asks_as="entropy")))
    assert [(done.record.value, done.asked) for done in own] == [(done.record.value, done.asked) for done in lead]
    other = cell("entropy", objective="feasibility", asks_as="entropy")
    followed = list(campaign(trial("blobs"), other))
    assert [done.asked for done in followed] == [done.asked for done in lead]
    assert {done.record.objective for done in followed} == {"feasibility"}
    rest = list(campaign(trial("blobs"), other, followed[:2]))
    assert [(done.record.value, done.asked) for done in rest] == [
        (done.record.value, done.asked) for done in followed[2:]
    ]


def test_copies():
    data = trial("blobs")
    copied = Copies(3)(data, Streams(0))
    assert copied.pool.shape == (360, data.pool.shape[1])
    assert (copied.pool[::3] == copied.pool[2::3]).all()
    assert (copied.pool_labels[1::3] == data.pool_labels).all()
    near = Copies(3, noise=0.1, of=40)(data, Streams(0))
    assert near.pool.shape[0] == 120
    difference = near.pool[1::3] - near.pool[::3]
    assert 0.05 < (difference / near.pool[::3].std(axis=0)).std() < 0.2
    assert len(copied.test_labels) == len(data.test_labels)


def test_settings_of_a_cell_are_on_record(finished_once):
    settings = json.loads(next((finished_once.out / "cells").glob("blobs-ally-*")).read_text().splitlines()[0])[
        "settings"
    ]
    assert settings["dataset"] == "blobs"
    assert settings["composition"].startswith("Strategy(score=DualByTask(")
    assert {"ally", "torch", "training", "seed"} <= set(settings)


def ended(session, seconds):
    """Whether all processes of a session end in time."""
    limit = time.monotonic() + seconds
    while _group(session) and time.monotonic() < limit:
        time.sleep(0.05)
    return not _group(session)


def _group(session):
    """Processes of a session that still run."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True
