"""The README's examples run, and the output it shows has the shape of the real one."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from PIL import Image

from ally.learning.objectives import OBJECTIVES, SmoothUnlabelled
from doc_commands import quick_choice

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def shape_of(text):
    """Words stay, numbers do not: the last digits differ between processors."""
    return [re.sub(r"\s+", " ", re.sub(r"[\d.]+", "#", line)).strip() for line in text.strip().splitlines()]


@pytest.mark.long
def test_examples_run_in_order_and_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(OBJECTIVES._entries, "smooth-unlabelled", SmoothUnlabelled(steps=10))  # 1500 take long
    (tmp_path / "photos").mkdir()
    for number in range(40):
        Image.new("RGB", (32, 32), (6 * number, 0, 0)).save(tmp_path / "photos" / f"{number}.png")
    namespace = {}
    printed = []
    for block in blocks("python"):
        out = io.StringIO()
        with quick_choice(), contextlib.redirect_stdout(out):
            exec(compile(block, "README.md", "exec"), namespace)
        printed.append(out.getvalue())
    assert len(printed) >= 5
    assert shape_of(printed[0]) == shape_of(blocks("text")[0])


def test_first_example_is_ten_lines():
    code = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(code) <= 10


@pytest.mark.parametrize("path", re.findall(r"\]\(((?!http)[^)#]+)\)", README))
def test_links_exist(path):
    assert (Path(__file__).parent.parent / path).exists()
