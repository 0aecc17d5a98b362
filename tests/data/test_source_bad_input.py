"""Real-world bad files: each case says what was found, and nothing else is lost."""

import io
import math
import os
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from ally.data import check_answers, open_source, read_answers, write_answers, write_image_folder
from ally.data.export import Answer
from ally.errors import AllyError, DataError, IdError, InputError, LabelError, MissingPart

GOOD = "id,x\na,1\nb,2\n"


def png(width: int, height: int) -> bytes:
    """A PNG file that claims this size and has no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def csv(text: str | bytes):
    def write(folder: Path) -> Path:
        path = folder / "t.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def jsonl(text: str):
    def write(folder: Path) -> Path:
        path = folder / "t.jsonl"
        path.write_text(text)
        return path

    return write


def image(name: str, content: bytes):
    """A folder with one good image and a bad one."""

    def write(folder: Path) -> Path:
        photos = folder / "photos"
        photos.mkdir()
        Image.new("RGB", (20, 20), "red").save(photos / "good.jpg")
        (photos / name).write_bytes(content)
        return photos

    return write


def truncated_jpeg() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(out, "JPEG")
    return out.getvalue()[: len(out.getvalue()) // 2]


def image_paths(*names: str):
    def write(folder: Path) -> Path:
        Image.new("RGB", (20, 20), "red").save(folder / "good.jpg")
        path = folder / "list.csv"
        path.write_text("id,file\na,good.jpg\n" + "".join(f"bad{number},{name}\n" for number, name in enumerate(names)))
        return path

    return write


BAD_SAMPLES = {
    # name: (what is written, settings, good ids, id of the problem, kind, words of its reason)
    "corrupt image": (
        image("bad.jpg", b"not an image at all"),
        {},
        ["good.jpg"],
        "bad.jpg",
        "unreadable",
        "cannot identify image",
    ),
    "truncated jpeg": (image("bad.jpg", truncated_jpeg()), {}, ["good.jpg"], "bad.jpg", "unreadable", "truncated"),
    "decompression bomb": (
        image("bad.png", png(60_000, 60_000)),
        {},
        ["good.jpg"],
        "bad.png",
        "unreadable",
        "decompression bomb",
    ),
    "large bomb by warning": (
        image("bad.png", png(10_000, 10_000)),
        {},
        ["good.jpg"],
        "bad.png",
        "unreadable",
        "decompression bomb",
    ),
    "zero bytes": (image("bad.jpg", b""), {}, ["good.jpg"], "bad.jpg", "unreadable", "the file is empty"),
    "traversal": (image_paths("../../etc/passwd.jpg"), {"image": "file"}, ["a"], "bad0", "unreadable", "without '..'"),
    "no image ending": (
        image_paths("../../etc/passwd"),
        {"image": "file"},
        ["a"],
        "bad0",
        "unreadable",
        "not the name of an image",
    ),
    "absolute path": (
        image_paths("/etc/x.jpg"),
        {"image": "file"},
        ["a"],
        "bad0",
        "unreadable",
        "relative to that folder",
    ),
    "backslashes": (image_paths("..\\x.jpg"), {"image": "file"}, ["a"], "bad0", "unreadable", "backslashes"),
    "missing file": (image_paths("gone.jpg"), {"image": "file"}, ["a"], "bad0", "unreadable", "is missing"),
    "no path": (image_paths(""), {"image": "file"}, ["a"], "bad0", "unreadable", "'' is not the name of an image"),
    "duplicate ids": (
        csv(GOOD + "a,3\n"),
        {"id_column": "id"},
        ["a", "b"],
        "a",
        "duplicate",
        "line 4 repeats an earlier id",
    ),
    "empty id": (csv(GOOD + ",3\n"), {"id_column": "id"}, ["a", "b"], "line 4", "unreadable", "the id is empty"),
    "over-long id": (csv(GOOD + "i" * 2000 + ",3\n"), {}, ["a", "b"], "line 4", "unreadable", "2000 characters"),
    "over-long cell": (
        csv(GOOD + "c," + "9" * 200_000 + "\n"),
        {},
        ["a", "b"],
        "line 4",
        "unreadable",
        "field larger than field limit",
    ),
    "over-long row": (
        csv(GOOD + "c" + ",9" * 2**23 + "\nd,1\n"),
        {},
        ["a", "b", "d"],
        "line 4",
        "unreadable",
        "longer than 16777216",
    ),
    "too many fields": (
        csv(GOOD + "c,3,4\nd,5\n"),
        {},
        ["a", "b", "d"],
        "line 4",
        "unreadable",
        "3 fields and the header 2",
    ),
    "too few fields": (
        csv(GOOD + "c\nd,5\n"),
        {},
        ["a", "b", "d"],
        "line 4",
        "unreadable",
        "1 fields and the header 2",
    ),
    "quote in a quoted field": (
        csv(GOOD + 'c,"3"4\nd,5\n'),
        {},
        ["a", "b", "d"],
        "line 4",
        "unreadable",
        "cannot be split",
    ),
    "broken JSON line": (
        jsonl('{"id": "a", "x": 1}\n{"id": "b"\n{"id": "c"}\n'),
        {},
        ["a", "c"],
        "line 2",
        "unreadable",
        "not JSON",
    ),
    "JSON line of another kind": (
        jsonl('{"id": "a", "x": 1}\n[1, 2]\n'),
        {},
        ["a"],
        "line 2",
        "unreadable",
        "holds a list",
    ),
    "no text": (csv("id,text\na,hello\nb,\n"), {}, ["a"], "b", "unreadable", "line 3 has no text"),
}


@pytest.mark.parametrize("case", BAD_SAMPLES)
def test_a_bad_sample_is_reported_and_the_others_are_there(tmp_path, case):
    write, settings, good, id, kind, reason = BAD_SAMPLES[case]
    samples = open_source(write(tmp_path), **settings)
    assert [sample.id for sample in samples.scan()] == good
    (problem,) = samples.problems
    assert (problem.id, problem.kind) == (id, kind)
    assert reason in problem.reason
    assert len(samples.features(good).read(np.arange(len(good)))) == len(good)


BAD_VALUES = {
    "infinity": ("inf", "holds inf; it counts as missing"),
    "minus infinity": ("-Infinity", "holds -inf; it counts as missing"),
    "text among numbers": ("many", "holds 'many', not a number"),
    "a number that overflows": ("1e999", "holds inf"),
    "digits with underscores": ("1_000", "holds '1_000', not a number"),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_a_bad_value_counts_as_missing(tmp_path, case):
    written, reason = BAD_VALUES[case]
    path = csv("id,x\n" + "".join(f"{number},{number}\n" for number in range(20)) + f"bad,{written}\n")(tmp_path)
    samples = open_source(path)
    ids = [sample.id for sample in samples.scan()]
    assert ids[-1] == "bad"
    values = samples.features(ids).read(np.arange(21))
    np.testing.assert_array_equal(values[-1], [9.5, 1])
    (problem,) = samples.problems
    assert (problem.id, problem.kind) == ("bad", "value")
    assert reason in problem.reason


UNUSABLE = {
    # name: (what is written, settings, error, words of its message)
    "not UTF-8": (
        csv("id,name\n1,Orléans\n".encode("cp1252")),
        {},
        DataError,
        r"line 2 of .*0xe9 at 6; save it as UTF-8.*such as cp1252",
    ),
    "UTF-16": (csv("id,x\n1,2\n".encode("utf-16")), {}, DataError, "seems to be utf-16: convert it to UTF-8"),
    "encoding that is an error": (csv(GOOD), {"encoding": "undefined"}, InputError, "encoding='undefined' is unknown"),
    "unknown encoding": (csv(GOOD), {"encoding": "klingon"}, InputError, "encoding='klingon' is unknown"),
    "empty file": (csv(""), {}, DataError, "is empty; give a file with samples"),
    "blank file": (csv("\n\n"), {}, DataError, "the header of .* cannot be read"),
    "header only": (csv("id,x\n"), {"columns": ["x"]}, DataError, "it has a header only"),
    "missing column": (
        csv(GOOD),
        {"id_column": "nope"},
        InputError,
        r"no column 'nope' \(id_column\); its columns are id, x",
    ),
    "repeated column": (csv("id,x,x\n1,2,3\n"), {}, DataError, "the column 'x' more than once"),
    "text and image": (
        csv(GOOD),
        {"text": "x", "image": "x"},
        InputError,
        "a text column 'x' and an image column 'x' are given",
    ),
    "odd kind of column": (csv(GOOD), {"columns": {"x": "date"}}, InputError, "'date' is not a kind of column"),
    "no JSON at all": (jsonl("hello\nworld\n"), {}, DataError, "holds no JSON object .*line 1"),
    "all rows bad": (
        csv("id,x\n,1\n,2\n"),
        {"id_column": "id"},
        DataError,
        "no sample that can be read .*2 are unreadable",
    ),
    "only images that cannot be read": (
        image_paths("../x.jpg"),
        {"image": "id"},
        DataError,
        "no sample that can be read",
    ),
    "an ending that is not known": (lambda folder: folder / "conftest.xyz", {}, DataError, "does not exist"),
    "ids for a table": (
        csv(GOOD),
        {"ids": ["a"]},
        InputError,
        "ids= belongs to an array",
    ),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_source_that_cannot_be_used(tmp_path, case):
    write, settings, error, words = UNUSABLE[case]
    path = write(tmp_path)
    with pytest.raises(error, match=words):
        list(open_source(path, **settings).scan())


def test_the_encoding_that_the_message_names_works(tmp_path):
    path = csv("id,town\n1,Orléans\n2,Nîmes\n".encode("cp1252"))(tmp_path)
    assert open_source(path, encoding="cp1252").show("1").columns["town"] == "Orléans"


def test_a_table_without_features_says_what_to_do(tmp_path):
    path = csv("id,words\n" + "".join(f"{number},text number {number}\n" for number in range(9)))(tmp_path)
    samples = open_source(path)
    assert len(list(samples.scan())) == 9
    with pytest.raises(
        DataError,
        match=r"no usable feature column .*'words' is left out.*name a text, image or feature column",
    ):
        samples.fingerprint()


def test_mixed_types_become_categories(tmp_path):
    path = csv("id,x\n" + "".join(f"{number},{'1' if number % 2 else 'one'}\n" for number in range(8)))(tmp_path)
    samples = open_source(path)
    assert samples.features(["0"]).shape == (2,)
    assert any("4 numbers and 4 texts: all count as categories" in note for note in samples.notes)


def test_object_arrays_are_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "sprung"), "w")

    np.save(tmp_path / "X.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="without objects"):
        open_source(tmp_path / "X.npy")
    assert not (tmp_path / "sprung").exists()


def test_arrays_that_do_not_fit(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((3, 2)))
    (tmp_path / "ids.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match="3 rows and there are 2 ids"):
        open_source(tmp_path / "X.npy", ids=tmp_path / "ids.txt")
    with pytest.raises(InputError, match="one row per sample"):
        open_source(np.zeros(3))
    with pytest.raises(InputError, match=r"0 sample\(s\)"):
        open_source(np.zeros((0, 3)))
    with pytest.raises(DataError, match=r"no sample that can be read .*holds inf in feature 1"):
        list(open_source(np.array([[1.0, math.inf]])).scan())


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"id": ["a"], "x": [1]}).to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPart, match=r"pip install 'ally-learn\[parquet\]'"):
        open_source(path)
    with pytest.raises(MissingPart, match="pyarrow"):
        write_answers(tmp_path / "labels.parquet", {"a": 1})


def test_a_file_that_is_not_parquet(tmp_path):
    (tmp_path / "t.parquet").write_text("id,x\n")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        open_source(tmp_path / "t.parquet")


def test_a_folder_named_like_an_image(photos):
    (photos / "album.jpg").mkdir()
    Image.new("RGB", (20, 20)).save(photos / "album.jpg" / "in.png")
    samples = open_source(photos)
    assert "album.jpg/in.png" in {sample.id for sample in samples.scan()}
    assert samples.problems.of("album.jpg")[0].reason == "it is a folder that is named like an image"
    with pytest.raises(IdError, match="is a folder"):
        samples.show("album.jpg")


def test_files_without_permission(ordinary_user, make_image):
    folder, become = ordinary_user
    make_image(folder / "good.jpg")
    make_image(folder / "secret.jpg").chmod(0)
    make_image(folder / "closed" / "in.jpg").parent.chmod(0)
    (folder / "t.csv").write_text(GOOD)
    (folder / "t.csv").chmod(0)
    become()
    samples = open_source(folder)
    assert [sample.id for sample in samples.scan()] == ["good.jpg"]
    assert "Permission denied" in samples.problems.of("secret.jpg")[0].reason
    assert "Permission denied" in samples.problems.of("closed")[0].reason
    with pytest.raises(DataError, match=r"(?i)permission denied"):
        open_source(folder / "t.csv")
    with pytest.raises(DataError, match="cannot be written"):
        write_answers(folder / "labels.csv", {"a": 1})


ODD_IDS = [
    "😀.jpg",
    "cafe\u0301.jpg",
    "café.jpg",
    "A.jpg",
    "a.jpg",
    "with space.jpg",
    "-rf.jpg",
    "=1+1.jpg",
    "100%41.jpg",
    "q'uo\"te.jpg",
]


def test_odd_names_stay_apart_and_come_back(tmp_path, make_image):
    folder = tmp_path / "photos"
    for number, name in enumerate(ODD_IDS):
        make_image(folder / name, colour=(number, number, number))
    samples = open_source(folder)
    assert {sample.id for sample in samples.scan()} == set(ODD_IDS)
    labels = {id: f"class {number % 3}" for number, id in enumerate(ODD_IDS)}
    for name in ("labels.csv", "labels.jsonl", "labels.parquet"):
        write_answers(tmp_path / name, labels)
        assert {answer.id: answer.label for answer in read_answers(tmp_path / name, known=set(ODD_IDS))} == labels
    write_image_folder(tmp_path / "out", labels, samples)
    assert {answer.id: answer.label for answer in read_answers(tmp_path / "out")} == labels
    table = pd.DataFrame({"id": ODD_IDS, "x": range(10)})
    assert [sample.id for sample in open_source(table).scan()] == ODD_IDS


def test_a_name_that_is_not_unicode(photos):
    os.rename(photos / "5.jpg", os.fsencode(photos) + b"/\xff.jpg")
    samples = open_source(photos)
    assert len(list(samples.scan())) == 4
    (problem,) = samples.problems
    assert "not valid Unicode" in problem.reason
    str(problem).encode("utf-8")


BAD_ANSWERS = {
    # name: (file, settings, error, words)
    "unknown id": ("id,label\nnope,cat\n", {}, IdError, "'nope' is not known; nothing was read"),
    "unknown class": ("id,label\na,caat\n", {}, LabelError, "'caat', which is none of the classes 'cat', 'dog'"),
    "class up to case": ("id,label\na,Cat\n", {}, LabelError, "'Cat', which is none"),
    "NaN target": (
        "id,label\na,nan\n",
        {"task": "regression", "classes": None},
        LabelError,
        "'nan'; regression needs a finite number",
    ),
    "text for a number": (
        "id,label\na,high\n",
        {"task": "regression", "classes": None},
        LabelError,
        "'high'; regression",
    ),
    "overflow": (
        "id,label\na,1e999\n",
        {"task": "regression", "classes": None},
        LabelError,
        "is inf; a target must be a finite number",
    ),
    "too large": (
        "id,label\na,-1e151\n",
        {"task": "regression", "classes": None},
        LabelError,
        "'a' is beyond 1e.150, too large",
    ),
    "too large a whole number": (
        f"id,label\na,{9 * 10**308}\n",
        {"task": "regression", "classes": None},
        LabelError,
        "'a' is beyond 1e",
    ),
    "too many digits": (f"id,label\na,{'9' * 5000}\n", {"classes": None}, LabelError, "'a' is inf; a target"),
    "record": (
        "number,id,kind,label,undoes\n1,a,label,cat,\n2,a,undo,,1\n",
        {},
        DataError,
        "is the full history of a campaign",
    ),
    "no id": ("id,label\n,cat\n", {}, IdError, "line 2 .* has no id"),
    "no label column": ("id,class\na,cat\n", {}, DataError, "no column 'label'"),
    "ragged": ("id,label\na,cat,x\n", {}, DataError, "line 2 .*3 fields.*nothing was read"),
    "odd skip": ("id,label,skip\na,,perhaps\n", {}, DataError, "'perhaps' in column 'skip'"),
    "empty": ("", {}, DataError, "is empty"),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_answers_that_cannot_be_taken(tmp_path, case):
    text, settings, error, words = BAD_ANSWERS[case]
    path = tmp_path / "labels.csv"
    path.write_text(text)
    with pytest.raises(error, match=words):
        read_answers(path, **{"classes": ["cat", "dog"], "known": {"a", "b"}, **settings})


def test_labels_that_cannot_be_written(tmp_path, photos):
    samples = open_source(photos)
    path = tmp_path / "labels.csv"
    write_answers(path, {"5.jpg": "cat"})
    before = path.read_bytes()
    for labels, words in (
        ({"5.jpg": math.nan}, "is nan; a target"),
        ({"5.jpg": ["cat"]}, "a text, a number"),
        ({"5.jpg": "\ud800"}, "Unicode"),
        ({"5.jpg": 10**5000}, "'5.jpg' is a whole number of more than 309 digits"),
    ):
        with pytest.raises(LabelError, match=words):
            write_answers(path, labels)
    assert path.read_bytes() == before, "what was there is unchanged"
    assert {entry.name for entry in tmp_path.iterdir()} == {"photos", "labels.csv"}
    for labels, error, words in (
        ({"5.jpg": ""}, LabelError, "empty text"),
        ({"5.jpg": 0.5}, LabelError, "folders are for classes"),
        ({"5.jpg": "x" * 300}, LabelError, "too long"),
        ({"nope.jpg": "cat"}, IdError, "no image 'nope.jpg'"),
        ([Answer("5.jpg", "cat"), Answer("5.jpg", "dog")], LabelError, "'cat' and 'dog'"),
    ):
        with pytest.raises(error, match=words):
            write_image_folder(tmp_path / "out", labels, samples)
        assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match="already exists"):
        write_image_folder(photos, {"5.jpg": "cat"}, samples)
    with pytest.raises(LabelError, match="int and str"):
        write_answers(tmp_path / "labels.parquet", {"5.jpg": "cat", "cat/1.jpg": 1})
    with pytest.raises(InputError, match=r"'\.xlsx'"):
        write_answers(tmp_path / "labels.xlsx", {})
    for label, words in (
        (math.inf, "finite"),
        (-(10**5000), "more than 309 digits"),
        ("caf\udce9", "not valid Unicode"),
    ):
        with pytest.raises(LabelError, match=words):
            check_answers([Answer("a", label)])
    with pytest.raises(IdError, match="not valid Unicode"):
        check_answers([Answer("caf\udce9", "cat")])


def test_every_error_is_one_of_ours():
    for case in (*UNUSABLE.values(), *BAD_ANSWERS.values()):
        assert issubclass(case[2], AllyError)
