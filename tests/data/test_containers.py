import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

import ally
from ally.errors import InputError, LabelError

rng = np.random.default_rng(0)
X = torch.as_tensor(rng.normal(size=(30, 3)), dtype=torch.float32)
Y = torch.as_tensor(np.where(np.arange(30) < 12, np.arange(30) % 2, np.nan))


def open_campaign(source, **options):
    return ally.Campaign.create("memory", source, **options)


@pytest.mark.parametrize("shape", [(30,), (30, 1)])
def test_labels_in_a_tensor_dataset_are_taken(shape):
    data = TensorDataset(X, Y.reshape(shape))
    plain = ally.query(X, Y, n=5, model="linear", random_state=0)
    for q in (
        ally.query(data, n=5, model="linear", random_state=0),
        ally.Loop(data, model="linear", random_state=0, hygiene=ally.Hygiene()).ask(5),
    ):
        assert q.ids.tolist() == plain.ids.tolist()
        assert "the second tensor of the TensorDataset holds the labels" in q.notes
    with open_campaign(data) as campaign:
        assert campaign.labels() == {str(row): row % 2 for row in range(12)}
    with open_campaign(data, label="none") as campaign:
        assert campaign.labels() == {}
    with open_campaign(TensorDataset(X, Y, Y), label="none") as campaign:
        assert campaign.labels() == {}
    told = ally.query(data, [*["a", "b"] * 6, *[None] * 18], n=5, model="linear")
    assert not any("second tensor" in note for note in told.notes)


def test_tensors_that_may_all_be_labels_are_asked_about():
    for data in (TensorDataset(X, Y, Y), TensorDataset(X, torch.zeros(30, 2))):
        for door in (lambda data: ally.query(data, n=2), ally.Loop, open_campaign):
            with pytest.raises(LabelError, match=r"which are labels is not known.*dataset\.tensors\[0\]"):
                door(data)
    assert len(ally.query(TensorDataset(X), n=2)) == 2


@pytest.mark.parametrize("door", [lambda X: ally.query(X, n=2), ally.Loop, open_campaign])
def test_a_dictionary_of_columns_says_what_to_pass(door):
    with pytest.raises(InputError, match=r"is a dictionary; if it holds columns, pass pandas\.DataFrame"):
        door({"a": [1, 2, 3], "b": [4, 5, 6]})


def pictures(*sides):
    return [Image.fromarray(rng.integers(0, 255, (side, side, 3), dtype=np.uint8)) for side in sides]


@pytest.mark.parametrize("door", [lambda X: ally.query(X, n=2), ally.Loop, open_campaign])
def test_pictures_in_a_list_are_of_one_size(door):
    with pytest.raises(InputError, match="of different sizes or modes, such as 16×16 RGB and 20×20 RGB; save them in"):
        door(pictures(16, 20, 16))
    door(pictures(16, 16, 16))


def test_what_an_encoder_reads_is_said():
    with pytest.raises(InputError, match="pass texts as a list and pictures as a folder"):
        open_campaign(pictures(16, 16, 16), encoder=ally.data.encoders.Function(lambda some: some, "mine-1", "image"))
    with pytest.raises(InputError, match=r"X holds texts.*ally\.query and Campaign\.create read texts"):
        ally.Loop(["one text", "another"])
