"""The measured part of docs/duals.md is made from the results."""

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("duals_page", ROOT / "benchmarks" / "duals_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results():
    return pd.read_csv(RESULTS / "duals_labels.csv"), pd.read_csv(RESULTS / "duals_pruning.csv")


def test_the_tables_are_those_of_the_results(page, results):
    text = page.PAGE.read_text(encoding="utf-8")
    shown = text.split(page.MARKS[0])[1].split(page.MARKS[1])[0]
    assert shown.strip() == page.describe(*results).strip(), "run: python benchmarks/duals.py --page"
    assert page.FIGURE.exists()


def test_six_sets_and_five_seeds_were_run(results):
    for table in results:
        runs = table.groupby(["data", "model"])["seed"].nunique()
        assert len(runs) == 12
        assert set(runs) == {5}


def test_figures_are_short(page):
    assert (page.short(0.8449), page.short(1.0), page.signed(-0.01)) == (".845", "1.000", "−.010")
    assert re.fullmatch(r"[+−]\.\d{3}", page.signed(0.1234))
