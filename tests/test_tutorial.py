"""The code of docs/own-strategy.md runs from top to bottom and prints what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from doc_commands import quick_choice

DOCS = Path(__file__).parent.parent / "docs"
TUTORIAL = (DOCS / "own-strategy.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", TUTORIAL, flags=re.DOTALL)


def shape_of(text):
    """Words stay, numbers and their signs do not: the last digits differ between processors."""
    return [re.sub(r"\s+", " ", re.sub(r"-?[\d.]+", "#", line)).strip() for line in text.strip().splitlines()]


pytestmark = [pytest.mark.long, pytest.mark.xdist_group("own-strategy.md")]


@pytest.fixture(scope="module")
def ran():
    """The namespace afterwards, and what each block printed; with fewer epochs than the page has."""
    namespace, printed = {}, []
    *first, last = blocks("python")
    assert "epochs=30" in last
    for block in (*first, last.replace("epochs=30", "epochs=15")):
        out = io.StringIO()
        with quick_choice(), contextlib.redirect_stdout(out):
            exec(compile(block, "own-strategy.md", "exec"), namespace)
        printed.append(out.getvalue())
    return namespace, [text for text in printed if text]


def test_blocks_print_what_is_shown(ran):
    assert [shape_of(text) for text in ran[1]] == [shape_of(text) for text in blocks("text")]


def test_the_strategy_is_about_twenty_lines():
    code = blocks("python")[0]
    lines = [line for line in code[code.index("@dataclass") :].splitlines() if line.strip()]
    assert len(lines) <= 22


def test_the_campaign_is_a_comparison(ran):
    found = ran[0]["found"].set_index("strategy")
    assert list(found.index) == ["random", "margin", "mine"]
    assert (found["seeds"] == 3).all()
    assert found["curve_mean"].between(0.7, 1.0).all()


@pytest.mark.parametrize("path", re.findall(r"\]\(((?!http)[^)#]+)\)", TUTORIAL))
def test_links_exist(path):
    assert (DOCS / path).exists()
