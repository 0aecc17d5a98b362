"""Campaigns that 0.1.0 made open and work; what they ask for beyond the harmless waits for their user, once."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ally
from ally.campaign.permissions import RestrictedWarning

KEPT = Path(__file__).parent / "made_by_0_1_0" / "campaigns.zip"
PLAIN = ("texts.db", "rows.db", "photos.db")
PRIVILEGED = "apart/models.db"


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALLY_STATE", str(tmp_path / "state"))
    with zipfile.ZipFile(KEPT) as kept:
        kept.extractall(tmp_path)
    return tmp_path


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ally", *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.filterwarnings("ignore:.*was upgraded:UserWarning")
def test_a_campaign_opens_and_works(old: Path, name: str) -> None:
    with sqlite3.connect(old / name) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0003",)
    connection.close()
    with ally.Campaign.open(old / name) as campaign:
        status = campaign.status()
        assert (status.samples, status.labels, status.skipped) == (24, 12, 1)
        assert campaign.settings.classes == ("cat", "dog")
        assert campaign.check() == campaign.permissions() == []
        waiting = campaign.query(2)
        told = campaign.tell(waiting, dict.fromkeys(waiting.ids, "cat"), annotator="ben")
        assert told.labelled == 3
        shown = campaign.show(waiting.ids[0])
        assert shown.text or shown.columns or shown.path
        assert campaign.ask(2, annotator="ann").samples
        campaign.change(model="linear")
        campaign.retrain()
        assert len(campaign.predict()) == 9
        campaign.review()
        assert campaign.export(old / "labels.csv") == 16
        assert campaign.classes.rename("cat", "kitten").said
    with ally.Campaign.open(old / name) as campaign:
        assert campaign.settings.classes == ("kitten", "dog")


def test_commands_open_it_too(old: Path) -> None:
    assert "texts.db: classification of texts.csv" in run(old, "status", "texts")
    assert run(old, "ask", "texts", "--n", "2").count("\nt") >= 2
    assert "everything works" in run(old, "doctor", "texts")
    run(old, "review", "texts")
    run(old, "export", "texts", "labels.csv")


@pytest.mark.filterwarnings("ignore:.*was upgraded:UserWarning")
def test_a_privileged_setting_waits_until_it_is_allowed_once(old: Path) -> None:
    with pytest.warns(RestrictedWarning, match="restricted: model=.*source="):
        campaign = ally.Campaign.open(old / PRIVILEGED)
    with campaign:
        assert [one.name for one in campaign.permissions()] == ["model", "source"]
        assert campaign.settings.model == "auto"
        status = campaign.status()
        assert (status.labels, status.skipped) == (12, 1)
        assert campaign.export(old / "labels.csv") == 13
        assert len(campaign.trust()) == 2
        campaign.source.move(old / "elsewhere" / "rows.csv")
    with ally.Campaign.open(old / PRIVILEGED) as campaign:
        assert campaign.permissions() == []
        assert campaign.settings.model == "sklearn.linear_model:LogisticRegression"
        campaign.retrain()
        assert len(campaign.predict()) == 12
    # A copy is the same campaign.
    shutil.copy(old / PRIVILEGED, old / "apart" / "copy.db")
    with ally.Campaign.open(old / "apart" / "copy.db") as campaign:
        assert campaign.permissions() == []
