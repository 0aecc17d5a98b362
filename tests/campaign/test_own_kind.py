"""A campaign over a kind of data of a user's own: other processes find it, and a file of somebody else runs nothing."""

import dataclasses
import importlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from ally import Campaign
from ally.campaign import permissions
from ally.campaign.permissions import RestrictedWarning
from ally.campaign.training import worker
from ally.campaign.training.predict import predict
from ally.data import KINDS, register_kind
from ally.errors import InputError, NotTrusted, StoreDamaged
from ally.learning.trained import Trained

EXAMPLES = Path(__file__).parents[2] / "examples"
SETTINGS = {"automatic": False, "evaluate": 0, "batch": 12, "model": "linear"}


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A folder of modules that every process finds."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "state"))
    before = set(permissions._granted)
    yield folder
    permissions._granted.clear()
    permissions._granted.update(before)


@pytest.fixture
def clips(tmp_path, modules):
    """The example as a module of a name of its own, which leaves a mark where it is imported, and a folder of clips."""
    name = f"clips_{tmp_path.name.replace('-', '_')}"
    text = (EXAMPLES / "sound_clips.py").read_text(encoding="utf-8")
    mark = f"Path({str(tmp_path / 'imported')!r}).touch()\n"
    (modules / f"{name}.py").write_text(text.replace("RATE, WINDOW", f"{mark}RATE, WINDOW", 1), encoding="utf-8")
    module = importlib.import_module(name)
    truth = module.write_clips(tmp_path / "clips", 36)
    yield module, truth
    del sys.modules[name]
    KINDS.remove("sounds")


def label_some(campaign, truth, n=12):
    query = campaign.ask(n)
    campaign.tell(query, {id: truth[id] for id in query.ids})


def test_it_is_recognised_kept_and_found_by_the_worker(tmp_path, clips):
    module, truth = clips
    with Campaign.create(tmp_path / "clips.db", tmp_path / "clips", **SETTINGS) as campaign:
        assert campaign.source.samples.kind is module.SOUNDS
        assert campaign.settings.options == {"kind": f"{module.__name__}:SOUNDS"}
        label_some(campaign, truth)
        (tmp_path / "imported").unlink()
        campaign.retrain(wait=False)
        assert worker._children[str(tmp_path / "clips.db")].wait(120) == 0
        assert (tmp_path / "imported").exists(), "the worker is a process of its own"
        assert campaign.status().training_error is None
        found = campaign.predict()
        right = [truth[id] == label for id, label in zip(found["id"], found["label"], strict=True)]
        assert sum(right) / len(right) > 0.8
        module.write_clips(tmp_path / "others", 6)
        assert len(campaign.predict(tmp_path / "others")) == 6
        assert campaign.source.rescan().added == 0
    shutil.move(tmp_path / "clips", tmp_path / "moved")
    with Campaign.open(tmp_path / "clips.db") as campaign:
        assert len(campaign.predict(tmp_path / "others")) == 6, "to predict others, the source need not be there"
        campaign.training.model().write(tmp_path / "m.safetensors")
    trained = Trained.read(str(tmp_path / "m.safetensors"))
    assert len(predict(trained, tmp_path / "others", {"kind": module.SOUNDS})) == 6
    with pytest.raises(InputError, match="the kind 'sounds' of its user's own"):
        predict(trained, tmp_path / "others", {})


def test_a_kind_of_the_program_itself_is_passed_again(tmp_path, clips, monkeypatch):
    module, truth = clips
    monkeypatch.setattr(module.SoundClips, "__module__", "__main__")
    with Campaign.create(tmp_path / "clips.db", tmp_path / "clips", kind=module.SOUNDS, **SETTINGS) as campaign:
        assert campaign.settings.options == {"kind": None}
        assert campaign.source.elsewhere() is None
    with (
        Campaign.open(tmp_path / "clips.db") as campaign,
        pytest.raises(InputError, match="the kind of the campaign's source lived in memory"),
    ):
        campaign.show("000.wav")
    with Campaign.open(tmp_path / "clips.db", kind=module.SOUNDS) as campaign:
        label_some(campaign, truth)
        campaign.retrain()
        assert campaign.show("000.wav").picture


def change_options(place, **options):
    with sqlite3.connect(place) as connection:
        kept = json.loads(connection.execute("SELECT settings FROM campaign").fetchone()[0])
        kept["options"] |= options
        connection.execute("UPDATE campaign SET settings = ?", [json.dumps(kept)])
    connection.close()


READ = """
import sys, warnings
from ally import Campaign
from ally.errors import NotTrusted
with warnings.catch_warnings(record=True) as met:
    warnings.simplefilter("always")
    campaign = Campaign.open(sys.argv[1])
print("restricted:", *[line.message for line in met if "kind=" in str(line.message)])
campaign.status(); campaign.ask(2); list(campaign.answers.all()); campaign.export(sys.argv[1] + ".csv")
for call in (lambda: campaign.show("000.wav"), lambda: campaign.source.rescan(), campaign.retrain):
    try:
        call()
    except NotTrusted as error:
        print("refused:", error)
print(any("clips_" in name for name in sys.modules))
"""


def test_a_file_of_somebody_else_runs_nothing_by_naming_a_kind(tmp_path, clips):
    module, truth = clips
    place = tmp_path / "clips.db"
    with Campaign.create(place, tmp_path / "clips", **SETTINGS) as campaign:
        label_some(campaign, truth)
    (tmp_path / "imported").unlink()

    def read(state):
        run = [sys.executable, "-c", READ, str(place)]
        return subprocess.run(run, env={**os.environ, "ALLY_STATE": str(state)}, capture_output=True, text=True).stdout

    said = read(tmp_path / "other user")
    assert said.startswith(f"restricted: restricted: kind='{module.__name__}:SOUNDS' is ignored until you allow it")
    assert said.count("refused: the campaign's kind=") == 3
    assert said.endswith("False\n")
    assert not (tmp_path / "imported").exists()
    mine = read(tmp_path / "state")
    assert "refused" not in mine
    assert mine.endswith("True\n")


def test_only_what_was_allowed_and_nothing_registered_is_taken_for_it(tmp_path, clips):
    """Neither another path, nor the plain name of a kind that this program happens to have registered."""
    module, _ = clips
    place = tmp_path / "clips.db"
    with Campaign.create(place, tmp_path / "clips", **SETTINGS):
        pass
    register_kind(dataclasses.replace(module.SOUNDS))
    for kind in ("sounds", f"{module.__name__}:register_kind", "os:system"):
        change_options(place, kind=kind)
        with pytest.warns(RestrictedWarning, match=f"kind='{kind}' is ignored"):
            campaign = Campaign.open(place)
        with campaign, pytest.raises(NotTrusted, match="names code"):
            campaign.show("000.wav")
    with pytest.warns(RestrictedWarning):
        campaign = Campaign.open(place, kind=module.SOUNDS)
    with campaign:
        assert campaign.show("000.wav").picture, "what the user says at the call needs no permission"
    change_options(place, kind=["sounds"])
    with pytest.raises(StoreDamaged, match="kind"):
        Campaign.open(place)


def test_trust_shows_the_kind_and_allows_it(tmp_path, clips):
    module, _ = clips
    place = tmp_path / "clips.db"
    with Campaign.create(place, tmp_path / "clips", **SETTINGS) as campaign:
        campaign.revoke_trust()
        (asked,) = campaign.permissions()
        assert (asked.name, asked.act) == ("kind", "runs code")
        campaign.trust([asked])
    with Campaign.open(place) as campaign:
        assert campaign.source.samples.kind is module.SOUNDS


def test_ours_need_no_permission(tmp_path, modules):
    (tmp_path / "rows.csv").write_text("id,x\n" + "\n".join(f"s{n},{n}" for n in range(6)), encoding="utf-8")
    with Campaign.create(tmp_path / "c.db", tmp_path / "rows.csv", kind="table", **SETTINGS) as campaign:
        assert campaign.settings.options == {"kind": "table"}
        campaign.revoke_trust()
        assert campaign.permissions() == []
        assert campaign.source.samples.kind.name == "table"
