"""What a campaign of somebody else may do: nothing but what its user on this machine allowed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ally import Campaign
from ally.campaign import permissions
from ally.campaign.permissions import RestrictedWarning
from ally.data.fingerprint import ENCODED
from ally.errors import InputError, NotTrusted, StateUnavailable, StoreDamaged
from ally.state import find_state_folder, load_key, open_state_folder

OWN = """
import pathlib
pathlib.Path({marker!r}).touch()

def trees():
    from sklearn.ensemble import ExtraTreesClassifier
    return ExtraTreesClassifier(5, random_state=0)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of two groups, a module that leaves a marker when it is imported, and a fresh state."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "state"))
    rng = np.random.default_rng(0)
    lines = [f"s{n},{rng.normal(3 * (n % 2)):.3f},{rng.normal():.3f}" for n in range(40)]
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "rows.csv").write_text("id,x,z\n" + "\n".join(lines))
    name = f"own_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / f"{name}.py").write_text(OWN.format(marker=str(tmp_path / "imported")))
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'modules'}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.chdir(tmp_path / "work")
    yield tmp_path
    sys.modules.pop(name, None)


@pytest.fixture
def foreign(here: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a campaign whose settings somebody else wrote, with ten labels; this user has allowed nothing."""

    def make(name: str = "pets.db", **settings: Any) -> Path:
        place = here / "work" / name
        with Campaign.create(place, "rows.csv", automatic=False, evaluate=0, batch=5) as campaign:
            campaign.relabel({f"s{n}": "ab"[n % 2] for n in range(10)})
            campaign.revoke_trust()
        rewrite(place, lambda kept: kept | settings)
        return place

    return make


@pytest.fixture(autouse=True)
def nothing_granted() -> Iterator[None]:
    before = set(permissions._granted)
    yield
    permissions._granted.clear()
    permissions._granted.update(before)


def rewrite(place: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Changes the settings in a file behind the library's back."""
    with sqlite3.connect(place) as connection:
        kept = json.loads(connection.execute("SELECT settings FROM campaign").fetchone()[0])
        connection.execute("UPDATE campaign SET settings = ?", [json.dumps(change(kept))])
    connection.close()


def open_restricted(place: str | Path, *source: Any, match: str = "restricted: ") -> Campaign:
    with pytest.warns(RestrictedWarning, match=match):
        return Campaign.open(place, *source)


def own_model(here: Path) -> str:
    return f"own_of_{here.name.replace('-', '_')}:trees"


def test_settings_of_this_user_need_no_question(here):
    (here / "elsewhere").mkdir()
    shutil.move("rows.csv", here / "elsewhere" / "rows.csv")
    with Campaign.create("pets.db", here / "elsewhere" / "rows.csv", model=own_model(here), automatic=False):
        pass
    permissions._granted.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        campaign = Campaign.open("pets.db")
    with campaign:
        assert campaign.permissions() == []
        assert campaign.settings.model == own_model(here)
        assert campaign.show("s1").columns["x"]
        campaign.change(engine="ray://cluster:10001")
    permissions._granted.clear()
    with Campaign.open("pets.db") as campaign:
        assert campaign.settings.engine == "ray://cluster:10001"


def test_code_that_a_foreign_file_names_is_not_run(here, foreign):
    place = foreign(model=own_model(here), engine="ray://192.0.2.1:10001")
    with open_restricted(place, match=r"restricted: model='own_of.*:trees', engine='ray://.* are ignored") as campaign:
        assert [one.name for one in campaign.permissions()] == ["model", "engine"]
        assert (campaign.settings.model, campaign.settings.engine) == ("auto", "local")
        campaign.change(model="linear")
        assert campaign.retrain() == 1
        assert campaign.status().training_state == "done"
        query = campaign.ask(3)
        campaign.tell(query.id, dict.fromkeys(query.ids, "a"))
        assert campaign.export("labels.csv") == 13
    assert not (here / "imported").exists()


def test_a_training_in_the_background_is_restricted_too(here, foreign):
    place = foreign(model=own_model(here))
    with open_restricted(place) as campaign:
        campaign.retrain(wait=False)
        end = time.monotonic() + 120
        while not campaign.training.has_model and time.monotonic() < end:
            time.sleep(0.1)
        assert campaign.training.has_model
    assert not (here / "imported").exists()


def test_what_is_allowed_once_is_allowed_from_now_on(here, foreign):
    place = foreign(model=own_model(here))
    with Campaign.open(place, trust=True) as campaign:
        assert campaign.settings.model == own_model(here)
    permissions._granted.clear()
    with Campaign.open(place) as campaign:
        assert campaign.permissions() == []
        campaign.retrain()
    assert (here / "imported").exists()
    # Another value, and the same value in another campaign, are other questions.
    rewrite(place, lambda kept: kept | {"model": "os:abort"})
    open_restricted(place, match="os:abort").close()
    other = foreign("other.db", model=own_model(here))
    open_restricted(other, match="own_of").close()
    with Campaign.open(place, trust=True) as campaign:
        campaign.revoke_trust()
        assert [one.value for one in campaign.permissions()] == ["os:abort"]


def test_a_model_that_is_stored_in_the_file_is_a_question_too(here, foreign):
    from sklearn.linear_model import LogisticRegression

    with Campaign.create("mine.db", "rows.csv", model=LogisticRegression(), automatic=False) as campaign:
        stored = campaign.settings.model
    place = foreign(model=stored)
    with open_restricted(place, match="model='skops,.*… ") as campaign:
        assert campaign.settings.model == "auto"


@pytest.mark.parametrize("way", ["absolute", "above", "link"])
def test_a_source_outside_the_folder_is_not_read(here, foreign, way):
    secret = here / "secret.csv"
    shutil.copy("rows.csv", secret)
    place = foreign()
    named = {"absolute": str(secret), "above": "../secret.csv", "link": "linked.csv"}[way]
    if way == "link":
        Path("linked.csv").symlink_to(secret)
    rewrite(place, lambda kept: kept | {"place": named})
    with open_restricted(place, match=r"source='.*secret\.csv' is ignored") as campaign:
        assert len(campaign.ask(3).ids) == 3
        assert "not read until you allow it" in campaign.status().source
        with pytest.raises(NotTrusted, match=r"source='.*secret\.csv' lies outside its folder .*`ally trust NAME`"):
            campaign.show("s1")
        assert "cannot be opened" in campaign.check()[0]
        campaign.trust()
        assert campaign.show("s1").columns["x"]
    permissions._granted.clear()
    rewrite(place, lambda kept: kept | {"place": "rows.csv"})
    with Campaign.open(place) as campaign:
        assert campaign.permissions() == []


def test_a_source_that_the_user_names_is_read(here, foreign):
    shutil.copy("rows.csv", here / "moved.csv")
    place = foreign()
    rewrite(place, lambda kept: kept | {"place": "/nowhere/rows.csv"})
    with open_restricted(place, here / "moved.csv") as campaign:
        assert campaign.show("s1").columns["x"]
        campaign.source.move(here / "moved.csv")
    permissions._granted.clear()
    with Campaign.open(place) as campaign:
        assert campaign.show("s1").columns["x"]


@pytest.mark.parametrize("option", ["embeddings", "folder", "ids"])
def test_files_of_the_source_outside_the_folder_are_not_read(here, foreign, option):
    np.save(here / "vectors.npy", np.zeros((40, 2)))
    place = foreign()
    rewrite(place, lambda kept: kept | {"options": {option: str(here / "vectors.npy")}})
    with (
        open_restricted(place, match=rf"{option}='.*vectors\.npy'") as campaign,
        pytest.raises(NotTrusted, match=option),
    ):
        campaign.show("s1")


def test_an_encoder_that_a_file_names_is_not_fetched(here, foreign, monkeypatch):
    def fetch(name: str) -> Path:
        raise AssertionError(f"{name} would be fetched")

    monkeypatch.setattr("ally.data.encoders.opening.fetched_folder", fetch)
    Path("texts.csv").write_text("id,text\n" + "\n".join(f"s{n},{'cat purrs' * (n % 2)} {n}" for n in range(40)))
    with Campaign.create("texts.db", "texts.csv", automatic=False, evaluate=0) as campaign:
        campaign.relabel({f"s{n}": "ab"[n % 2] for n in range(10)})
    encoded = {"name": "somebody/model", "identity": "x", "width": 384, "words": True}
    rewrite(here / "work" / "texts.db", lambda kept: kept | {"fingerprint": kept["fingerprint"] | {"encoded": encoded}})
    with open_restricted("texts.db", match="encoder='somebody/model' is ignored") as campaign:
        campaign.change(model="linear")
        campaign.retrain()
        assert campaign.training.has_model
        campaign.trust()
    with Campaign.open("texts.db") as campaign, pytest.raises(AssertionError, match="would be fetched"):
        campaign.retrain()


def test_an_encoder_that_a_model_file_names_is_not_fetched(here, monkeypatch):
    from ally.data import open_source
    from ally.data.encoders.choosing import encoded_again

    Path("texts.csv").write_text("id,text\n" + "\n".join(f"s{n},{'cat purrs' * (n % 2)} {n}" for n in range(40)))
    fingerprint = {"encoded": {"name": "somebody/model", "identity": "x", "width": 384}}
    samples = encoded_again(open_source("texts.csv"), fingerprint, None, None, None)
    with pytest.raises(NotTrusted, match="'somebody/model', which is not on this machine, and a file never fetches"):
        samples.features(["s1"]).read(np.arange(1))


def test_a_folder_that_has_the_name_of_an_encoder_is_not_loaded(here):
    from ally.data.encoders.opening import open_installed

    Path("somebody").mkdir()
    Path("somebody/model").mkdir()
    Path("somebody/model/config.json").write_text("{}")
    with pytest.raises(NotTrusted, match="is not on this machine"):
        open_installed("somebody/model", "text")


def test_the_command_asks_and_remembers(here, foreign, command):
    place = foreign(model="some\x1b[2Jthing:build")
    done = command("status", "pets", cwd=place.parent)
    assert done.returncode == 0
    assert "restricted: model='some\\x1b[2Jthing:build' is ignored until you allow it: ally trust pets" in done.stderr
    done = command("trust", "pets", cwd=place.parent, stdin="n\n")
    assert (done.returncode, "nothing was allowed" in done.stderr) == (2, True)
    assert "\x1b" not in done.stdout
    assert "model = 'some\\x1b[2Jthing:build'" in done.stdout
    assert "which runs code" in done.stdout
    assert command("trust", "pets", cwd=place.parent, stdin="").returncode == 2
    listed = json.loads(command("trust", "pets", "--json", cwd=place.parent).stdout)
    assert listed == [{"setting": "model", "value": "some\x1b[2Jthing:build", "act": "runs code"}]
    assert json.loads(command("status", "pets", "--json", cwd=place.parent).stdout)["restricted"]
    assert command("trust", "pets", cwd=place.parent, stdin="y\n").returncode == 0
    permissions._granted.clear()
    assert "restricted" not in command("status", "pets", cwd=place.parent).stderr
    assert "asks for nothing" in command("trust", "pets", cwd=place.parent).stdout
    assert "nothing is allowed any more" in command("trust", "pets", "--revoke", cwd=place.parent).stdout
    assert "restricted" in command("status", "pets", cwd=place.parent).stderr
    assert command("trust", "pets", "--yes", cwd=place.parent).returncode == 0


def test_without_a_state_folder_campaigns_open_restricted_and_say_why(here, monkeypatch):
    monkeypatch.setenv("ALLY_STATE", "/dev/null/state")
    with pytest.warns(UserWarning, match="cannot be used .* until then the campaign opens restricted elsewhere"):
        campaign = Campaign.create("pets.db", "rows.csv", engine="ray", automatic=False)
    with campaign:
        assert campaign.settings.engine == "ray"
    permissions._granted.clear()
    open_restricted("pets.db", match="is ignored because the folder for your decisions, /dev/null/state").close()
    with pytest.raises(StateUnavailable, match="set ALLY_STATE to a folder of yours"):
        Campaign.open("pets.db", trust=True)


def test_a_state_folder_that_others_can_write_to_decides_nothing(here, foreign):
    place = foreign(engine="ray")
    Campaign.open(place, trust=True).close()
    permissions._granted.clear()
    find_state_folder().chmod(0o777)
    open_restricted(place, match="others can write to the folder for your decisions").close()


def test_without_a_home_no_folder_here_decides(here, foreign, monkeypatch):
    place = foreign(engine="ray")
    monkeypatch.setenv("ALLY_STATE", str(place.parent / "~" / ".local" / "state" / "ally"))
    Campaign.open(place, trust=True).close()
    permissions._granted.clear()
    for variable in ("ALLY_STATE", "ALLY_CACHE", "HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", dict[int, Any]().__getitem__)
    with open_restricted(place, match="because there is no home folder here; set ALLY_STATE") as campaign:
        assert campaign.source.cache is None
        assert len(campaign.ask(2).ids) == 2


def test_another_model_in_the_folder_of_an_encoder_is_asked_about(here, foreign):
    with Campaign.open(foreign()) as campaign:
        about = {"name": "mine", "folder": "mine", "identity": "text 0123 mean 128 tokens", "width": 8}
        asked = [
            permissions.needed_permissions(replace(campaign.settings, fingerprint={ENCODED: made}), here / "work")
            for made in (about, {**about, "identity": "text 4567 mean 128 tokens"})
        ]
    assert [len(one) for one in asked] == [1, 1]
    assert asked[0][0].key != asked[1][0].key
    assert asked[0][0].value == "mine (text 0123 mean 128 tokens)"


def test_a_link_to_a_campaign_brings_no_source_of_its_own(here, foreign):
    place = foreign()
    (here / "theirs").mkdir()
    (here / "theirs" / "pets.db").symlink_to(place)
    (here / "theirs" / "rows.csv").write_text("id,x,z\nplanted,1,2\n")
    with Campaign.open(here / "theirs" / "pets.db") as campaign:
        assert campaign.source.samples.missing(["s1", "planted"]) == ["planted"]
        assert not campaign.permissions()


def test_only_what_was_shown_is_allowed(here, foreign):
    place = foreign(engine="ray")
    with open_restricted(place) as campaign:
        shown = campaign.permissions()
        campaign._store.change_settings(lambda kept: {**kept, "engine": "ray://elsewhere:1"})
        assert campaign.trust(shown) == shown
        assert [one.value for one in campaign.permissions()] == ["ray://elsewhere:1"]


def test_the_state_folder_must_not_depend_on_the_current_one(monkeypatch):
    monkeypatch.setenv("ALLY_STATE", "state")
    with pytest.raises(InputError, match="depends on the current folder; give an absolute path"):
        open_state_folder()


def test_a_decision_in_the_wrong_file_counts_for_nothing(here, foreign):
    place = foreign(engine="ray")
    with Campaign.open(place, trust=True) as campaign:
        (file,) = open_state_folder("trusted", campaign.id).iterdir()
    file.write_text(json.dumps({"setting": "engine", "value": "ray://other"}))
    permissions._granted.clear()
    open_restricted(place).close()
    file.write_bytes(b"\xff{")
    open_restricted(place).close()


def test_a_key_is_made_once_and_is_private(here):
    key = load_key("page")
    assert (len(key), load_key("page")) == (32, key)
    assert load_key("other") != key
    assert (find_state_folder() / "page").stat().st_mode & 0o777 == 0o600
    code = "from ally.state import load_key; print(load_key('page').hex())"
    both = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert {done.stdout.strip() for done in both} == {key.hex()}


def test_postgresql_follows_the_same_rule(here, new_database):
    url = new_database()
    with Campaign.create(url, here / "work" / "rows.csv", automatic=False, engine="ray", model="linear") as campaign:
        id = campaign.id
    permissions._granted.clear()
    with Campaign.open(url) as campaign:
        assert campaign.permissions() == []
        campaign.revoke_trust()
    open_restricted(url, match="engine='ray', source='.*rows.csv' are ignored").close()
    with Campaign.open(url, trust=True) as campaign:
        assert (campaign.id, campaign.permissions()) == (id, [])


DAMAGED = {
    "batch is a text": {"batch": "many"},
    "batch is huge": {"batch": 10**400},
    "batch is true": {"batch": True},
    "a lease that is not a number": {"lease_seconds": float("nan")},
    "an unknown setting": {"hook": "x"},
    "classes are a text": {"classes": "ab"},
    "a class is a list": {"classes": [["a"], "b"]},
    "a class is empty": {"classes": ["", "b"]},
    "threads by the million": {"threads": 10**6},
    "a task that is none": {"task": "regress"},
    "a place that is a number": {"place": 5},
    "options are a list": {"options": []},
    "an unknown option": {"options": {"loader": "os:system"}},
    "images of a million pixels a side": {"options": {"size": 10**6}},
    "a column kind that is none": {"options": {"columns": {"x": "code"}}},
    "a fingerprint that is a text": {"fingerprint": "x"},
    "a fingerprint without its parts": {"fingerprint": {"version": 1, "kind": "table", "from": "rows"}},
    "an encoder without a width": {"fingerprint": {"encoded": {"name": "a", "identity": "b"}}},
    "an encoder of endless width": {"fingerprint": {"encoded": {"name": "a", "identity": "b", "width": 10**12}}},
    "a layout with a list as id": {"fingerprint": {"layout": {"columns": ["id"], "id": ["x"]}}},
    "a mean that is none": {"fingerprint": {"encoder": [{"name": "x", "mean": "0", "marked": False}]}},
    "samples of a terabyte": {"fingerprint": {"version": 1, "kind": "features", "from": "array", "shape": [2**40]}},
}


@pytest.mark.parametrize("changes", DAMAGED.values(), ids=DAMAGED)
def test_damaged_settings_are_named(foreign, command, changes):
    place = foreign()

    def damage(kept: dict[str, Any]) -> dict[str, Any]:
        fingerprint = changes.get("fingerprint")
        whole = not isinstance(fingerprint, dict) or "version" in fingerprint
        return kept | changes | ({} if whole else {"fingerprint": kept["fingerprint"] | fingerprint})

    rewrite(place, damage)
    with pytest.raises(StoreDamaged, match="damaged"):
        Campaign.open(place)
    done = command("status", place)
    assert (done.returncode, "damaged" in done.stderr) == (2, True)


def test_words_that_unpack_to_gigabytes_are_refused(here):
    import base64
    import zlib

    from ally.data.text import WordWeights
    from ally.errors import DataError

    bomb = base64.b64encode(zlib.compress(bytes(2**26), 9)).decode()
    with pytest.raises(DataError, match="more than 4194304 numbers"):
        WordWeights.from_json({"steps": bomb, "idf": bomb})
    for steps in ([5, 0], [-1, 3], [1, 2**30]):
        kept = {"steps": np.asarray(steps, "<i4"), "idf": np.ones(2, "<f4")}
        packed = {name: base64.b64encode(zlib.compress(values.tobytes())).decode() for name, values in kept.items()}
        with pytest.raises(DataError, match="damaged"):
            WordWeights.from_json(packed)
