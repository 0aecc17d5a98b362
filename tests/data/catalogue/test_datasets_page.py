"""What docs/datasets.md says, run and compared with the catalogue."""

import re
from pathlib import Path

import numpy as np
import pytest

from ally.data.catalogue import DATASETS, load
from ally.errors import DataError

PAGE = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text(encoding="utf-8")


def test_the_page_names_every_data_set_and_its_size():
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    for name, entry in DATASETS.items():
        line = next(line for line in lines if f"`{name}`" in line)
        assert ("fetched" if entry.files and entry.fetchable else "by hand" if entry.files else "built in") in line, (
            name
        )
        if "rows" not in line:
            assert entry.size.split(",")[0] in line, name


def test_the_example_of_an_own_entry_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(DATASETS, "_entries", dict(DATASETS._entries))
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[-1]
    exec(compile(code, "docs/datasets.md", "exec"), {})
    (tmp_path / "mine").mkdir()
    np.savetxt(tmp_path / "mine" / "mine.txt", np.random.default_rng(0).normal(size=(100, 4)))
    data = load("mine", tmp_path)
    assert (data.pool.shape, data.test.shape, data.task) == ((80, 3), (20, 3), "regression")
    (tmp_path / "mine" / "mine.txt").unlink()
    with pytest.raises(DataError, match=r"it cannot be downloaded: put mine\.txt into mine/"):
        load("mine", tmp_path)
