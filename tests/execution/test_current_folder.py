"""Settings files that libraries read from the current folder, which may have come with somebody else's data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(code: str, folder: Path, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=folder, capture_output=True, text=True, env={**kept, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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
