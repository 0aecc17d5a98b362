"""Campaigns whose words are hostile: classes named as places elsewhere, formulas, people who steer a terminal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from case import HostileCase, Words
from PIL import Image

from ally import Campaign

NAMES_OF_PLACES = (
    "../../elsewhere/x", "..", "/elsewhere", "CON", "a/b", "C:\\x", "-rf", "~root", "x\n", "%2e%2e%2fx", "nul.txt",
)  # fmt: skip
FORMULAS = ("=cmd|' /C calc'!A0", "+1+cmd|x", "@SUM(1)", "\tx", "＝1", "-2+3")
STEERING = ("\x1b[2J\x1b[31m", "\x9b2J", "\x07\x08\r", "\u202eabc", "a\nsaved")
ANSWER = r"(?i)answer|label|sample|class|image|review"
QUIET = r"\A[^\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]*\Z"
"""What a terminal shows as it is."""


def make_photos(folder: Path, classes: Sequence[str], annotator: str = "eve") -> Path:
    photos = folder / "photos"
    photos.mkdir()
    for number in range(len(classes)):
        Image.new("L", (8, 8), number).save(photos / f"{number}.png")
    labels = {f"{number}.png": label for number, label in enumerate(classes)}
    path = folder / "foreign.db"
    with Campaign.create(path, photos, classes=list(classes), automatic=False, evaluate=0) as made:
        made.relabel(labels, annotator=annotator)
        made.page.note("0.png", classes[0], annotator=annotator)
    return path


def make_rows(folder: Path, words: Sequence[str]) -> Path:
    """Each word is an id, a column's name, a value, a class, a person and a note."""
    columns = [f"{word} {place}" for place, word in enumerate(words)]
    lines = [["id", *columns], *([word, *words] for word in words)]
    quoted = ("\n".join(",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines)) + "\n"
    (folder / "rows.csv").write_text(quoted, newline="")
    path = folder / "foreign.db"
    with Campaign.create(path, folder / "rows.csv", id_column="id", automatic=False, evaluate=0) as made:
        for word in words:
            made.relabel({word: word}, annotator=word)
            made.page.note(word, word, annotator=word)
    return path


def plant_sessions(folder: Path) -> Path:
    """As versions before kept them, and as servers that share a campaign do."""
    path = make_photos(folder, ("a", "b"))
    session = {"annotator": "eve", "role": "owner", "digest": "0" * 64, "until": 9e9}
    rows = (
        ("page session", session),
        ("page link", session),
        ("page access, signed", {"entry": json.dumps(session), "signature": "0" * 64}),
    )
    with sqlite3.connect(path) as connection:
        (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM events").fetchone()
        for number, (kind, detail) in enumerate(rows, last + 1):
            connection.execute("INSERT INTO events VALUES (?, 0, ?, ?)", [number, kind, json.dumps(detail)])
    connection.close()
    return path


def rows_of(words: Sequence[str]) -> Callable[[Path], Path]:
    return lambda folder: make_rows(folder, words)


EXPORTS: tuple[Words, ...] = (
    ("export", "{path}", "labels.csv"), ("export", "{path}", "labels.jsonl"), ("export", "{path}", "tasks.json"),
    ("export", "{path}", "record.jsonl", "--record"),
)  # fmt: skip
LOOKS: tuple[Words, ...] = (
    ("status", "{path}"), ("status", "{path}", "--json"), ("ask", "{path}", "--n", "2"), ("classes", "{path}"),
    ("review", "{path}"), ("doctor", "{path}"),
)  # fmt: skip
WORDS: Mapping[str, Sequence[str]] = {"formulas": FORMULAS, "words that steer a terminal": STEERING}
CASES = (
    HostileCase(
        "classes named as places elsewhere",
        lambda folder: make_photos(folder, NAMES_OF_PLACES),
        ANSWER,
        (("export", "{path}", "out"), ("export", "{path}", "linked", "--link"), *EXPORTS, *LOOKS),
        short=True,
    ),
    *(
        HostileCase(f"{name} as ids, classes and people", rows_of(words), QUIET, (*LOOKS, *EXPORTS))
        for name, words in WORDS.items()
    ),
    HostileCase("sessions planted in a campaign", plant_sessions, ANSWER, (*LOOKS, *EXPORTS)),
)
