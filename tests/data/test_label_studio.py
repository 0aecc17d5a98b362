"""Labels from Label Studio and for it."""

import json

import pytest

from ally.data import Answer, read_answers
from ally.data.export.label_studio import as_tasks
from ally.errors import IdError, LabelError
from ally.types import SKIP


def task(data, *choices, kind="choices", **more):
    value = {"choices": list(choices)} if kind == "choices" else {kind: choices[0]}
    return {"data": data, "annotations": [{"result": [{"type": kind, "value": value}], **more}]}


def test_choices_numbers_and_cancelled_tasks(tmp_path):
    tasks = [
        task({"id": "a", "text": "x"}, "cat", completed_by={"email": "ann@x"}, created_at="2024-01-01T00:00:00+00:00"),
        task({"id": "b"}, 3.5, kind="number", completed_by=7),
        {"data": {"id": "c"}, "annotations": [{"result": [], "was_cancelled": True}]},
        {"data": {"id": "d"}, "annotations": []},
    ]
    (tmp_path / "t.json").write_text(json.dumps(tasks))
    assert read_answers(tmp_path / "t.json") == [
        Answer("a", "cat", "ann@x", "2024-01-01T00:00:00+00:00"),
        Answer("b", 3.5, "7"),
        Answer("c", SKIP),
    ]


def test_samples_are_found_by_the_end_of_a_path(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps([task({"image": "/data/local-files/?d=photos/cats/1.jpg"}, "cat")]))
    assert read_answers(tmp_path / "t.json", known={"cats/1.jpg"}) == [Answer("cats/1.jpg", "cat")]
    with pytest.raises(IdError, match=r"task 1 of .* names no sample: its data hold image; say which"):
        read_answers(tmp_path / "t.json", known={"dogs/1.jpg"})


def test_several_labels_of_one_sample_are_refused(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps([task({"id": "a"}, "cat", "dog")]))
    with pytest.raises(LabelError, match="several labels of one sample are not supported"):
        read_answers(tmp_path / "t.json")


def test_what_is_written_is_read_back(tmp_path):
    answers = [
        Answer("a", "cat", "ann", "2024-01-01T00:00:00+00:00"),
        Answer("b", SKIP, "bob"),
        Answer("c", 1.5, "ann"),
    ]
    (tmp_path / "t.json").write_text(json.dumps(as_tasks(answers, {"a": {"text": "purrs"}})))
    assert read_answers(tmp_path / "t.json") == answers
    assert json.loads((tmp_path / "t.json").read_text())[0]["data"] == {"id": "a", "text": "purrs"}
