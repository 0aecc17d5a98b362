"""The code of docs/learners.md runs from top to bottom."""

import re
from importlib.util import find_spec
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "learners.md"


def test_the_page_runs():
    names = {}
    pattern = r"^```python(?: needs (\w+))?\n(.*?)^```"
    blocks = re.findall(pattern, PAGE.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert len(blocks) >= 3
    for package, block in blocks:
        if not package or find_spec(package) is not None:
            exec(block, names)
