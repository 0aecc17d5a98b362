"""Classes that change while labelling goes on."""

import numpy as np
import pytest

from ally import SKIP, Campaign
from ally.errors import IdError, LabelError, UnknownClasses

X = np.arange(24.0).reshape(12, 2)


def made(**settings):
    return Campaign.create("memory", X, automatic=False, **{"classes": ["cat", "dog"], **settings})


def test_all_unknown_classes_are_reported_at_once():
    with made(classes=["cat", "dog", "horse"]) as campaign:
        with pytest.raises(UnknownClasses) as refused:
            campaign.relabel({"0": "cta", "1": "owl", "2": "cat", "3": "hrose", "4": "owl"})
        said = str(refused.value)
        assert said.startswith(
            "4 labels are none of the classes 'cat', 'dog', 'horse': 'cta' (of '0'; did you mean 'cat'?)"
        )
        assert "'owl' (2 labels, such as of '1')" in said
        assert "'hrose' (of '3'; did you mean 'horse'?)" in said
        assert refused.value.labels == ("cta", "owl", "hrose")
        assert campaign.labels() == {}


def test_all_labels_that_are_not_numbers_are_reported_at_once():
    wanted = r"2 labels are no numbers to learn from: 'a' \(of '0'\), 'b' \(of '2'\)"
    with made(classes=None, task="regression") as campaign, pytest.raises(LabelError, match=wanted):
        campaign.relabel({"0": "a", "1": 2.0, "2": "b"})


def test_add_classes_accepts_new_classes():
    with made() as campaign:
        told = campaign.relabel({"0": "owl", "1": "cat", "2": "eel"}, add_classes=True)
        assert told.labelled == 3
        assert campaign.settings.classes == ("cat", "dog", "owl", "eel")
        with pytest.raises(IdError):
            campaign.relabel({"nobody": "bat"}, add_classes=True)
        assert campaign.settings.classes == ("cat", "dog", "owl", "eel")


def test_a_class_is_renamed_with_its_labels_and_back():
    with made() as campaign:
        campaign.relabel({"0": "cat", "1": "dog", "2": "cat"}, annotator="ann")
        campaign.relabel({"0": "dog", "3": SKIP}, annotator="bob")
        before = campaign.labels()
        change = campaign.classes.by("eve").rename("cat", "feline")
        assert (change.said, change.classes) == (3, ("feline", "dog"))
        assert campaign.labels() == {0: "dog", 1: "dog", 2: "feline"}, "bob answered last and still does"
        assert campaign.answers.disagreements() == {"0": {"ann": "feline", "bob": "dog"}}
        assert {(one.sample, one.annotator) for one in campaign.answers.all() if one.value == "feline"} == {
            ("0", "ann"),
            ("2", "ann"),
        }
        campaign.relabel({"4": "dog"}, annotator="ann")
        campaign.classes.undo()
        assert campaign.labels() == {**before, 4: "dog"}
        assert campaign.settings.classes == ("cat", "dog")
        with pytest.raises(LabelError, match="no change of the classes left to undo"):
            campaign.classes.undo()


def test_classes_are_merged_and_votes_with_them():
    with made(classes=["cat", "cta", "dog"], policy="majority", opinions=3) as campaign:
        for who, label in (("ann", "cat"), ("bob", "cta"), ("eve", "dog")):
            campaign.relabel({"0": label}, annotator=who)
        assert campaign.labels() == {0: "dog"}
        change = campaign.classes.merge(["cta"], "cat")
        assert change.classes == ("cat", "dog")
        assert campaign.labels() == {0: "cat"}
        assert campaign.status().labels == 3
        assert campaign.status().labelled == 1
        campaign.classes.undo()
        assert campaign.labels() == {0: "dog"}
        assert campaign.answers.disagreements()["0"]["bob"] == "cta"


def test_a_class_is_removed_only_while_unused():
    with made(classes=["cat", "dog", "owl"]) as campaign:
        campaign.relabel({"0": "cat"})
        with pytest.raises(LabelError, match="1 labels are 'cat'; rename the class, or merge it"):
            campaign.classes.remove("cat")
        assert campaign.classes.remove("owl").classes == ("cat", "dog")
        with pytest.raises(LabelError, match="at least two"):
            campaign.classes.remove("dog")
        campaign.classes.add(["eel"])
        campaign.relabel({"1": "eel"})
        with pytest.raises(LabelError, match="samples were labelled 'eel' since"):
            campaign.classes.undo()


def test_classes_can_be_changed_without_being_declared():
    with made(classes=None) as campaign:
        campaign.relabel({"0": "cat", "1": "cta", "2": "dog"})
        campaign.classes.merge(["cta"], "cat")
        assert campaign.settings.classes is None
        assert list(campaign.classes) == ["dog", "cat"] or list(campaign.classes) == ["cat", "dog"]
        campaign.classes.add(["owl"])
        assert set(campaign.settings.classes) == {"cat", "dog", "owl"}
        with pytest.raises(LabelError, match="there is a class 'owl' already"):
            campaign.classes.rename("cat", "owl")
        with pytest.raises(LabelError, match="there is no class 'bat'; the classes are "):
            campaign.classes.merge(["bat"], "cat")


def test_new_classes_are_stripped_and_near_ones_named():
    with made(classes=["x", "dog"]) as campaign:
        told = campaign.relabel({"0": "X ", "1": "X", "2": "owl"}, add_classes=True)
        assert campaign.settings.classes == ("x", "dog", "X", "owl")
        assert campaign.labels() == {0: "X", 1: "X", 2: "owl"}
        assert [slip.partition(";")[0] for slip in told.slips] == ["'X' is a new class and looks like 'x'"]
        assert campaign.classes.add([" cat "]).old == ("cat",)
