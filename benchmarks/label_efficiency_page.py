"""Tables and figures of docs/label-efficiency.md from the campaigns that were run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata, studentized_range

from ally.metrics import metric_named
from ally.report import summarise
from ally.report.figure import draw
from ally.report.grid import read_results
from ally.report.statistics.curves import curves_by_seed
from ally.report.statistics.efficiency import efficiencies, label_ratio
from ally.report.statistics.series import add_series
from ally.report.statistics.significance import holm, paired_tests

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FIGURES = DOCS / "label-efficiency.md", DOCS / "label-efficiency"
MARKS = "<!-- results: written by benchmarks/label_efficiency.py -->", "<!-- end of results -->"
ROLES = {
    "margin": "margin / lcmd",
    "lcmd": "margin / lcmd",
    "badge": "badge / coreset",
    "coreset": "badge / coreset",
    "uherding": "uherding / maxherding",
    "maxherding": "uherding / maxherding",
}
"""Strategies that stand for each other where one is defined for classes or for numbers only."""


def write_page(results: Path, ablation: Path, tuned: tuple[str, ...]) -> None:
    FIGURES.mkdir(exist_ok=True)
    parts = [suite(read_results(results), tuned)]
    if ablation.exists():
        parts.append(changes(read_results(ablation)))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    body = "\n\n".join(parts)
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{body}\n\n{MARKS[1]}{after}", encoding="utf-8")


def suite(results: pd.DataFrame, tuned: tuple[str, ...]) -> str:
    draw(summarise(results)).savefig(FIGURES / "curves.png", dpi=80)
    named = add_series(results)
    seeds = named.groupby("dataset")["seed"].nunique()
    lines = [
        f"{len(seeds)} sets, {_told(seeds)}, 8 rounds each. Empty cells were not run.",
        "",
        "### Mean over the curve",
        "",
        "The best is in bold. `ally` against random is paired by seed; p is from the t test, with Holm's correction "
        "over the sets. Sets marked † guided the choice of the default.",
        "",
        f"| set | learner | seeds | {' | '.join(columns())} | ally against random | p |",
        f"|{'---|' * (len(columns()) + 5)}",
    ]
    rows, tests = [], []
    for name, part in named.groupby("dataset", sort=False):
        means = curve_means(part)
        found = paired_tests(part, [("ally", "random")])
        tests.append(found[0].t if found else float("nan"))
        rows.append((str(name), part, means, found[0] if found else None))
    for (name, part, means, test), p in zip(rows, holm(tests), strict=True):
        metric = metric_named(str(part["metric"].iloc[0]))
        best = max(means, key=lambda role: metric.sign * means[role])
        cells = []
        for role in columns():
            value = f"{means[role]:.{metric.digits(means[role])}f}" if role in means else ""
            cells.append(f"**{value}**" if role == best else value)
        digits = metric.digits(means["random"])
        gain = "" if test is None else f"{test.difference:+.{digits}f}"
        if test is not None and test.low is not None and test.high is not None:
            gain += f" ({test.low:+.{digits}f} … {test.high:+.{digits}f})"
        told = "" if np.isnan(p) else f"{p:.2g}"
        mark = " †" if name in tuned else ""
        count = part["seed"].nunique()
        lines.append(f"| {name}{mark} | {part['model'].iloc[0]} | {count} | {' | '.join(cells)} | {gain} | {told} |")
    lines += [
        "",
        "Accuracy, or root mean squared error for regression. A positive gain is better in both.",
        "",
    ]
    lines += ["![every curve](label-efficiency/curves.png)", "", *ratios(named), "", *ranks(rows)]
    return "\n".join(lines)


def columns() -> tuple[str, ...]:
    return ("random", *dict.fromkeys(ROLES.values()), "ally-paper", "ally")


def curve_means(part: pd.DataFrame) -> dict[str, float]:
    """By role, the mean over the rounds after the first and over the seeds that all series have."""
    curves = {str(name): curves_by_seed(rows) for name, rows in part.groupby("series", sort=False)}
    shared = set.intersection(*(set(one) for one in curves.values()))
    return {
        ROLES.get(name, name): float(np.mean([one[seed].values[1:].mean() for seed in shared]))
        for name, one in curves.items()
    }


def ratios(named: pd.DataFrame) -> list[str]:
    """Labels each strategy needs for 97 % of what random finally reaches, divided by those random needs."""
    roles = named.assign(series=[ROLES.get(s, s) for s in named["series"]])
    _, found = efficiencies(roles, "random", lambda strategy: strategy == "random")
    by = {(one.dataset, one.series): one for one in found}
    lines = [
        "### Labels to target",
        "",
        "The target is 97 % of random's mean final accuracy or, for errors, of its reduction. The ratio is the labels "
        "a strategy needs divided by those random needs: geometric mean over sets and seeds, 95 % interval by "
        "resampling both. `<` and `>`: some campaigns did not reach the target, so the ratio is a bound; `?`: on both "
        "sides.",
        "",
        "| strategy | ratio | 95 % interval | sets | sets below 1 |",
        "|---|---|---|---|---|",
    ]
    for role in columns()[1:]:
        pairs = [(one, by[dataset, "random"]) for (dataset, series), one in by.items() if series == role]
        whole = label_ratio(pairs)
        each = [label_ratio([pair]) for pair in pairs]
        below = sum(one is not None and one.value < 1 for one in each)
        if whole is not None:
            lines.append(f"| {role} | {whole} | {whole.interval} | {whole.sets} | {below} |")
    return lines


def ranks(rows: list[tuple[str, pd.DataFrame, dict[str, float], Any]]) -> list[str]:
    """Mean ranks over the sets, by the mean over the curve, and the figure with Nemenyi's critical difference."""
    roles = [role for role in columns() if all(role in means for _, _, means, _ in rows)]
    table = []
    for _, part, means, _ in rows:
        sign = metric_named(str(part["metric"].iloc[0])).sign
        table.append(rankdata([-sign * means[role] for role in roles]))
    found = dict(zip(roles, np.mean(table, axis=0).tolist(), strict=True))
    k, sets = len(found), len(table)
    critical = float(studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * sets)))
    diagram(found, critical).savefig(FIGURES / "ranks.png", dpi=100)
    order = sorted(found, key=lambda role: found[role])
    said = ", ".join(f"{role} {found[role]:.2f}" for role in order)
    return [
        "### Mean ranks",
        "",
        f"{said}. Over {sets} sets, two ranks differ at the 5 % level if they are {critical:.2f} apart (Nemenyi).",
        "",
        "![mean ranks with the critical difference](label-efficiency/ranks.png)",
    ]


def diagram(found: dict[str, float], critical: float) -> Figure:
    """Mean ranks on a line; a bar joins those that do not differ significantly from the best."""
    figure = Figure(figsize=(7, 0.35 * len(found) + 0.9), layout="constrained")
    ax = figure.add_subplot()
    order = sorted(found, key=lambda role: found[role])
    for place, role in enumerate(order):
        ax.plot([found[role]], [-place], "o", color="C0" if role == "ally" else "0.4")
        ax.annotate(f"{role}  {found[role]:.2f}", (found[role], -place), xytext=(8, -4), textcoords="offset points")
    best = found[order[0]]
    ax.plot([best, best + critical], [0.7, 0.7], "k-", lw=3)
    ax.annotate(
        f"critical difference {critical:.2f}", (best + critical, 0.7), xytext=(6, -4), textcoords="offset points"
    )
    ax.set(xlim=(1, len(found) + 1.2), ylim=(0.5 - len(found), 1.2), xlabel="mean rank (1 is best)", yticks=[])
    for side in ("left", "top", "right"):
        ax.spines[side].set_visible(False)
    return figure


def changes(results: pd.DataFrame) -> str:
    """`ally` with one part changed, against `ally`: the mean over sets of the relative loss, and by set."""
    named = add_series(results)
    sets = list(dict.fromkeys(map(str, named["dataset"])))
    lines = [
        "### One part changed",
        "",
        "What a change costs: the error over the curve with it over the error of `ally`, less 1 (1 − accuracy for "
        "classes), geometric mean over seeds. Above 0 the part earns its place.",
        "",
        f"| change | {' | '.join(sets)} | mean |",
        f"|---|{'---|' * (len(sets) + 1)}",
    ]
    means: dict[str, dict[str, list[float]]] = {}
    for name, part in named.groupby("dataset", sort=False):
        higher = metric_named(str(part["metric"].iloc[0])).higher
        curves = {str(line): curves_by_seed(rows) for line, rows in part.groupby("strategy", sort=False)}

        def error(line: str, seed: int, curves: Any = curves, higher: bool = higher) -> float:
            mean = float(curves[line][seed].values[1:].mean())
            return 1 - mean if higher else mean

        for line, one in curves.items():
            shared = sorted(one.keys() & curves["ally"].keys())
            means.setdefault(line, {})[str(name)] = [np.log(error(line, s) / error("ally", s)) for s in shared]
    for line, by_set in means.items():
        if line != "ally":
            each = [f"{np.expm1(np.mean(by_set[name])):+.1%}" if name in by_set else "" for name in sets]
            whole = np.expm1(np.mean([np.mean(logs) for logs in by_set.values()]))
            lines.append(f"| {line} | {' | '.join(each)} | {whole:+.1%} |")
    seeds = named.groupby("dataset")["seed"].nunique()
    return "\n".join([*lines, "", f"{_told(seeds)}: differences of a few per cent are within noise."])


def _told(seeds: pd.Series[int]) -> str:
    least, most = int(seeds.min()), int(seeds.max())
    return f"{least} to {most} seeds" if least < most else f"{most} seed{'s' if most > 1 else ''}"
