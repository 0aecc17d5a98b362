import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ally.data import Answer, open_source, read_answers, write_answers, write_image_folder
from ally.data.export.cells import FORMULA, WRITTEN, label_cell, read_label, read_text, text_cell
from ally.data.paths import file_name, text_of
from ally.errors import LabelError
from ally.types import SKIP

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.text("=+-@'\t\r\n 1.e", max_size=6)
labels = texts | st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)


@given(texts)
def test_a_text_comes_back_and_is_no_formula(text):
    cell = text_cell(text)
    assert read_text(cell) == text
    assert not cell.startswith(FORMULA) or WRITTEN[float].fullmatch(cell), "a negative number is no formula"


@given(labels)
def test_a_label_comes_back_with_its_type(label):
    cell = label_cell(label)
    back = read_label(cell)
    assert type(back) is type(label)
    assert back == label
    assert not isinstance(label, str) or not cell.startswith(FORMULA)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
    | st.sampled_from(["..", ".", "CON", "nul.txt", "a/b", "%41", "~"])
)
def test_a_name_is_safe_and_comes_back(text):
    name = file_name(text)
    assert text_of(name) == text
    assert not set(name) & set('/\\:*?"<>|\0\n\r\t')
    assert name not in (".", "..")
    assert name[0] not in ".- "
    assert name[-1] not in ". "
    assert name.split(".")[0].upper() not in ("CON", "NUL")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_round_trip(tmp_path, kind):
    answers = [
        Answer("=1+1", "=cmd|' /C calc'!A0", "@ann", "2024-01-01T10:00:00+00:00"),
        Answer('b,"c"\r\nd', "-dog\n", None, None),
        Answer("skipped", SKIP, "+bob", None),
        Answer("007", "007"),
        Answer("e", ""),
        Answer("f", "'quoted'"),
        Answer("g", "NA"),
        Answer("h", "1"),
        Answer("h", "true", "second opinion"),
    ]
    path = tmp_path / f"labels.{kind}"
    assert write_answers(path, answers) == 9
    assert read_answers(path) == answers


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(texts.filter(bool), labels | st.just(SKIP)), max_size=5))
def test_any_answers_round_trip(tmp_path_factory, pairs):
    answers = [Answer(id, label) for id, label in pairs if "\0" not in id + str(label)]
    folder = tmp_path_factory.mktemp("labels")
    for kind in ("csv", "jsonl"):
        write_answers(folder / f"labels.{kind}", answers)
        if answers:
            back = read_answers(folder / f"labels.{kind}")
            assert back == answers
            assert [type(answer.label) for answer in back] == [type(answer.label) for answer in answers]


def test_no_cell_of_a_file_is_a_formula(tmp_path):
    write_answers(
        tmp_path / "labels.csv", [Answer(f"{start}1", f"{start}x", f"{start}y", f"{start}z") for start in FORMULA]
    )
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as stream:
        run = [cell for row in csv.reader(stream) for cell in row if cell.startswith(FORMULA)]
    assert run == ["-1"]  # a number, which no spreadsheet runs


def test_numbers_stay_numbers(tmp_path):
    write_answers(tmp_path / "labels.csv", {"a": -1.5, "b": 3, "c": 1e-300})
    assert (tmp_path / "labels.csv").read_text() == "id,label\na,-1.5\nb,3\nc,1e-300\n"
    back = {answer.id: answer.label for answer in read_answers(tmp_path / "labels.csv", task="regression")}
    assert back == {"a": -1.5, "b": 3, "c": 1e-300}
    assert {type(label) for label in back.values()} == {float}


def test_labels_become_the_classes_of_the_campaign(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,label\na,1\nb,2\nc,\n")
    assert [answer.label for answer in read_answers(path, classes=["1", "2"])] == ["1", "2"]
    assert [answer.label for answer in read_answers(path, classes=[1, 2])] == [1, 2]
    path.write_text("id,label\na,x \nb, 2\nc,2.0\n")
    assert [answer.label for answer in read_answers(path, classes=["x", 2])] == ["x", 2, 2]
    path.write_text("id,label\na,true\n")
    assert read_answers(path, classes=[True, False])[0].label is True
    assert read_answers(path, classes=["True", "False"])[0].label == "True"


@pytest.mark.parametrize("link", [False, True])
def test_image_folder(photos, tmp_path, link):
    samples = open_source(photos)
    wanted = {"cat/1.jpg": "..", "dog/deep/4.jpg": "a/b: c", "5.jpg": "CON", "cat/2.png": SKIP}
    assert write_image_folder(tmp_path / "out", wanted, samples, link=link) == 3
    written = sorted(
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    assert written == ["%2E%2E/cat/1.jpg", "%43ON/5.jpg", "a%2Fb%3A c/dog/deep/4.jpg"]
    assert {answer.id: answer.label for answer in read_answers(tmp_path / "out")} == {
        id: label for id, label in wanted.items() if label is not SKIP
    }
    copy, original = tmp_path / "out" / written[1], photos / "5.jpg"
    assert copy.read_bytes() == original.read_bytes()
    assert copy.samefile(original) is link
    assert [sample.label for sample in open_source(tmp_path / "out", label="folder").scan()] == ["..", "CON", "a/b: c"]


def test_ids_that_are_no_file_names(photos, tmp_path):
    path = photos / "list.csv"
    ids = ["../x", "17", "/abs", "a//b", "x.jpg", "y.tar"]
    path.write_text("id,file\n" + "".join(f"{id},cat/2.png\n" for id in ids))
    write_image_folder(tmp_path / "out", dict.fromkeys(ids, "cat"), open_source(path, image="file"))
    assert {answer.id for answer in read_answers(tmp_path / "out")} == set(ids)
    assert all((tmp_path / "out") in path.parents for path in (tmp_path / "out").rglob("*"))
    assert not (tmp_path / "x").exists()


def test_a_row_with_a_label_and_a_skip_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,label,skip\na,cat,\nb,dog,yes\n")
    with pytest.raises(
        LabelError, match=r"line 3 of .* holds the label 'dog' for 'b' and says skip; keep one of the two"
    ):
        read_answers(path)
