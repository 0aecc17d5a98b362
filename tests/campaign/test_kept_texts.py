"""Every text that a campaign keeps is valid Unicode without NUL, and not too long."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import ally
from ally.errors import AllyError, StoreDamaged

ODD = ["half\ud83d", "a\x00b", "x" * 100_000]


def make(path: Path, **chosen: object) -> ally.Campaign:
    return ally.Campaign.create(
        path, np.random.default_rng(0).normal(size=(30, 3)), evaluate=0, automatic=False, **chosen
    )


@pytest.mark.parametrize("odd", ODD, ids=["surrogate", "NUL", "long"])
def test_a_text_that_cannot_be_kept_is_refused_everywhere(tmp_path: Path, odd: str) -> None:
    with make(tmp_path / "a.db", classes=["a", "b"]) as campaign, make(tmp_path / "b.db") as open_classes:
        tries = [
            lambda: campaign.change(classes=["a", "b", odd]),
            lambda: campaign.change(strategy=odd),
            lambda: campaign.change(model=odd),
            lambda: campaign.classes.add([odd]),
            lambda: campaign.classes.rename("a", odd),
            lambda: campaign.ask(2, annotator=odd),
            lambda: campaign.ask(2, key=odd),
            lambda: campaign.relabel({"1": odd}),
            lambda: campaign.relabel({odd: "a"}),
            lambda: campaign.relabel({"1": "a"}, annotator=odd),
            lambda: campaign.relabel({"1": "a"}, key=odd),
            lambda: open_classes.relabel({"1": odd}),
            lambda: open_classes.relabel({"1": odd}, add_classes=True),
            lambda: campaign.page.note("1", odd, annotator="ann"),
            lambda: campaign.page.note("1", "fine", annotator=odd),
            lambda: campaign.page.note("1", "fine", key=odd),
        ]
        for attempt in tries:
            with pytest.raises(AllyError):
                attempt()
        assert campaign.settings.classes == ("a", "b")
        assert campaign.labels() == open_classes.labels() == campaign.page.notes() == {}


@pytest.mark.parametrize("odd", ODD[:2], ids=["surrogate", "NUL"])
def test_a_file_that_holds_such_a_class_says_so(tmp_path: Path, odd: str) -> None:
    make(tmp_path / "a.db", classes=["a", "b"]).close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        (text,) = connection.execute("SELECT settings FROM campaign").fetchone()
        changed = json.dumps({**json.loads(text), "classes": ["a", odd]})
        connection.execute("UPDATE campaign SET settings = ?", [changed])
    connection.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    for name in ("a.db", "copy.db"):
        with pytest.raises(StoreDamaged, match="classes"):
            ally.Campaign.open(tmp_path / name)


@pytest.mark.parametrize("label", ['["a"]', "{}", '"half\\ud83d"', "1e999", "NaN", "not json", "null", '"a\\u0000"'])
def test_a_file_with_a_label_that_is_none_is_refused(tmp_path: Path, label: str) -> None:
    with make(tmp_path / "a.db", classes=["a", "b"]) as campaign:
        campaign.relabel({"1": "a", "2": "b"})
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE answers SET value = ? WHERE number = 2", [label])
    connection.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    with pytest.raises(StoreDamaged, match=r"a label on record|is not JSON|are not JSON"):
        ally.Campaign.open(tmp_path / "copy.db")
