"""What docs/sources.md shows, run from top to bottom."""

import re
from pathlib import Path

from ally.sources.rows.columns import MOST_CATEGORIES
from ally.sources.rows.lines import LONGEST_LINE
from ally.sources.text import FEATURES

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")


def test_the_examples_run(photos, monkeypatch, capsys):
    monkeypatch.chdir(photos.parent)
    (photos / "broken.jpg").write_bytes(b"")
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(code, "docs/sources.md", "exec"), names)
    assert capsys.readouterr().out == "broken.jpg: unreadable: the file is empty\n"
    assert (photos.parent / "by-class/cat/cat/1.jpg").is_file()
    assert names["samples"].show("cat/1.jpg").mime == "image/jpeg"


def test_the_numbers_are_those_of_the_code():
    assert f"the {FEATURES} commonest words" in PAGE
    assert f"more than {MOST_CATEGORIES} values" in PAGE
    assert LONGEST_LINE == 16 * 2**20
