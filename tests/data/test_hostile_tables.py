"""Tables and arrays that lie: refused before they take memory, and honest ones read as before."""

import gzip
import io
import zipfile
from datetime import date, datetime, time

import numpy as np
import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from ally.data.arrays.array_files import map_array, open_arrays
from ally.data.json_files import read_json
from ally.data.tables import BadRow, Row, open_rows
from ally.data.tables.workbook import read_first_sheet
from ally.errors import DataError, InputError
from ally.experiment.journal import Journal
from ally.files import open_in_place


def test_a_workbook_reads_as_openpyxl_reads_it(tmp_path):
    book = Workbook()
    sheet = book.active
    rich = CellRichText("plain ", TextBlock(InlineFont(b=True), "bold"))
    for row in (
        ["text", "whole", "part", "day", "moment", "hour", "truth", "rich"],
        ["a & <b>", 3, 2.5, date(2024, 2, 29), datetime(2024, 1, 2, 3, 4, 5), time(6, 7), True, rich],
        [None, -1, 1e300, None, None, None, False, None],
        ["=1+1", None, None, None, None, None, None, "ü"],
    ):
        sheet.append(row)
    sheet["Z9"] = "far"
    book.save(tmp_path / "t.xlsx")
    lines = load_workbook(tmp_path / "t.xlsx", read_only=True, data_only=True).worksheets[0].iter_rows(values_only=True)
    expected = [{n: value for n, value in enumerate(line) if value is not None} for line in lines]
    assert read_first_sheet(tmp_path / "t.xlsx") == [row for row in expected if row]


def test_a_document_type_is_refused(tmp_path):
    book, data = Workbook(), io.BytesIO()
    book.active.append(["id"])
    book.save(data)
    with zipfile.ZipFile(data) as archive, zipfile.ZipFile(tmp_path / "t.xlsx", "w") as out:
        for name in archive.namelist():
            head = b"<!DOCTYPE a [<!ENTITY x 'y'>]>" if name.endswith("sheet1.xml") else b""
            out.writestr(name, head + archive.read(name))
    with pytest.raises(DataError, match="declares a document type"):
        open_rows(tmp_path / "t.xlsx")


def test_an_array_must_be_as_long_as_it_says(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    np.testing.assert_array_equal(map_array(tmp_path / "a.npy"), np.ones((3, 2)))
    data = (tmp_path / "a.npy").read_bytes()
    for odd, words in (
        (data[:-1], "48 bytes of numbers and there are 47"),
        (data + b"\0", "there are 49"),
        (data.replace(b"(3, 2)", b"(9, 0)"), "claims the shape"),
        (data.replace(b"'<f8'", b"'<U0'"), "not numbers"),
    ):
        (tmp_path / "b.npy").write_bytes(odd)
        with pytest.raises(DataError, match=words):
            map_array(tmp_path / "b.npy")


def test_an_archive_has_a_limit_that_a_variable_raises(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 100)))
    monkeypatch.setenv("ALLY_FILE_GB", "0.0001")
    with open_arrays(tmp_path / "a.npz") as arrays, pytest.raises(DataError, match="set ALLY_FILE_GB"):
        arrays.read("X")
    monkeypatch.setenv("ALLY_FILE_GB", "0.1")
    with open_arrays(tmp_path / "a.npz") as arrays:
        assert arrays.read("X").shape == (1000, 100)
    monkeypatch.setenv("ALLY_FILE_GB", "much")
    with open_arrays(tmp_path / "a.npz") as arrays, pytest.raises(InputError, match="not a number of GiB"):
        arrays.read("X")


def test_quotes_that_are_never_closed_end(tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n" + 'x","\n' * 200_000)
    with pytest.raises(DataError, match="never closed"):
        list(open_rows(tmp_path / "a.csv").scan())
    (tmp_path / "b.csv").write_text('id,x\na,"1\nb,2\nc,3\n')
    found = list(open_rows(tmp_path / "b.csv").scan())
    assert [type(row) for row in found] == [BadRow, Row, Row]


@pytest.mark.parametrize(("name", "head"), [("a.csv", "id,x\n"), ("a.jsonl", '{"id": "s", "x": 1}\n')])
def test_what_is_no_table_is_refused_before_each_row_is_reported(tmp_path, name, head):
    (tmp_path / name).write_text(head + "y\n" * 100_001)
    with pytest.raises(DataError, match=r"100001 of the first 10000. rows of .* cannot be read, such as line 10000"):
        list(open_rows(tmp_path / name).scan())
    (tmp_path / name).write_text(head + "y\n" * 100_000)
    assert len(list(open_rows(tmp_path / name).scan())) >= 100_000


def test_a_small_packed_table_of_many_rows_is_refused_at_once(tmp_path, monkeypatch):
    rows = b"id,x\n" + b"s,1\n" * 2**22
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(rows + bytes(16)))
    with pytest.raises(DataError, match="unpacks to more than 16 MiB; at most 16 MiB are read: if you trust it"):
        open_rows(tmp_path / "a.csv.gz")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(rows[:10_000])[:-20])
    with pytest.raises(DataError, match=r"is damaged .*; compress it again"):
        open_rows(tmp_path / "b.csv.gz")
    monkeypatch.setenv("ALLY_FILE_GB", "0.1")
    assert open_rows(tmp_path / "a.csv.gz").columns == ("id", "x")


def test_many_empty_objects_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ALLY_FILE_GB", "0.001")
    (tmp_path / "a.json").write_text("[" + "{}," * 10_000 + "{}]")
    with pytest.raises(DataError, match="unpacks to"):
        read_json(tmp_path / "a.json", "utf-8", "")


def test_a_link_in_a_run_folder_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("precious")
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="is a link"):
        open_in_place(tmp_path / "a.jsonl", 0)
    with pytest.raises(InputError, match="is a link"), Journal(tmp_path / "a.jsonl").writing({}):
        pass
    assert (tmp_path / "mine").read_text() == "precious"


@pytest.mark.parametrize("line", ["1", '{"settings": []}', "[" * 10**5])
def test_a_journal_in_another_form_is_damaged(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(f"{line}\n")
    with pytest.raises(InputError, match="damaged"):
        _ = Journal(tmp_path / "a.jsonl").settings
