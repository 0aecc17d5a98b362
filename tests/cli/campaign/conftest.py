"""Commands run in this process as the program runs them, in a folder of their own; small data to label."""

import csv
import io
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image, ImageDraw


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self):
        return list(csv.DictReader(io.StringIO(self.out)))


@pytest.fixture
def ally(command, monkeypatch, tmp_path):
    """``ally("ask", "pets", "--n", 3)``; it must succeed unless `code` says otherwise."""
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0, stdin=None):
        done = Done(*command(*words, stdin=stdin))
        assert done.code == code, done
        assert "Traceback" not in done.err
        return done

    return run


def draw(path, shape, rng):
    """A filled disc or square somewhere on a dark ground."""
    pixels = Image.new("RGB", (32, 32), (20, 20, 20))
    x, y = rng.integers(4, 12, size=2).tolist()
    box = (x, y, x + 14, y + 14)
    pen = ImageDraw.Draw(pixels)
    colour = tuple(rng.integers(150, 255, size=3).tolist())
    (pen.ellipse if shape == "disc" else pen.rectangle)(box, fill=colour)
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels.save(path)


@pytest.fixture
def photos(tmp_path):
    """40 images in photos/; their classes by id."""
    rng = np.random.default_rng(0)
    truth = {f"{shape}s/{n:02}.png": shape for n in range(20) for shape in ("disc", "square")}
    for id, shape in truth.items():
        draw(tmp_path / "photos" / id, shape, rng)
    return truth


@pytest.fixture(scope="session")
def write_table():
    """Writes table.csv to a folder: 60 rows with numbers, a category and a known answer; the answers by id."""

    def write(folder):
        X = np.random.default_rng(1).normal(size=(60, 3))
        truth = {f"r{row:02}": "high" if X[row, 0] > 0 else "low" for row in range(60)}
        with (folder / "table.csv").open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["id", "a", "b", "c", "town", "verdict", "size"])
            for (id, label), values in zip(truth.items(), X.round(4).tolist(), strict=True):
                lines.writerow([id, *values, "Ulm" if values[1] > 0 else "Bonn", label, round(10 * values[0] + 50, 3)])
        return truth

    return write


@pytest.fixture
def table(tmp_path, write_table):
    return write_table(tmp_path)


COLUMNS = ("--column", "a", "--column", "b=number", "--column", "town=category")


@pytest.fixture
def rows(ally, table):
    """A campaign over the table: rows.db, answers by id."""
    ally(
        "new",
        "rows",
        "--from",
        "table.csv",
        "--classes",
        "low,high",
        *COLUMNS,
        "--batch",
        10,
        "--strategy",
        "margin",
        "--model",
        "linear",
        "--by-hand",
    )
    return table


@pytest.fixture
def fill():
    """Writes labels into the column label of a file that `ally ask --out` wrote, as a person would; its ids."""

    def write(path, truth, rows=None):
        with open(path, newline="") as file:
            lines = list(csv.DictReader(file))
        for line in lines[:rows]:
            line["label"] = truth[line["id"]]
        with open(path, "w", newline="") as file:
            sheet = csv.DictWriter(file, lines[0])
            sheet.writeheader()
            sheet.writerows(lines)
        return [line["id"] for line in lines]

    return write


@pytest.fixture
def labelled(ally, rows, fill):
    """Three queries of the campaign rows.db are answered and a model is trained."""
    for _ in range(3):
        ally("ask", "rows", "--out", "next.csv")
        fill("next.csv", rows)
        ally("tell", "rows", "next.csv")
    ally("retrain", "rows")
    return rows
