"""The parts of benchmarks/selection.py, on tiny problems."""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the benchmark reads memory from Linux's /proc"
)


@pytest.fixture(scope="module")
def bench() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        spec = importlib.util.spec_from_file_location("bench_selection", BENCHMARKS / "selection.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "bench_selection", module)
        spec.loader.exec_module(module)
        yield module


def row(bench: Any, kernel: str, form: str, cell: Any, seconds: float, **more: Any) -> dict[str, Any]:
    rest = {"peak_mib": 1.0, "own_mib": 1.0, "quality": None, "repeats": 3, "note": ""}
    return {"kernel": kernel, "form": form, **vars(cell), "threads": 2, "seconds": seconds, **rest, **more}


def test_plain_forms_pick_what_ally_picks(bench: Any) -> None:
    bench.check_twins()


@pytest.mark.parametrize(
    ("kernel", "form"),
    [("Coreset", "ally"), ("ClusterTop", "scikit-learn"), ("ALLY query", "ally"), ("ally.query", "ally")],
)
def test_a_measurement_gives_seconds_memory_and_what_was_picked(
    bench: Any, tmp_path: Path, kernel: str, form: str
) -> None:
    cell = bench.Cell("mixture", 3_000, 8, 3, 20)
    bench.write(tmp_path, cell, None)
    ours, theirs = multiprocessing.Pipe()
    bench.measure(theirs, bench.Job(kernel, form, (cell,)), tmp_path, torch.get_num_threads(), 2)
    messages = [ours.recv() for _ in range(3)]
    assert [name for name, _ in messages] == ["start", "ran", "done"]
    found, figures, rows = messages[2][1]
    assert found == cell
    assert figures["seconds"] > 0
    assert figures["repeats"] == 2
    if kernel in ("Coreset", "ALLY query"):
        assert len(np.unique(rows)) == 20
    if kernel == "ClusterTop":
        assert figures["quality"] > 0
    if kernel == "ally.query":
        assert "train" in figures["note"]


def test_a_larger_pool_begins_with_the_smaller_one(bench: Any, tmp_path: Path) -> None:
    bench.write(tmp_path, bench.Cell("mixture", 500, 8, 3), None)
    small, large = (
        bench.load(tmp_path, bench.Cell("mixture", n, 8, 3), mapped) for n, mapped in ((200, False), (500, True))
    )
    assert torch.equal(small.h, large.h[:200])
    torch.testing.assert_close(large.p.sum(1), torch.ones(500))


def test_goals_compare_forms_of_the_same_cell(bench: Any) -> None:
    cell, other = bench.Cell("mnist", 20_000), bench.Cell("mixture", 20_000)
    rows = [
        row(bench, "Coreset", "ally", cell, 0.1),
        row(bench, "Coreset", "scikit-activeml", cell, 2.0),
        row(bench, "Coreset", "ally", other, 0.1),
        row(bench, "Coreset", "scikit-activeml", other, 0.5),
    ]
    found = {goal.data: (goal.measured, goal.met) for goal in bench.goals(bench.Figures(rows))}
    assert found == {"mnist": ("20×", True), "mixture": ("5×", False)}


def test_growth_is_the_slope_on_logarithmic_scales(bench: Any) -> None:
    rows = [row(bench, "LCMD", "ally", bench.Cell("mnist", n), 3e-6 * n**1.25) for n in bench.SIZES]
    assert bench.Figures(rows).exponent("LCMD", "mnist") == pytest.approx(1.25)
    assert bench.Figures(rows[1:]).exponent("LCMD", "mnist") is None


def test_tables_go_between_their_marks_from_the_stored_figures(bench: Any, tmp_path: Path) -> None:
    cell = bench.Cell("mixture", 20_000)
    measured = bench.Bench(tmp_path, {}, None, None, threads=2, repeats=3, out=tmp_path / "figures.csv")
    for form, seconds in (("ally", 0.5), ("unpruned", 9.0), ("ally", 0.25)):
        full = row(bench, "BADGE", form, cell, seconds)
        measured.add(bench.Job("BADGE", form, (cell,)), cell, {name: full[name] for name in bench.COLUMNS[8:]})
    rows = bench.stored(tmp_path / "figures.csv")
    assert rows == measured.rows
    assert [each["seconds"] for each in rows] == [9.0, 0.25]
    page = tmp_path / "page.md"
    page.write_text(f"before\n{bench.MARKS[0]}\nold\n{bench.MARKS[1]}\nafter\n", encoding="utf-8")
    bench.write_page(rows, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{bench.MARKS[0]}\n")
    assert text.endswith(f"{bench.MARKS[1]}\nafter\n")
    assert "old" not in text
    assert "| BADGE | mixture | 20,000 | 128 | 10 | 200 | unpruned | 9 | 36× |" in text


def test_a_comparison_is_done_when_all_its_figures_are_there(bench: Any) -> None:
    cell = bench.Cell("mixture", 20_000)
    jobs = bench.comparison("Coreset", cell, "unpruned", "scikit-activeml")
    rows = [row(bench, "Coreset", form, cell, 1.0) for form in ("ally", "unpruned")]
    assert bench.done_before(rows, jobs, threads=2, peers=False)
    assert not bench.done_before(rows, jobs, threads=2, peers=True)
    assert not bench.done_before(rows, jobs, threads=1, peers=False)
    assert not bench.done_before(rows[:1], jobs, threads=2, peers=False)


def test_the_page_has_the_marks(bench: Any) -> None:
    text = bench.PAGE.read_text(encoding="utf-8")
    assert text.index(bench.MARKS[0]) < text.index(bench.MARKS[1])
