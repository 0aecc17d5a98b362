"""Answers that look like slips are named; nothing is refused."""

import numpy as np
import pandas as pd

from ally import SKIP, Campaign


def made(tmp_path, **settings):
    frame = pd.DataFrame({"id": [f"s{row}" for row in range(40)], "x": np.arange(40.0)})
    return Campaign.create(tmp_path / "c.db", frame, evaluate=0, automatic=False, **settings)


def test_a_class_written_in_another_way(tmp_path):
    with made(tmp_path) as campaign:
        assert campaign.slips({"s0": "cat", "s1": "dog", "s2": SKIP}) == []
        campaign.relabel({"s0": "cat", "s1": "not sure", "s2": "dog"})
        found = campaign.slips({"s3": "Cat", "s4": "not-sure", "s5": "dog", "s6": "Cat", "s7": "owl"})
        assert found == [
            "'Cat' (of 's3') is a class of its own beside 'cat'; if it is a slip, answer again",
            "'not-sure' (of 's4') is a class of its own beside 'not sure'; if it is a slip, answer again",
        ]
        assert campaign.slips({"s3": "owl", "s4": "OWL"}) == [
            "'OWL' (of 's4') is a class of its own beside 'owl'; if it is a slip, answer again"
        ]
        campaign.relabel({"s3": "Cat"})
        assert campaign.labels()["s3"] == "Cat"
        assert campaign.slips({"s4": "cat", "s5": "Cat"}) == [], "a class that there is was called new"
        assert campaign.slips({"s4": "CAT"}) == ["'CAT' (of 's4') is a class of its own beside 'cat'; if it is a slip, answer again"]


def test_signs_of_numbers_are_no_slips(tmp_path):
    with made(tmp_path) as campaign:
        campaign.relabel({"s0": 1, "s1": "-a"})
        assert campaign.slips({"s2": -1, "s3": "1", "s4": "a"}) == []


def test_declared_classes_are_meant(tmp_path):
    with made(tmp_path, classes=["a", "A"]) as campaign:
        campaign.relabel({"s0": "a"})
        assert campaign.slips({"s1": "A"}) == []


def test_a_number_far_from_all_others(tmp_path):
    with made(tmp_path, task="regression") as campaign:
        campaign.relabel({f"s{row}": 100.0 + row for row in range(19)})
        assert campaign.slips({"s20": 1e6}) == [], "too few numbers to compare with"
        campaign.relabel({"s19": 119.0})
        far = "is far from the numbers told before (half of the different ones lie between 104.75 and 114.25)"
        assert campaign.slips({"s20": 130.0, "s21": 1105, "s22": -900.0, "s23": SKIP}) == [
            f"1105 (of 's21') {far}; if it is a slip, answer again",
            f"-900 (of 's22') {far}; if it is a slip, answer again",
        ]
        assert campaign.slips({"s20": "many"}) == campaign.slips({"s20": 10**400}) == []


def test_numbers_that_were_all_the_same_say_nothing(tmp_path):
    with made(tmp_path, task="regression") as campaign:
        campaign.relabel({f"s{row}": 0.0 for row in range(30)})
        assert campaign.slips({"s30": 1.0}) == []
