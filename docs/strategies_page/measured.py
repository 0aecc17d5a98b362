"""Tables of what was measured, from the files that ``benchmarks/catalogue.py`` left in benchmarks/results.

``catalogue.csv``, ``catalogue_digits.csv``, ``diversity.csv`` and ``objectives.csv`` have the columns of
`ally.experiment.COLUMNS`; one table is made for every data set, model and batch. ``catalogue_cost.csv`` has strategy,
setting, query_seconds and peak_mib.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from ally.report import Comparison, compare
from ally.strategies import CATALOGUE

TOGETHER = ["dataset", "model", "batch"]


def measured(folder: Path) -> list[str]:
    """Lines of Markdown; a sentence where nothing was measured yet."""
    parts: dict[str, tuple[str, Callable[[pd.DataFrame], list[str]]]] = {
        "catalogue.csv": ("Every strategy, trained as its entry says", lambda results: by_strategy(results, "random")),
        "catalogue_digits.csv": ("The same on small data", lambda results: by_strategy(results, "random")),
        "diversity.csv": (
            "One score, the predicted dual, with each way to make a batch",
            lambda results: by_strategy(results, "none"),
        ),
        "objectives.csv": ("Training objectives", by_objective),
        "catalogue_cost.csv": ("Time and memory of one query", cost_table),
    }
    lines: list[str] = []
    for file, (title, tabulate) in parts.items():
        if (folder / file).exists():
            results = pd.read_csv(folder / file, keep_default_na=False)
            lines += [f"### {title}", "", f"From `benchmarks/results/{file}`.", "", *tabulate(results)]
    if not lines:
        return [
            "No results of the whole catalogue are in `benchmarks/results` yet; [measurements.md](measurements.md) "
            "has what was run.",
            "",
        ]
    return [
        "Means are of the test metric over the rounds after the first, ± the standard deviation over seeds. "
        "Differences are paired by",
        "seed, positive is better, with a 95 % interval (Student's t over seeds); it is not corrected for the number "
        "of rows. Seconds per",
        "query are medians on a busy machine. `benchmarks/catalogue.py` says what was run, "
        "[measurements.md](measurements.md) where.",
        "A row with one seed is a hint and no result: seeds differ by about .003 on MNIST and .02 on digits. What a "
        "table lacks was",
        "not run: on images VAAL took too long here, and BatchBALD asks for a handful at a time; `lcmd`, `typiclust`, "
        "`uherding`,",
        "`pdcl-unlabelled` and `ally-unlabelled` have changed since MNIST was run and were not run again. "
        "accumulated-smoothness is",
        "`ally-clusters` with `smooth-unlabelled` and, for want of duals, the smoothness loss of each candidate added "
        "up over the training;",
        "there is no such strategy any more.",
        "",
        *lines,
    ]


def by_strategy(results: pd.DataFrame, baseline: str) -> list[str]:
    """A row per strategy, best first, each against the baseline on the same seeds."""
    lines: list[str] = []
    for _, part in results.groupby(TOGETHER, sort=False):
        named = part.assign(strategy=_named(part), setting="")
        spread, found = _spread(named), compare(named, baseline)
        found.sort(key=lambda c: c.curve_mean, reverse=found[0].metric == "accuracy")
        head = [
            "strategy",
            f"mean {found[0].metric}",
            f"difference to {baseline}",
            "95 % interval",
            "seeds",
            "s / query",
        ]
        rows = [
            [_code(c.strategy), _mean(c, spread), _gain(c), _interval(c), str(c.seeds), _seconds(c.seconds)]
            for c in found
        ]
        lines += [_heading(part), "", *table(head, rows), ""]
    return lines


def by_objective(results: pd.DataFrame) -> list[str]:
    """A row per objective (the setting) and strategy, against random trained alike, and against erm under the same
    strategy."""
    lines: list[str] = []
    for _, part in results.groupby(TOGETHER, sort=False):
        plain = {
            (c.strategy, strategy): c
            for strategy, rows in part.groupby("strategy", sort=False)
            if "erm" in set(rows["setting"])
            for c in compare(rows.assign(strategy=rows["setting"], setting=""), "erm")
        }
        rows = []
        for objective, trained in part.groupby("setting", sort=False):
            alike = trained.assign(setting="")
            spread = _spread(alike)
            for c in compare(alike, "random"):
                other = plain.get((str(objective), c.strategy))
                gains = [_both(c), "–" if other is None else _both(other)]
                rows.append([_code(str(objective)), _code(c.strategy), _mean(c, spread), *gains, str(c.seeds)])
        metric = str(part["metric"].iloc[0])
        head = [
            "objective",
            "strategy",
            f"mean {metric}",
            "difference to random, 95 % interval",
            "difference to erm, 95 % interval",
            "seeds",
        ]
        lines += [_heading(part), "", *table(head, rows), ""]
    return lines


def cost_table(costs: pd.DataFrame) -> list[str]:
    """Medians by strategy, fastest first; what is not a strategy of the catalogue comes after."""
    medians = (
        costs.assign(strategy=_named(costs)).groupby("strategy")[["query_seconds", "peak_mib"]].median().reset_index()
    )
    medians["other"] = [name.split(" (")[0] not in CATALOGUE for name in medians["strategy"]]
    rows = [
        [_code(str(name)), _seconds(float(seconds)), f"{float(peak):.0f}"]
        for name, seconds, peak, _ in medians.sort_values(["other", "query_seconds"]).itertuples(index=False)
    ]
    return [*table(["strategy", "seconds", "peak MiB above that before the query"], rows), ""]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines]


def _named(part: pd.DataFrame) -> list[str]:
    """A strategy with the setting it was run in, where that is not the plain one."""
    return [
        f"{name} ({setting})" if setting else str(name)
        for name, setting in zip(part["strategy"], part["setting"], strict=True)
    ]


def _code(name: str) -> str:
    """Names that can be typed look like it."""
    plain, space, rest = name.partition(" ")
    return f"`{plain}`{space}{rest}" if plain in CATALOGUE else name


def _heading(part: pd.DataFrame) -> str:
    dataset, model, batch = (part[name].iloc[0] for name in TOGETHER)
    return (
        f"**{dataset}**, model {model}, {part['labels'].min()} to {part['labels'].max()} labels in batches of {batch}:"
    )


def _spread(part: pd.DataFrame) -> dict[str, float]:
    """Standard deviation over seeds of the mean over rounds after the first."""
    curves = part[part["round"] > 0].groupby(["strategy", "seed"])["value"].mean()
    return {str(name): float(value) for name, value in curves.groupby("strategy").std().items()}


def _digits(c: Comparison) -> int:
    return 4 if c.metric == "accuracy" else 3


def _mean(c: Comparison, spread: dict[str, float]) -> str:
    many = "" if c.seeds < 2 else f" ± {spread[c.strategy]:.{_digits(c)}f}"
    return f"{c.curve_mean:.{_digits(c)}f}{many}"


def _gain(c: Comparison) -> str:
    return "–" if c.gain is None else f"{c.gain:+.{_digits(c)}f}"


def _interval(c: Comparison) -> str:
    return "–" if c.low is None or c.high is None else f"{c.low:+.{_digits(c)}f} … {c.high:+.{_digits(c)}f}"


def _both(c: Comparison) -> str:
    return _gain(c) if c.low is None else f"{_gain(c)}, {_interval(c)}"


def _seconds(value: float) -> str:
    return "–" if value != value else f"{value:.2f}" if value < 10 else f"{value:.0f}"
