"""`ally strategies`: the list at any width, one card in full, JSON, and names that do not exist."""

import io
import json
from functools import partial

import pytest
from rich.cells import cell_len
from rich.console import Console

import ally
from ally.cards import CARDS, FAMILIES
from ally.cli import strategies as listing


@pytest.fixture
def run(command):
    return partial(command, "strategies")


@pytest.fixture
def shown(monkeypatch):
    """What the command writes to a terminal of that width, without starting a process."""

    def show(columns, name=None):
        out = io.StringIO()
        monkeypatch.setattr(listing, "stdout", Console(file=out, width=columns))
        listing.strategies(name)
        assert max(map(cell_len, out.getvalue().splitlines())) <= columns
        return out.getvalue()

    return show


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_list_fits_and_is_grouped_by_family(shown, columns):
    written = shown(columns)
    first = [line.split()[0] for line in written.splitlines() if line.strip()]
    places = [first.index(family) for family in FAMILIES]
    assert places == sorted(places)
    for name, card in CARDS.items():
        family = max(place for place in places if place < first.index(name))
        assert first[family] == card.family, name
    text = " ".join(written.split())
    if columns < listing.WIDE:
        assert all(card.use_when in text for card in CARDS.values())
        assert "both · embeddings · at worst O((L + b)nd)" in text
    else:
        assert "strategy tasks needs cost use it when" in text


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_one_card_in_full(shown, columns):
    text = " ".join(shown(columns, "ally-clusters").split())
    card = CARDS["ally-clusters"]
    for said in (card.use_when, card.cost.time, card.references[0].title, *card.equation.split("\n")):
        assert " ".join(said.split()) in text, said
    assert "shortlist 20" in text
    assert "ClusterTop's own default: None" in text
    assert 'ally.query(X, y, n=20, strategy="ally-clusters")' in text
    assert "objective=PDCL(eps=0.01, dual_cap=10.0)," in text


@pytest.mark.parametrize("name", ally.CATALOGUE)
def test_every_card_can_be_shown(shown, name):
    assert shown(80, name).startswith(f"{name}: ")


def test_json_holds_everything(run):
    rows = json.loads(run("--json").stdout)
    assert [row["name"] for row in rows] == list(ally.CATALOGUE)
    for row in rows:
        card = CARDS[row["name"]]
        assert row["equation"] == card.equation
        assert row["cost"] == {"time": card.cost.time, "memory": card.cost.memory}
        assert [reference["title"] for reference in row["references"]] == [
            reference.title for reference in card.references
        ]
    one = json.loads(run("badge", "--json").stdout)
    assert one == rows[list(ally.CATALOGUE).index("badge")]


def test_an_unknown_name_is_answered_with_a_suggestion(run):
    done = run("bagde")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: unknown strategy 'bagde'; did you mean 'badge'? known: ally,")
