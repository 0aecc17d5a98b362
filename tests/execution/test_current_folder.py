"""Settings files that libraries read from the current folder, which may have come with somebody else's data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(code: str, folder: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True, env={**kept, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SHADOWS = ("json", "multiprocessing", "contextlib", "importlib", "threading", "pickle")
"""Modules that a Python imports at once when it is started, here from the current folder if it may."""


def plant_modules(folder: Path) -> Path:
    """Modules that leave a marker when they are imported; returns the marker's place."""
    marker = folder.parent / "imported"
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name!r})\nraise ImportError\n")
    return marker


def test_modules_in_the_current_folder_are_not_those_of_processes_that_are_started(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    marker = plant_modules(folder)
    code = """
from ally.catalogue_names import ensure_model
from ally.experiment.workers import work_through

if __name__ == "__main__":
    print([one.result for one in work_through(abs, [(-3,)], 1) if one])
    ensure_model("sklearn.ensemble:ExtraTreesClassifier")
"""
    (tmp_path / "program.py").write_text(code)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], cwd=folder, capture_output=True, text=True, env=kept
    )
    assert (done.stdout, done.returncode) == ("[3]\n", 0), done.stderr
    assert not marker.exists()


def test_a_training_of_its_own_process_imports_nothing_from_the_current_folder(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    rows = "".join(f"s{n},{n % 2},{n / 10}\n" for n in range(40))
    (folder / "rows.csv").write_text(f"id,x,z\n{rows}")
    marker = plant_modules(folder)
    code = """
import time
from ally import Campaign
with Campaign.create("pets.db", "rows.csv", classes=["a", "b"], model="linear", automatic=False) as campaign:
    campaign.relabel({f"s{n}": "ab"[n % 2] for n in range(20)})
    campaign.retrain(wait=False)
    end = time.monotonic() + 60
    while not campaign.training.has_model and time.monotonic() < end:
        time.sleep(0.1)
    print(campaign.training.has_model)
"""
    assert run(code, folder, ALLY_STATE=str(tmp_path / "state")) == "True"
    assert not marker.exists()


@pytest.mark.parametrize("text", ["- a list", "a: [", "cache_dir: &a [*a, *a]", "disable_jit: 1"])
def test_settings_of_numba_in_the_current_folder_are_not_read(tmp_path, text):
    (tmp_path / ".numba_config.yaml").write_text(text)
    code = """
import sys, yaml
from ally.selection import kcenter
import numba
numba.njit(lambda x: x + 1)(1)
print(numba.config.DISABLE_JIT, sys.modules["yaml"] is yaml)
"""
    assert run(code, tmp_path) == "0 True"


def test_a_cache_of_compiled_code_in_the_current_folder_is_not_used(tmp_path):
    (tmp_path / ".numba_config.yaml").write_text(f"cache_dir: {tmp_path}/planted\ncache_locator_classes: os.abort\n")
    shown = "import numba; print(numba.config.CACHE_DIR)"
    assert run(shown, tmp_path).endswith("planted"), "numba no longer reads the file: the guard can go"
    code = "from ally.selection import kcenter; import numba; print(numba.config.CACHE_DIR or 'its own')"
    assert run(code, tmp_path) == "its own"
    assert not (tmp_path / "planted").exists()
    assert run(code, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "mine")).endswith("mine"), "the user's own choice counts"


def test_a_style_in_the_current_folder_starts_no_latex(tmp_path):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nfont.size: 40\n")
    code = """
import matplotlib
assert matplotlib.rcParams["text.usetex"]
from ally.drawing import use_own_style
with use_own_style():
    from matplotlib.figure import Figure
    figure = Figure()
    figure.suptitle("a price of $5 or $\\\\frac$")
    figure.savefig("out.png")
    print(matplotlib.rcParams["text.usetex"], matplotlib.rcParams["font.size"])
"""
    assert run(code, tmp_path) == "False 10.0"
    assert (tmp_path / "out.png").stat().st_size > 0


@pytest.mark.parametrize("planted", ["pipe", "no text", "escapes"])
def test_a_style_that_is_none_ends_in_a_sentence(tmp_path, planted):
    style = tmp_path / "matplotlibrc"
    if planted == "pipe":
        os.mkfifo(style)
    else:
        style.write_bytes(b"\xff\xfe: 1\n" if planted == "no text" else b"\x1b[2J: 1\nno line\n")
    code = """
from ally.drawing import use_own_style
from ally.errors import InputError
try:
    with use_own_style():
        print("drawn")
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert "\x1b" not in done.stdout + done.stderr
    expected = "drawn" if planted == "escapes" else "matplotlibrc in the current folder"
    assert done.stdout.startswith(expected), done.stderr
