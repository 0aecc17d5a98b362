"""What docs/sources.md shows, run from top to bottom."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ally.cli import main
from ally.data import KINDS
from ally.data.tables.columns import MOST_CATEGORIES
from ally.data.tables.lines import LONGEST_LINE
from ally.data.text import FEATURES

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")


def test_the_examples_run(photos, monkeypatch, capsys):
    monkeypatch.chdir(photos.parent)
    (photos / "broken.jpg").write_bytes(b"")
    (photos.parent / "signals").mkdir()
    for number in range(3):
        (photos.parent / "signals" / f"{number}.sig").write_bytes(bytes(range(number, number + 16)))
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "docs/sources.md", "exec"), names)
    assert capsys.readouterr().out == "broken.jpg: unreadable: the file is empty\n"
    assert (photos.parent / "by-class/cat/cat/1.jpg").is_file()
    assert names["samples"].show("cat/1.jpg").mime == "image/jpeg"
    assert KINDS["signals"] is names["SIGNALS"]
    KINDS.remove("signals")


def test_numbers_on_the_page_match_the_code():
    assert f"the {FEATURES} most common words" in PAGE
    assert f"more than {MOST_CATEGORIES} values" in PAGE
    assert LONGEST_LINE == 16 * 2**20


def pictures(folder, names=("a.png", "b.jpg", "c.webp", "d.avif", "e.jfif")):
    rng = np.random.default_rng(0)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(folder / name)


def damaged(here):
    pictures(here / "photos", ("good.png", "bad.png"))
    data = bytearray((here / "photos" / "bad.png").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (here / "photos" / "bad.png").write_bytes(bytes(data))
    (here / "photos" / "raw.CR2").write_bytes(b"raw")


def news(here):
    rows = [
        f"n{n},the {'cat purrs' if n % 2 else 'dog barks'} in street {n} for quite a while,{'pets' if n < 5 else ''}"
        for n in range(20)
    ]
    (here / "news.csv").write_text("\n".join(["article_id,body,label", *rows]))


HOMES = pd.DataFrame(
    {
        "id": [f"h{n}" for n in range(20)],
        "size": [n + 0.5 for n in range(20)],
        "kind": ["house" if n % 2 else "flat" for n in range(20)],
    }
)


def table(here, name="homes.csv", frame=HOMES, **options):
    frame.to_csv(here / name, **{"index": False, **options})


def trial(here, labels):
    table(here, "trial.csv", HOMES.assign(label=labels))


INPUTS = {
    "photos in a folder: PNG, JPEG, JFIF, WebP, AVIF": lambda here: pictures(here / "photos"),
    "photos in folders by class": lambda here: pictures(
        here / "photos", ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png")
    ),
    "photos, one damaged, one raw": damaged,
    "texts, one a line": lambda here: (here / "notes.txt").write_text("one\ntwo\nthree\n"),
    "texts with an id and a label column": news,
    "a table with missing values and a category": lambda here: table(
        here, frame=HOMES.assign(size=HOMES["size"].where(HOMES.index > 1))
    ),
    "a table with a column `outcome`": lambda here: table(here, "trial.csv", HOMES.assign(outcome="good")),
    "a table with one column that is mostly empty": lambda here: table(
        here, frame=HOMES.assign(price=HOMES["size"].where(HOMES.index < 5))
    ),
    "texts, and a column with few values that is mostly empty": lambda here: table(
        here,
        "tickets.csv",
        pd.DataFrame(
            {
                "text": [f"The lift in house {row} is stuck again." for row in range(20)],
                "Department": [["lifts", "keys"][row % 2] if row < 6 else None for row in range(20)],
            }
        ),
    ),
    "a table whose labels are measurements": lambda here: table(here, "prices.csv", HOMES.assign(target=HOMES["size"])),
    "semicolons and decimal commas": lambda here: table(here, sep=";", decimal=","),
    "tabs in a file called `.csv`": lambda here: table(here, sep="\t"),
    "a table without a header": lambda here: table(here, header=False),
    "the same, and you do not say so": lambda here: table(here, header=False),
    "a spreadsheet": lambda here: HOMES.to_excel(here / "homes.xlsx", index=False),
    "Parquet": lambda here: HOMES.to_parquet(here / "homes.parquet"),
    "JSON lines": lambda here: HOMES.to_json(here / "homes.jsonl", orient="records", lines=True),
    "an array of features": lambda here: np.save(here / "X.npy", np.arange(8.0).reshape(4, 2)),
    "features with their ids and labels": lambda here: np.savez(
        here / "X.npz", X=np.arange(8.0).reshape(4, 2), ids=list("abcd"), y=["u", "v", "", ""]
    ),
    "labels with -1 for none": lambda here: trial(here, [n % 2 if n < 5 else -1 for n in range(20)]),
    "the same, and you say so": lambda here: trial(here, [n % 2 if n < 5 else -1 for n in range(20)]),
    "photos, and you want ids only": lambda here: pictures(here / "photos"),
    "several labels in one cell": lambda here: trial(here, ["cat", "dog", "cat;dog", "dog"] * 5),
    "images in an array, channels last": lambda here: np.save(here / "X.npy", np.zeros((4, 16, 16, 3), np.uint8)),
    "texts and a vector for each": lambda here: (
        (here / "notes.txt").write_text("one\ntwo\nthree\n"),
        np.save(here / "V.npy", np.arange(6.0).reshape(3, 2)),
    ),
}
LINES = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in PAGE.split("<!-- inputs -->")[1].split("<!-- end of inputs -->")[0].strip().splitlines()[2:]
]


def test_the_table_of_inputs_lists_what_is_tried():
    assert {line[0].strip("| ") for line in LINES[:-1]} == set(INPUTS)


@pytest.mark.parametrize("line", LINES[:-1], ids=lambda line: line[0].strip("| "))
def test_what_you_have_and_what_happens(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALLY_ENCODER", "none")
    monkeypatch.setenv("COLUMNS", "300")
    INPUTS[line[0].strip("| ")](tmp_path)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("sys.argv", shlex.split(line[1].strip("` ")))
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    said = "".join(capsys.readouterr())
    assert code == (2 if "exit 2" in line[2] else 0), said
    for quoted in re.findall(r"`([^`]+)`", line[2]):
        assert quoted in said, (quoted, said)
    assert sorted(tmp_path.rglob("*")) == before, "a dry run makes nothing"
