"""The cards fit the catalogue and the code, and docs/strategies.md is what the generator makes of them."""

import json
import re
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pytest

import ally
from ally import selection
from ally.cards import (
    CARDS,
    FAMILIES,
    OBJECTIVE_CARDS,
    SELECTION_CARDS,
    SYMBOLS,
    describe,
    parameters_of,
    source_of,
    summary_of,
)
from ally.errors import UnknownName
from ally.experiment import COLUMNS
from ally.learning.objectives import OBJECTIVES, PDCL, Feasibility
from ally.scoring import Margin
from ally.selection import ClusterTop, Herding

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from strategies_page.measured import by_objective, by_strategy, cost_table, measured  # noqa: E402
from strategies_page.page import page  # noqa: E402

ALL_CARDS = {
    **{f"strategy {k}": v for k, v in CARDS.items()},
    **{f"objective {k}": v for k, v in OBJECTIVE_CARDS.items()},
}
ALL_CARDS |= {f"selection {k}": v for k, v in SELECTION_CARDS.items()}
PAGE = (DOCS / "strategies.md").read_text(encoding="utf-8")


def test_every_entry_has_a_card_and_no_card_is_left_over():
    assert set(CARDS) == set(ally.CATALOGUE)
    assert set(OBJECTIVE_CARDS) == set(OBJECTIVES)
    assert all(isinstance(getattr(selection, name)(), selection.Select) for name in SELECTION_CARDS)


@pytest.mark.parametrize("card", ALL_CARDS.values(), ids=ALL_CARDS)
def test_a_card_is_short_and_complete(card):
    assert 20 <= len(card.use_when) <= 100
    assert card.use_when.endswith(".")
    lines = card.equation.split("\n")
    assert 1 <= len(lines) <= 3
    assert all(line and len(line) <= 98 for line in lines), lines
    assert all(
        1948 <= reference.year <= 2025 and reference.authors and reference.title for reference in card.references
    )


def test_the_default_is_explained_in_about_ten_lines():
    meaning = describe("ally")["meaning"]
    assert len(textwrap.wrap(meaning, 98)) <= 10
    for words in (
        "dual λ",
        "slack u",
        "min(ρ[ℓ' − ε]₊, κ)",
        "κ → 0",
        "1 − (p₁ − p₂)",
        "covers the pool",
        "not evidence",
    ):
        assert words in meaning
    assert meaning in PAGE


def test_families_are_known_and_used():
    assert {card.family for card in CARDS.values()} == set(FAMILIES)


def test_uses_are_distinct():
    uses = [card.use_when for card in CARDS.values()]
    assert len(set(uses)) == len(uses)


def test_equations_tell_strategies_apart():
    equations = [card.equation for card in CARDS.values()]
    assert len(set(equations)) == len(equations)


@pytest.mark.parametrize("card", [*CARDS.values(), *SELECTION_CARDS.values()])
def test_costs_use_known_letters(card):
    assert card.cost.letters <= set(SYMBOLS)
    assert card.cost.letters, "a cost that depends on nothing"
    for text in (card.cost.time, card.cost.memory):
        assert "O(" in text
        assert text.count("(") == text.count(")")


def test_only_random_has_no_source():
    assert [name for name, card in CARDS.items() if not card.references] == ["random"]


@pytest.mark.parametrize("name", ally.CATALOGUE)
def test_python_makes_an_equal_strategy(name):
    namespace = {}
    exec(describe(name)["python"], namespace)
    assert replace(namespace["strategy"], about=ally.CATALOGUE[name].about) == ally.CATALOGUE[name]


@pytest.mark.parametrize("name", ally.CATALOGUE)
def test_a_description_is_read_from_the_strategy(name):
    row, entry = describe(name), ally.CATALOGUE[name]
    assert json.loads(json.dumps(row)) == row
    assert row["tasks"] == sorted(entry.tasks)
    assert row["needs"] == list(entry.needs)
    assert row["parameters"]["select"]["part"] == type(entry.select).__name__
    assert {item["name"] for item in row["parameters"]["score"]["settings"]} == set(vars(entry.score))


def test_unknown_names_are_the_catalogues_error():
    with pytest.raises(UnknownName, match="did you mean 'badge'"):
        describe("bagde")


def test_parameters_come_from_fields_and_docstrings():
    found = {item.name: item for item in parameters_of(PDCL(eps=0.5))}
    assert (found["eps"].value, found["eps"].default) == ("0.5", "None")
    assert found["dual_cap"].about.startswith("upper bound κ on λ, or None. It is a linear price")
    assert parameters_of(Feasibility())[4] == found["dual_cap"], "inherited words"
    assert 'primal step (no extra cost); `"all"` is Algorithm 1' in found["slacks"].about, "words over several lines"
    assert [item.about for item in parameters_of(Herding())].count("") == 0


def test_parts_without_a_docstring_have_no_words():
    @dataclass(frozen=True)
    class Bare:
        size: int = 3

    assert [(item.name, item.value, item.about) for item in parameters_of(Bare(4))] == [("size", "4", "")]
    assert summary_of(Margin()) == "1 − (p₁ − p₂), with p₁ ≥ p₂ the two largest probabilities."


def test_source_leaves_defaults_out():
    assert source_of(ClusterTop()) == "ClusterTop()"
    assert source_of(ClusterTop(shortlist=3)) == "ClusterTop(shortlist=3)"
    assert source_of("erm") == '"erm"'


def test_the_page_is_what_the_generator_makes():
    assert page(ROOT / "benchmarks" / "results") == PAGE, "the catalogue has changed: run `make docs`"


def test_anchors_and_links_of_the_page_exist():
    anchors = {
        re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert len(links) > 2 * len(CARDS)
    for link in links:
        path, _, anchor = link.partition("#")
        assert (DOCS / path).exists() if path else anchor in anchors, link


def test_code_on_the_page_runs():
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "strategies.md", "exec"), namespace)
    assert namespace["mine"].needs == ("probabilities", "embeddings", "duals")


def test_figures_are_small():
    figures = sorted((DOCS / "figures").iterdir())
    assert [figure.name for figure in figures] == ["picks.png"]
    assert all(figure.stat().st_size < 150_000 for figure in figures)


def campaigns(**values):
    """Records of two rounds after the start, one curve per (strategy, setting) and seed."""
    rows = [
        {
            "dataset": "toy",
            "model": "mlp",
            "objective": "erm",
            "setting": setting,
            "strategy": strategy,
            "seed": seed,
            "batch": 5,
            "round": number,
            "labels": 5 * (number + 1),
            "validation_labels": 0,
            "metric": "accuracy",
            "value": 0.0 if number == 0 else value + (0.1 if number == 2 else -0.1),
            "train_seconds": 1.0,
            "query_seconds": 0.25,
        }
        for (strategy, setting), curve in values["curves"].items()
        for seed, value in enumerate(curve)
        for number in range(3)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_table_of_strategies():
    curves = {("random", ""): [0.5, 0.6], ("margin", ""): [0.6, 0.72], ("bait", "few candidates"): [0.5, 0.5]}
    lines = by_strategy(campaigns(curves=curves), "random")
    assert lines[0] == "**toy**, model mlp, 5 to 15 labels in batches of 5:"
    # Differences .1 and .12: mean .11, half width t(.975, 1 degree) * .01 = .12706.
    assert lines[4:7] == [
        "| `margin` | 0.6600 ± 0.0849 | +0.1100 | -0.0171 … +0.2371 | 2 | 0.25 |",
        "| `random` | 0.5500 ± 0.0707 | – | – | 2 | 0.25 |",
        "| `bait` (few candidates) | 0.5000 ± 0.0000 | -0.0500 | -0.6853 … +0.5853 | 2 | 0.25 |",
    ]


def test_table_of_objectives():
    curves = {
        ("random", "erm"): [0.5, 0.6],
        ("margin", "erm"): [0.6, 0.7],
        ("random", "pdcl"): [0.5, 0.6],
        ("margin", "pdcl"): [0.7, 0.8],
    }
    lines = by_objective(campaigns(curves=curves))
    assert (
        lines[-2]
        == "| pdcl | `margin` | 0.7500 ± 0.0707 | +0.2000, +0.2000 … +0.2000 | +0.1000, +0.1000 … +0.1000 | 2 |"
    )


def test_one_seed_has_no_interval():
    lines = by_strategy(campaigns(curves={("random", ""): [0.5], ("margin", ""): [0.6]}), "random")
    assert lines[4] == "| `margin` | 0.6000 | +0.1000 | – | 1 | 0.25 |"


def test_table_of_costs():
    costs = pd.DataFrame(
        [
            ("herding, weighted", "", 1.0, 5.4),
            ("bait", "", 60.4, 900.0),
            ("margin", "", 0.5, 10.0),
            ("margin", "", 0.7, 12.0),
        ],
        columns=["strategy", "setting", "query_seconds", "peak_mib"],
    )
    assert cost_table(costs)[2:-1] == [
        "| `margin` | 0.60 | 11 |",
        "| `bait` | 60 | 900 |",
        "| herding, weighted | 1.00 | 5 |",
    ]


def test_without_results_the_page_says_so(tmp_path):
    assert "No results" in measured(tmp_path)[0]
    campaigns(curves={("none", ""): [0.5, 0.6], ("best matching", ""): [0.6, 0.6]}).to_csv(
        tmp_path / "diversity.csv", index=False
    )
    assert any("| best matching | 0.6000 ± 0.0000 | +0.0500 |" in line for line in measured(tmp_path))
