"""What a user can get wrong with sources, answers and files: exit 2, one clear line, and nothing changed."""

import hashlib
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import ally as library

NEW = ["new", "c", "--by-hand", "--from"]


SOURCES = {
    "missing": ([*NEW, "nowhere"], "nowhere does not exist; give a folder of images"),
    "empty folder": ([*NEW, "empty"], "there are no images in the folder empty; put images into it: .avif"),
    "only corrupt images": ([*NEW, "corrupt"], "corrupt has no image that can be read (1 cannot be read"),
    "loop of links": ([*NEW, "loop"], "loop has no image that can be read"),
    "link out of the folder": ([*NEW, "outside"], "leads outside"),
    "wrong ending": ([*NEW, "notes.docx"], "has the ending '.docx'"),
    "empty table": ([*NEW, "empty.csv"], "empty.csv is empty; give a file with samples"),
    "header only": ([*NEW, "header.csv"], "it has a header only"),
    "not UTF-8": ([*NEW, "latin.csv"], "line 2 of latin.csv is not utf-8"),
    "what encoding": (
        [*NEW, "latin.csv"],
        "or pass the encoding it was written in (encoding=, --encoding), such as cp1252",
    ),
    "same column twice": ([*NEW, "twice.csv"], "has the column 'a' more than once"),
    "all rows too long": ([*NEW, "long.csv"], "the row has 3 fields and the header 2"),
    "no such column": ([*NEW, "table.csv", "--text", "words"], "has no column 'words' (text)"),
    "no such kind of column": (
        [*NEW, "table.csv", "--column", "a=colour"],
        "'colour' is not a kind of column (for 'a'); use 'number' or 'category'",
    ),
    "path above the folder": ([*NEW, "paths.csv", "--image", "file"], "is not a path below"),
    "not an array": ([*NEW, "fake.npy"], "fake.npy is not a complete .npy file"),
    "too few ids": ([*NEW, "X.npy", "--ids", "ids.txt"], "has 4 rows and there are 2 ids"),
    "label of the source": (
        [*NEW, "table.csv", "--classes", "low,medium", "--label", "verdict"],
        "is 'high', which is none of the classes",
    ),
    "target that is NaN": ([*NEW, "nan.csv", "--task", "regression", "--label", "price"], "the label of 'b' is 'NaN'"),
    "one class": (
        [*NEW, "table.csv", "--classes", "cat"],
        "--classes ['cat'] holds 1; a classifier needs at least two",
    ),
    "class twice": ([*NEW, "table.csv", "--classes", "cat,cat"], "two that read alike"),
    "classes and regression": (
        [*NEW, "table.csv", "--classes", "a,b", "--task", "regression"],
        "classes are given and the task is regression",
    ),
    "share above one": ([*NEW, "table.csv", "--random-share", "1.5"], "--random-share 1.5 is out of range"),
    "shares above one": (
        [*NEW, "table.csv", "--random-share", "0.8"],
        "the shares of held-out and random samples add up to 1.05; leave something",
    ),
    "label of a folder": (
        [*NEW, "empty", "--label", "class"],
        "--label 'class' is not known for a folder of images; use 'folder'",
    ),
    "no feature": ([*NEW, "words.csv"], "name a text, image or feature column"),
    "flat folder without images": (
        [*NEW, "above", "--flat"],
        "no images in the folder above itself (subfolders are ignored)",
    ),
    "too many held out": ([*NEW, "table.csv", "--evaluate", "61"], "60 samples are free and 61 were requested"),
    "no lease": (
        [*NEW, "table.csv", "--lease", "0"],
        "--lease 0 is out of range; give minutes above 0 and at most 527040",
    ),
    "endless lease": (
        [*NEW, "table.csv", "--lease", "1e15"],
        "--lease 1e+15 is out of range; give minutes above 0 and at most 527040",
    ),
    "lease that is none": ([*NEW, "table.csv", "--lease", "nan"], "--lease nan is out of range; give minutes"),
    "no strategy": ([*NEW, "table.csv", "--strategy", "bagde"], "did you mean 'badge'?"),
    "strategy of another task": (
        [*NEW, "table.csv", "--task", "regression", "--strategy", "margin"],
        "strategy 'margin' is not defined for regression",
    ),
    "no model": ([*NEW, "table.csv", "--model", "vgg"], "unknown model 'vgg'"),
    "no policy": ([*NEW, "table.csv", "--policy", "first"], "Invalid value for '--policy'"),
    "no folder for the campaign": (
        ["new", "no/such/c", "--from", "table.csv", "--by-hand"],
        "such does not exist; create it first",
    ),
    "existing campaign": (["new", "rows", "--from", "table.csv", "--by-hand"], "rows.db exists already"),
    "no source": (["new", "c", "--by-hand"], "Missing option '--from'"),
    "odd place": (["new", "mysql://host/db", "--from", "table.csv"], "is not a store"),
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory, write_table):
    """A folder of sources that are wrong in one way each, and a good campaign. No test changes it, so all share it."""
    tmp_path = tmp_path_factory.mktemp("sources")
    write_table(tmp_path)
    library.Campaign.create(tmp_path / "rows.db", tmp_path / "table.csv", automatic=False).close()
    (tmp_path / "empty").mkdir()
    (tmp_path / "above" / "below").mkdir(parents=True)
    (tmp_path / "corrupt").mkdir()
    (tmp_path / "corrupt" / "a.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a photo")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop")
    (tmp_path / "loop" / "a.png").symlink_to(tmp_path / "loop" / "a.png")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.png").symlink_to(tmp_path / "corrupt" / "a.jpg")
    contents = {
        "notes.docx": "text",
        "empty.csv": "",
        "header.csv": "id,text\n",
        "twice.csv": "id,a,a\n1,2,3\n",
        "long.csv": "id,text\n1,a,b\n2,c,d\n",
        "paths.csv": "id,file\n1,../corrupt/a.jpg\n2,/etc/a.png\n",
        "nan.csv": "name,rooms,price\na,2,100\nb,3,NaN\n",
        "fake.npy": "not an array",
        "words.csv": "id,a\n" + "".join(f"{n},word {n}\n" for n in range(150)),
        "ids.txt": "a\nb\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes("id,text\n1,caf\xe9\n".encode("latin-1"))
    np.save(tmp_path / "X.npy", np.eye(4))
    return tmp_path


def tree(folder):
    """Every file with its content; locks beside a campaign are empty and do not count."""
    files = (path for path in sorted(Path(folder).rglob("*")) if path.is_file() and not path.is_symlink())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files if path.stat().st_size}


@pytest.mark.parametrize("case", SOURCES)
def test_sources(ally, sources, monkeypatch, case):
    monkeypatch.chdir(sources)
    words, message = SOURCES[case]
    before = tree(sources)
    done = ally(*words, code=2)
    assert message in " ".join(done.err.split())
    assert done.out == ""
    assert tree(sources) == before


ANSWERS = {
    "missing campaign": (
        ["ask", "pets"],
        "there is no campaign pets.db (found here: blank.db, rows.db); create it: ally new pets --from FOLDER",
    ),
    "not a database": (["status", "table.csv"], "table.csv is damaged or not a campaign"),
    "empty database": (["status", "blank.db"], "blank.db holds no campaign"),
    "a folder": (["status", "folder.db"], "there is no campaign at"),
    "no samples": (["ask", "rows", "--n", "0"], "--n 0 must be a whole number of at least 1"),
    "too many": (["ask", "rows", "--n", "61"], "57 samples are free and 61 were requested"),
    "ask to an odd file": (
        ["ask", "rows", "--out", "next.xlsx"],
        "next.xlsx has the ending '.xlsx'; use one of .csv, .jsonl",
    ),
    "ask to no folder": (["ask", "rows", "--out", "no/next.csv"], "the folder no of next.csv does not exist"),
    "nothing told": (["tell", "rows"], "no answers given; give a file with the columns id and label"),
    "unknown id": (["tell", "rows", "r99=low"], "1 of 1 sample ids are unknown, the first is 'r99'"),
    "path as an id": (["tell", "rows", "../../etc/passwd=low"], "1 of 1 sample ids are unknown"),
    "unknown class": (
        ["tell", "rows", "r00=medium"],
        "the label of 'r00' is 'medium', which is none of the classes 'low', 'high'",
    ),
    "one bad of two": (["tell", "rows", "r00=low", "r01=medium"], "'medium'"),
    "twice": (["tell", "rows", "r00=low", "r00=high"], "'r00' has two answers, 'low' and 'high'"),
    "no label": (["tell", "rows", "r00="], "'r00=' has no label"),
    "neither file nor pair": (
        ["tell", "rows", "r00"],
        "'r00' is neither a file nor a pair such as r00=LABEL",
    ),
    "file and pairs": (["tell", "rows", "good.csv", "r00=low"], "'good.csv' is not an ID=LABEL pair; give one file"),
    "two files": (["tell", "rows", "good.csv", "good.csv"], "'good.csv' is not an ID=LABEL pair; give one file"),
    "empty file": (["tell", "rows", "empty.csv"], "empty.csv is empty"),
    "no answers": (["tell", "rows", "unfilled.csv"], "unfilled.csv holds no answers; fill in its column label"),
    "no id column": (["tell", "rows", "nameless.csv"], "has no column 'id'"),
    "wrong ending": (["tell", "rows", "notes.docx"], "has the ending '.docx'"),
    "over-long row": (["tell", "rows", "long.csv"], "line 3 of long.csv: the row has 3 fields and the header 2"),
    "odd skip": (["tell", "rows", "skips.csv"], "holds 'perhaps' in column 'skip'"),
    "not UTF-8": (["tell", "rows", "latin.csv"], "line 2 of latin.csv is not utf-8"),
    "broken JSON": (["tell", "rows", "broken.jsonl"], "the line is not JSON"),
    "unknown query": (["tell", "rows", "r00=low", "--query", "7"], "there is no query 7; the last one is 1"),
    "not of the query": (
        ["tell", "rows", "r59=low", "--query", "1"],
        "1 of 1 answers are not for query 1, the first is for 'r59'",
    ),
    "key with other answers": (
        ["tell", "rows", "r01=low", "--key", "k", "--annotator", "ann"],
        "--key 'k' was used by 'ann' for other answers",
    ),
    "a label of another encoding": (
        ["tell", "rows", "r00=caf\udce9"],
        "the label of 'r00' is 'caf\\udce9', which is not valid Unicode",
    ),
    "an id of another encoding": (["tell", "rows", "caf\udce9=low"], "the id 'caf\\udce9' is not valid Unicode"),
    "too long for a file": (["tell", "rows", f"r00={'x' * 300}"], "which is none of the classes"),
    "too long and no pair": (["tell", "rows", "x" * 300], "is neither a file nor a pair"),
    "a record": (["tell", "rows", "record.csv"], "record.csv is the full history of a campaign"),
    "import of a record": (
        ["import", "rows", "record.csv"],
        "its current labels instead: ally export NAME labels.csv",
    ),
    "unknown id to skip": (["skip", "rows", "r00", "r99"], "1 of 2 sample ids are unknown, the first is 'r99'"),
    "nothing to undo": (["undo", "rows", "--annotator", "nobody"], "'nobody' has no answer to undo"),
    "answer of another": (
        ["undo", "rows", "--annotator", "bob", "--number", "1"],
        "answer 1 was given by 'ann', not 'bob'",
    ),
    "no such answer": (["undo", "rows", "--number", "99"], "there is no answer 99; the last one is 1"),
    "import from nowhere": (["import", "rows", "nowhere.csv"], "nowhere.csv does not exist"),
    "import an unknown id": (["import", "rows", "unknown.csv"], "1 of 2 sample ids are unknown, the first is 'r99'"),
    "import an odd time": (["import", "rows", "time.csv"], "the time 'yesterday' of the answer to 'r00' is not a time"),
    "export to an odd file": (["export", "rows", "labels.xlsx"], "has the ending '.xlsx'"),
    "export to no folder": (["export", "rows", "no/labels.csv"], "cannot be written"),
    "export over a folder": (["export", "rows", "dir.csv"], "dir.csv cannot be written"),
    "ask over a folder": (["ask", "rows", "--out", "dir.csv"], "dir.csv is a folder; give the name of a file"),
    "export to a full folder": (["export", "rows", "full"], "already exists and is not empty"),
    "rows to a folder": (["export", "rows", "by-class"], "is not an image; export to CSV"),
    "record as Parquet": (["export", "rows", "record.parquet", "--record"], "has the ending '.parquet'"),
    "record and model": (["export", "rows", "x", "--record", "--model"], "write one at a time"),
    "model before training": (["export", "rows", "x", "--model"], "there is no trained model yet"),
    "predict before training": (["predict", "rows"], "there is no trained model yet"),
    "options without data": (["predict", "rows", "--encoding", "utf-8"], "--encoding is for new data"),
    "model without data": (["predict", "m.safetensors"], "is a model without a campaign; say what to predict"),
    "no such model": (["predict", "m.safetensors", "table.csv"], "m.safetensors cannot be read"),
    "not a model": (["predict", "fake.safetensors", "table.csv"], "is not a complete safetensors file"),
    "review nothing": (["review", "rows", "--n", "0"], "--n 0 must be a whole number of at least 1"),
}


@pytest.fixture(scope="module")
def answered(tmp_path_factory, write_table):
    """A campaign with one query and one answer, and files that are wrong in one way each. No test changes it, so all
    share it."""
    tmp_path = tmp_path_factory.mktemp("answered")
    write_table(tmp_path)
    place, source = tmp_path / "rows.db", tmp_path / "table.csv"
    with library.Campaign.create(place, source, classes=["low", "high"], automatic=False) as campaign:
        campaign.ask(2, annotator="ann", key="first")
        campaign.relabel({"r00": "low"}, annotator="ann", key="k")
    contents = {
        "good.csv": "id,label\nr00,low\n",
        "empty.csv": "",
        "unfilled.csv": "id,label,query\nr00,,1\nr01,,1\n",
        "nameless.csv": "name,label\nr00,low\n",
        "notes.docx": "id,label\nr00,low\n",
        "long.csv": "id,label\nr00,low\nr01,low,high\n",
        "skips.csv": "id,label,skip\nr00,,perhaps\n",
        "broken.jsonl": '{"id": "r00", "label": "low"}\n{"id": \n',
        "unknown.csv": "id,label\nr00,low\nr99,low\n",
        "time.csv": "id,label,at\nr00,low,yesterday\n",
        "record.csv": "number,id,annotator,at,kind,label,query,undoes\n1,r00,ann,,label,low,,\n2,r00,ann,,undo,,,1\n",
        "fake.safetensors": "no weights",
        "full/file": "x",
    }
    (tmp_path / "full").mkdir()
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "dir.csv").mkdir()
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes("id,label\nr00,l\xf6w\n".encode("latin-1"))
    sqlite3.connect(tmp_path / "blank.db").execute("CREATE TABLE t (x)").connection.close()
    return tmp_path


@pytest.mark.parametrize("case", ANSWERS)
def test_answers_and_files(ally, answered, monkeypatch, case):
    monkeypatch.chdir(answered)
    words, message = ANSWERS[case]
    before = tree(answered)
    done = ally(*words, code=2)
    assert message in " ".join(done.err.split())
    assert done.out == ""
    assert tree(answered) == before


@pytest.mark.parametrize("label", ["nan", "inf", "many", "true", "1e999", "1e151", "9" * 309, "9" * 5000])
def test_targets_must_be_finite_numbers(ally, table, label):
    ally("new", "size", "--from", "table.csv", "--task", "regression", "--by-hand")
    assert "the label of 'r00' is" in ally("tell", "size", f"r00={label}", code=2).err
    with library.Campaign.open("size.db") as campaign:
        assert campaign.labels() == {}


def test_bad_lines_of_a_good_source_are_told(ally, tmp_path):
    (tmp_path / "notes.csv").write_text("id,text\n1,good\n1,again\n2,a,b\n3,\n4,fine\n")
    page = ally("new", "notes", "--from", "notes.csv", "--id-column", "id", "--by-hand").out
    assert "notes.db: 2 texts of notes.csv" in page
    assert "3 problems:" in page
    assert "1: line 3 repeats an earlier id" in page
    assert "line 4: the row has 3 fields" in page


def test_answers_from_standard_input_name_it(ally, rows):
    assert "line 2 of standard input has no id" in ally("tell", "rows", "-", stdin="id,label\n,low\n", code=2).err
    assert "standard input holds no answers" in ally("tell", "rows", "-", stdin="id,label\nr00,\n", code=2).err
