"""Where the rows of a long file are is kept on disk, and used only for the file it was made of."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ally.data import open_source
from ally.data.tables.samples import RowSamples

WORTH = 500
PLACES = (0, 1, WORTH // 2, WORTH - 1)


@pytest.fixture(autouse=True)
def shorter_files_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ally.data.identity.WORTH", WORTH)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "t.csv", WORTH)


def write(path: Path, rows: int, first: int = 0) -> Path:
    path.write_text("id,x\n" + "".join(f"row {row},{row + first}\n" for row in range(rows)))
    return path


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("cache/*"))


def opened(table: Path) -> Any:
    return open_source(table, cache=table.parent / "cache")


def shown(samples: Any) -> list[Any]:
    return [samples.show(f"row {row}").columns["x"] for row in PLACES]


@pytest.fixture
def no_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(*_: Any, **__: Any) -> Iterator[Any]:
        raise AssertionError("the file was walked through")

    monkeypatch.setattr(RowSamples, "_walk", walk)


@pytest.fixture
def scanned(table: Path) -> Path:
    assert len(list(opened(table).scan())) == WORTH
    assert len(kept(table.parent)) == 1
    return table


@pytest.mark.usefixtures("scanned", "no_walks")
def test_a_second_program_need_not_walk_through_the_file(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(opened(table)) == [str(row) for row in PLACES]
    monkeypatch.chdir(table.parent)
    assert shown(open_source("t.csv", cache="cache")) == [str(row) for row in PLACES]
    assert opened(table).missing(["row 3", "row x"]) == ["row x"]


def test_a_changed_file_is_walked_through_again(scanned: Path) -> None:
    before = kept(scanned.parent)
    write(scanned, WORTH, first=7)
    assert shown(opened(scanned)) == [str(row + 7) for row in PLACES]
    after = kept(scanned.parent)
    assert len(after) == 1, "the places of the earlier file are still there"
    assert after != before


def test_ids_of_another_column_are_not_taken_from_it(scanned: Path) -> None:
    samples = open_source(scanned, id_column="x", cache=scanned.parent / "cache")
    assert samples.missing(["5", "row 5"]) == ["row 5"]


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "huge", "archive"])
def test_a_damaged_file_is_passed_over(scanned: Path, damage: str) -> None:
    (file,) = kept(scanned.parent)
    whole = file.read_bytes()
    archive = io.BytesIO()
    np.savez(archive, a=1)
    damaged = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "other": whole.replace(b"<u8", b"<f8", 1),
        "huge": whole.replace(b"(2, 500)", b"(2, 5000000000000)", 1),
        "archive": archive.getvalue(),
    }
    file.write_bytes(damaged[damage])
    assert shown(opened(scanned)) == [str(row) for row in PLACES]
    assert file.read_bytes() == whole


def test_an_unwritable_cache_is_not_needed(table: Path) -> None:
    (table.parent / "cache").write_text("a file where the folder should be")
    assert shown(opened(table)) == [str(row) for row in PLACES]


def test_a_short_file_leaves_nothing_behind(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", 100)
    assert len(list(opened(table).scan())) == 100
    assert not kept(tmp_path)
