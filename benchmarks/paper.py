"""The paper's experiments, cell by cell over several sittings, and the page that sets them beside its claims.

    python benchmarks/paper.py NAME [NAME ...] [--scale small] [--data-dir DATA] [--workers 2] [--runs FOLDER] [--seeds
    K] [--data NAME ...]
        [--protocol paper] [--strategy NAME ...]
    python benchmarks/paper.py --page

NAME is one of `ally paper list`. Finished campaigns go to results/paper/NAME-SCALE-PROTOCOL.csv and are not run again;
unfinished ones stay in FOLDER. --seeds K runs the first K seeds only, --data some data sets only, --strategy some
strategies only. What is to be known of the data and the scale goes to a .json file beside them. --page writes the
tables and figures of docs/reproduction.md from those files, and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ally.experiment import run_grid
from ally.experiment.cell import Cell
from ally.experiment.estimate import in_words
from ally.experiment.folder import Grid, data_notes, trial
from ally.experiment.presets import PRESETS, Scale
from ally.experiment.protocol import PROTOCOLS, Protocol
from ally.files import write_whole
from ally.metrics import metric_named
from ally.report import summarise
from ally.report.figure import draw
from ally.report.grid import read_results
from ally.report.statistics.series import add_series

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "paper"
PAGE = HERE.parent / "docs" / "reproduction.md"
FIGURES = HERE.parent / "docs" / "reproduction"
KEY = ["dataset", "model", "objective", "setting", "strategy", "seed", "batch", "protocol"]
FORMER = r"^ally(?=$|,)"
MARKS = "<!-- results: written by benchmarks/paper.py -->", "<!-- end of results -->"


def read(path: Path) -> pd.DataFrame | None:
    return renamed(pd.read_csv(path, keep_default_na=False)) if path.exists() else None


def renamed(results: pd.DataFrame) -> pd.DataFrame:
    """Strategies by their names of today: `ally-clusters` was recorded as ally."""
    return results.assign(strategy=results["strategy"].str.replace(FORMER, "ally-clusters", regex=True))


def done(results: pd.DataFrame | None) -> dict[tuple[object, ...], int]:
    """The last round of every campaign."""
    if results is None:
        return {}
    return {tuple(which): int(last) for which, last in results.groupby(KEY)["round"].max().items()}


@dataclass(frozen=True)
class Order:
    """What to run of an experiment."""

    name: str
    scale: Scale
    protocol: Protocol
    data_dir: Path | None
    workers: int
    runs: Path
    seeds: int | None
    data: list[str] | None
    strategies: list[str] | None

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.scale}-{self.protocol}"

    def wants(self, dataset: str, cell: Cell) -> bool:
        return (
            (self.seeds is None or cell.seed < self.seeds)
            and (self.data is None or dataset in self.data)
            and (self.strategies is None or cell.strategy in self.strategies)
        )


def run(order: Order) -> None:
    preset = PRESETS[order.name]
    if preset.make is None:
        raise SystemExit(f"{order.name} is no grid; run: ally paper run {order.name}")
    out, workers, data_dir = RESULTS / f"{order.stem}.csv", order.workers, order.data_dir
    before = read(out)
    last = done(before)
    grid = preset.build(order.scale, data_dir, order.protocol)
    todo = [
        (dataset, cell)
        for dataset, cell in grid.cells
        if last.get(cell.identity(dataset), -1) < cell.rounds and order.wants(dataset, cell)
    ]
    print(f"{order.stem}: {len(todo)} campaigns to run", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(todo), 4 * workers):
        group = todo[start : start + 4 * workers]
        wanted = {cell.identity(dataset) for dataset, cell in group}
        found = run_grid(partial(trial, data_dir, None, "auto"), group, order.runs / order.stem, workers)
        fresh = found[[tuple(row) in wanted for row in found[KEY].itertuples(index=False)]]
        if before is not None:
            kept = before[[tuple(row) not in wanted for row in before[KEY].itertuples(index=False)]]
            fresh = pd.concat([kept, fresh], ignore_index=True)
        before = fresh
        write_whole(out, before.to_csv(index=False).encode())
        known = {"name": order.name, "scale": order.scale, "protocol": order.protocol, **about(grid, before, data_dir)}
        write_whole(out.with_suffix(".json"), json.dumps(known, indent=2, ensure_ascii=False).encode() + b"\n")
        print(f"  {start + len(group)} of {len(todo)}", flush=True)


def about(grid: Grid, results: pd.DataFrame, data_dir: Path | None) -> dict[str, Any]:
    """What a reader of the results has to know, and what of the grid they do not hold."""
    ran = list(dict.fromkeys(results["dataset"]))
    notes = [
        *([grid.substitute] if grid.substitute else []),
        *grid.notes,
        *data_notes(partial(trial, data_dir, None, "auto"), ran),
    ]
    gone = [name for name in dict.fromkeys(name for name, _ in grid.cells) if name not in ran]
    return {"notes": notes, "seeds": len({cell.seed for _, cell in grid.cells}), "not run": gone}


def section(path: Path) -> str:
    """The figure and the table of one experiment."""
    known = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    name, scale, protocol = known["name"], known["scale"], known["protocol"]
    results = renamed(read_results(path))
    preset = PRESETS[name]
    summary = summarise(results)
    FIGURES.mkdir(exist_ok=True)
    draw(summary).savefig(FIGURES / f"{path.stem}.png", dpi=90)
    taken = in_words(results["train_seconds"].sum() + results["query_seconds"].sum())
    seeds = results["seed"].nunique()
    counted = f"{seeds} seed{'' if seeds == 1 else 's'}" + (f" of {known['seeds']}" if seeds < known["seeds"] else "")
    facts = f"Scale {scale}, protocol {protocol}, {counted}, {taken} of one core in training and queries."
    lines = [f"#### {name} ({scale}, {protocol})", "", f"{preset.title}; {preset.figure} of the paper. {facts}", ""]
    lines += [f"![learning curves of {name}](reproduction/{path.stem}.png)", ""]
    columns = (
        "data",
        "series",
        "seeds",
        "mean over the curve",
        "final",
        "gain on the baseline",
        "95 % interval",
        "labels to target",
        "positive duals",
        "rank quality",
        "s per query",
    )
    lines += [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    of_series = add_series(results).groupby(["dataset", "series"])[["positive_duals", "rank_quality"]].mean()
    need = {(e.dataset, e.series): str(e.labels) for e in summary.efficiencies}
    for c in summary.comparisons:
        digits = metric_named(c.metric).digits(c.curve_mean)
        gain = "" if c.gain is None else f"{c.gain:+.{digits}f}"
        interval = "" if c.low is None or c.high is None else f"{c.low:+.{digits}f} … {c.high:+.{digits}f}"
        mean, final = (
            f"{c.curve_mean:.{digits}f}",
            f"{c.final:.{digits}f}" + (f" ± {c.final_std:.{digits}f}" if c.seeds > 1 else ""),
        )
        labels = need.get((c.dataset, c.strategy), "")
        seconds = "" if math.isnan(c.seconds) else f"{c.seconds:.2f}"
        duals = ["" if math.isnan(value) else f"{value:.2f}" for value in of_series.loc[(c.dataset, c.strategy)]]
        values = (c.dataset, c.strategy, c.seeds, mean, final, gain, interval, labels, *duals, seconds)
        lines.append(f"| {' | '.join(map(str, values))} |")
    targets = [f"{t.value:.4g} on {t.dataset} (set by {t.series})" for t in summary.targets.values()]
    lines += ["", f"Target: {'; '.join(targets)}."] if targets else []
    lines += ["", *summary.gaps] if summary.gaps else []
    notes = known["notes"] + ([f"not run: {', '.join(known['not run'])}"] if known["not run"] else [])
    lines += ["", "Notes:", "", *(f"- {note}" for note in notes)] if notes else []
    return "\n".join(lines)


def write_page() -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    order = list(PRESETS)
    known = {
        path: json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["name"]
        for path in RESULTS.glob("*.csv")
    }
    files = sorted(known, key=lambda path: (order.index(known[path]), -path.stem.count("-paper"), path.stem))
    body = "\n\n".join(section(path) for path in files)
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{body}\n\n{MARKS[1]}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--scale", choices=["smoke", "small", "full"], default="small")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=Path("runs") / "paper")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--data", nargs="*")
    parser.add_argument("--strategy", nargs="*")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="paper")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    for name in given.names:
        run(
            Order(
                name,
                given.scale,
                given.protocol,
                given.data_dir,
                given.workers,
                given.runs,
                given.seeds,
                given.data,
                given.strategy,
            )
        )
    if given.page:
        write_page()


if __name__ == "__main__":
    main()
