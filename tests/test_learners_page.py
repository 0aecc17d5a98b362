"""The code of docs/learners.md runs from top to bottom."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "learners.md"


def test_the_page_runs():
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, names)
