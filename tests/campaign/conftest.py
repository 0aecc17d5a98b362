from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from ally import Campaign


class Clock:
    """A clock that only advances when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def digits(n: int, classes: int = 3) -> tuple[Any, list[str]]:
    X, y = load_digits(return_X_y=True)
    keep = np.flatnonzero(y < classes)[:n]
    return X[keep], [f"digit {label}" for label in y[keep]]


Table = tuple[Path, dict[str, str]]


@pytest.fixture(scope="session")
def write_digits() -> Callable[[Path], Table]:
    """Writes a CSV file of 300 digits of three kinds with ids to a folder. Returns its path and the hidden labels."""

    def write(folder: Path) -> Table:
        X, y = digits(300)
        frame = pd.DataFrame(X, columns=[f"pixel{number}" for number in range(64)])
        frame.insert(0, "id", [f"s{number:03d}" for number in range(len(frame))])
        frame.to_csv(folder / "digits.csv", index=False)
        return folder / "digits.csv", dict(zip(frame["id"], y, strict=True))

    return write


@pytest.fixture
def table(tmp_path: Path, write_digits: Callable[[Path], Table]) -> Table:
    return write_digits(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder of 60 pictures of two kinds, in two subfolders that say nothing about the kind."""
    X, y = digits(60, classes=2)
    folder = tmp_path / "photos"
    truth = {}
    for number, (values, label) in enumerate(zip(X, y, strict=True)):
        id = f"{'ab'[number % 2]}/{number}.png"
        (folder / id).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((values.reshape(8, 8) * 15.9).astype(np.uint8)).resize((32, 32)).save(folder / id)
        truth[id] = label
    return folder, truth


@pytest.fixture(scope="session")
def answer_all() -> Callable[..., int]:
    """Labels a batch correctly. Returns the number of the query."""

    def answer(campaign: Campaign, truth: dict[str, Any], n: int | None = None, **asking: Any) -> int:
        query = campaign.ask(n, **asking)
        campaign.tell(query.id, {id: truth[id] for id in query.ids})
        return query.id

    return answer
