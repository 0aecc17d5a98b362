"""`ally doctor`: the machine, a campaign in good health, and campaigns that are not."""

import json
import resource
import sqlite3

import pytest

import ally
from ally.cli import doctor


@pytest.fixture
def run(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0):
        ended, out, err = command("doctor", *words)
        assert ended == code, (out, err)
        return out, err

    return call


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    ally.Campaign.create(tmp_path / "notes.db", tmp_path / "notes.txt", automatic=False).close()
    return tmp_path / "notes.db"


def test_the_machine(run, monkeypatch, tmp_path):
    monkeypatch.setenv("ALLY_DATA", str(tmp_path))
    (tmp_path / "text" / "sst2").mkdir(parents=True)
    for side in ("train", "test"):
        (tmp_path / "text" / "sst2" / f"{side}.tsv").write_text("sentence\tlabel\ngood\t1\nbad\t0\n")
    out, _ = run("--json")
    found = {finding["what"]: finding["found"] for finding in json.loads(out)["findings"]}
    assert json.loads(out)["good"]
    assert found["ally"] == ally.__version__
    assert sqlite3.sqlite_version in found["SQLite"]
    assert found["data"].endswith("1 data set (sst2)")
    assert found["a query"].startswith("3 samples chosen in ")
    assert found["a campaign"].startswith("12 labels given, 1 model trained in ")
    assert {"Python", "torch", "devices", "memory", *doctor.PARTS} <= set(found)


def test_an_unwritable_folder_is_reported(run, tmp_path, monkeypatch):
    monkeypatch.chdir("/proc")
    assert not (found := doctor._disk()).good
    assert found.found.startswith("/proc is not writable (")


def test_a_full_disk_is_reported(run):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # no file may grow beyond this: as if there were no room
    try:
        found = doctor._disk()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (found.good, "is not writable" in found.found) == (False, True)
    assert doctor._disk().good


def test_missing_extras_and_failures_are_reported(run, monkeypatch):
    monkeypatch.setattr(doctor, "PARTS", {"no_such_part": "does nothing: pip install no-such-part"})

    def fail():
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(doctor, "_try_campaign", fail)
    out, _ = run(code=2)
    assert "not installed; does nothing: pip install no-such-part" in out
    assert "WRONG: RuntimeError: the disk is on fire" in out
    assert out.endswith("1 problem found\n")


def test_a_healthy_campaign_and_its_backup(run, campaign):
    out, _ = run("notes")
    assert "notes.db: 3 samples, 0 labels" in out
    assert "store and source are fine" in out
    assert "none; `ally doctor notes.db --backup` makes one" in out
    assert out.endswith("everything works\n")
    assert "backup-0001" in run("notes", "--backup")[0]
    assert "1 file, the newest notes.db.backup-0001" in run("notes")[0]
    assert "3 samples" in run("notes.db.backup-0001")[0]


def test_a_campaign_without_its_source(run, campaign, tmp_path):
    (tmp_path / "notes.txt").rename(tmp_path / "moved.txt")
    out, _ = run("notes", code=2)
    assert "WRONG: the source cannot be opened" in out
    run("notes", "--from", "moved.txt")


@pytest.mark.parametrize("backup", [False, True])
def test_a_damaged_campaign(run, campaign, backup):
    if backup:
        run("notes", "--backup")
    campaign.write_bytes(campaign.read_bytes()[:5000])
    out, err = run("notes", code=2)
    assert "WRONG: " in out
    assert "is damaged or not a campaign" in out
    assert ("continue with a copy of a backup: cp notes.db.backup-0001 restored.db" in out) == backup
    assert "Traceback" not in err


def test_bad_calls(run):
    assert "there is no campaign pets.db; create it: ally new pets --from FOLDER" in run("pets", code=2)[1]
    assert "--backup needs the name of a campaign" in run("--backup", code=2)[1]


def test_only_whole_backups_count(run, tmp_path):
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    place = tmp_path / "my [notes].db"
    ally.Campaign.create(place, tmp_path / "notes.txt", automatic=False).close()
    for _ in range(2):
        run("my [notes]", "--backup")
    (tmp_path / "my [notes].db.backup-0002").rename(tmp_path / "my [notes].db.backup-10000")
    for odd in ("0001-turn", "10000.building-17", "10000-journal", "new"):
        (tmp_path / f"my [notes].db.backup-{odd}").touch()
    assert "2 files, the newest my [notes].db.backup-10000 of" in run("my [notes]")[0]
    place.write_bytes(place.read_bytes()[:5000])
    assert "cp 'my [notes].db.backup-10000' restored.db" in run("my [notes]", code=2)[0]
