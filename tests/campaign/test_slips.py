"""Answers that look like slips are reported; none is refused."""

import numpy as np
import pandas as pd
import pytest

from ally import SKIP, Campaign
from ally.errors import AnswerError, LabelError


def made(tmp_path, **settings):
    frame = pd.DataFrame({"id": [f"s{row}" for row in range(40)], "x": np.arange(40.0)})
    return Campaign.create(tmp_path / "c.db", frame, evaluate=0, automatic=False, **settings)


def test_a_class_spelled_differently_is_reported(tmp_path):
    with made(tmp_path) as campaign:
        assert campaign.relabel({"s0": "cat", "s1": "not sure", "s2": "dog", "s9": SKIP}).slips == ()
        told = campaign.relabel({"s3": "Cat", "s4": "not-sure", "s5": "dog", "s6": "Cat", "s7": "owl"})
        assert told.slips == (
            "'Cat' (of 's3') is a different class from 'cat'; if that is a typo, answer again",
            "'not-sure' (of 's4') is a different class from 'not sure'; if that is a typo, answer again",
        )
        assert campaign.labels()["s3"] == "Cat"
        assert campaign.relabel({"s10": "fox", "s11": "FOX"}).slips == (
            "'FOX' (of 's11') is a different class from 'fox'; if that is a typo, answer again",
        )
        assert campaign.relabel({"s12": "cat", "s13": "Cat"}).slips == (), "a class that there is was called new"
        query = campaign.ask(1)
        told = campaign.tell(query, {query.ids[0]: "CAT"})
        assert told.slips == (
            f"'CAT' (of {query.ids[0]!r}) is a different class from 'cat'; if that is a typo, answer again",
        )
        assert told.to_json()["slips"] == list(told.slips)


def test_slips_of_a_file_are_named(tmp_path):
    (tmp_path / "labels.csv").write_text("id,label\ns1,Cat\ns2,dog\n")
    with made(tmp_path) as campaign:
        campaign.relabel({"s0": "cat"})
        assert len(campaign.import_labels(tmp_path / "labels.csv").slips) == 1


def test_signs_of_numbers_are_not_typos(tmp_path):
    with made(tmp_path) as campaign:
        campaign.relabel({"s0": 1, "s1": "-a"})
        assert campaign.relabel({"s2": -1, "s3": "1", "s4": "a"}).slips == ()


def test_declared_classes_are_never_reported_as_typos(tmp_path):
    with made(tmp_path, classes=["a", "A"]) as campaign:
        campaign.relabel({"s0": "a"})
        assert campaign.relabel({"s1": "A"}).slips == ()


def test_a_number_far_from_all_others(tmp_path):
    with made(tmp_path, task="regression") as campaign:
        campaign.relabel({f"s{row}": 100.0 + row for row in range(20)})
        far = "is far from the earlier numbers (half of the distinct ones lie between 104.75 and 114.25)"
        assert campaign.relabel({"s20": 130.0, "s21": 1105, "s22": -900.0, "s23": SKIP}).slips == (
            f"1105 (of 's21') {far}; if that is a typo, answer again",
            f"-900 (of 's22') {far}; if that is a typo, answer again",
        )
        for odd in ("many", 10**400):
            with pytest.raises((AnswerError, LabelError)):
                campaign.relabel({"s24": odd})


def test_few_numbers_give_no_warning(tmp_path):
    with made(tmp_path, task="regression") as campaign:
        campaign.relabel({f"s{row}": 100.0 + row for row in range(19)})
        assert campaign.relabel({"s20": 1e6}).slips == (), "too few numbers to compare with"


def test_equal_numbers_give_no_warning(tmp_path):
    with made(tmp_path, task="regression") as campaign:
        campaign.relabel({f"s{row}": 0.0 for row in range(30)})
        assert campaign.relabel({"s30": 1.0}).slips == ()
