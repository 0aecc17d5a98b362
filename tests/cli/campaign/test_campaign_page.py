"""Commands that docs/campaign.md names in its sentences run too, in its order, after three queries as on the page."""

import getpass
import re
import shlex
from pathlib import Path

import pytest
from PIL import Image

import ally as library

PAGE = (Path(__file__).parents[3] / "docs" / "campaign.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`ally ([^`]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL))
ELSEWHERE = {"new NAME", "new postgresql://user@host/pets --from photos"}
"""What has no place of its own, and what needs a server."""
SERVES = "label "
"""This one runs until it is stopped; tests/web run it."""
# A single word only mentions a command.
COMMANDS = [words for words in NAMED if " " in words and words not in ELSEWHERE and not words.startswith(SERVES)]


@pytest.fixture
def digits(ally, tmp_path, fill):
    (tmp_path / "photos").mkdir()
    for n in range(80):
        Image.new("L", (32, 32), 3 * n).save(tmp_path / "photos" / f"{n:03}.png")
    truth = {f"{n:03}.png": n % 10 for n in range(80)}
    classes = ",".join(map(str, range(10)))
    ally(
        "new",
        "digits",
        "--from",
        "photos",
        "--classes",
        classes,
        "--size",
        8,
        "--model",
        "mlp",
        "--by-hand",
        "--evaluate",
        20,
    )
    for _ in range(3):
        ally("ask", "digits", "--annotator", "ann", "--out", "next.csv")
        fill("next.csv", truth)
        ally("tell", "digits", "next.csv")
    ally("retrain", "digits")
    ally("export", "digits", "labels.csv")
    ally("export", "digits", "by-class")


def test_commands_in_sentences(ally, digits, tmp_path):
    assert len(COMMANDS) >= 14
    for words in COMMANDS:
        if "NEWPLACE" in words:
            (tmp_path / "photos").rename(tmp_path / "NEWPLACE")
        ally(*shlex.split(words))
    with library.Campaign.open("digits.db") as campaign:
        assert campaign.settings.classes == (*range(10), "none")
        assert ("012.png", 7, "ann") in {
            (answer.sample, answer.value, answer.annotator) for answer in campaign.answers.all()
        }
        assert {answer.annotator for answer in campaign.answers.all()} <= {"ann", "import", getpass.getuser()}
        ally("tell", "digits", "014.png=none")
        assert campaign.labels()["014.png"] == "none"
