"""Tables and figures of docs/label-efficiency.md from the campaigns that were run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import rankdata, studentized_range

from ally.metrics import Metric, metric_named
from ally.report import summarise
from ally.report.figure import draw
from ally.report.grid import read_results
from ally.report.statistics.curves import Curve, curves_by_seed
from ally.report.statistics.efficiency import SHARE, labels_to_reach
from ally.report.statistics.series import add_series
from ally.report.statistics.significance import holm, paired_tests
from ally.types import FloatArray, IntArray

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
REPEATS = 2000
"""Resamples of an interval."""


def write_page(results: dict[str, Path], tuned: tuple[str, ...]) -> None:
    """Sections of the suites that were run."""
    FIGURES.mkdir(exist_ok=True)
    first = results["auto"].with_name("label_efficiency_first.csv")
    found = {name: read_results(path) for name, path in results.items() if path.exists()}
    parts = [suite(found["development"], tuned)]
    if "ablation" in found:
        parts.append(changes(found["ablation"]))
    if "auto" in found:
        parts.append(end_to_end(found["auto"], pd.read_csv(first) if first.exists() else None))
    if "report" in found:
        parts.append(reported(found["report"]))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    body = "\n\n".join(parts)
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{body}\n\n{MARKS[1]}{after}", encoding="utf-8")


def labels_to_target(results: Path, tuned: tuple[str, ...]) -> str:
    return "\n".join(ratios(add_series(read_results(results)), tuned))


def suite(results: pd.DataFrame, tuned: tuple[str, ...]) -> str:
    draw(summarise(results)).savefig(FIGURES / "curves.png", dpi=60)
    named = add_series(results)
    seeds = named.groupby("dataset")["seed"].nunique()
    rows = compared(named)
    lines = [
        f"{len(seeds)} sets, {_told(seeds)}, 8 rounds each. Empty cells were not run.",
        "",
        "### Mean over the curve",
        "",
        "The best is in bold. `ally` against random is paired by seed; p is from the t test, with Holm's correction "
        "over the sets. Sets marked † guided the choice of the default, or other rows of theirs did. A strategy with "
        "fewer seeds than random is shown as random's mean plus its mean difference from random on the seeds that both "
        "have.",
        "",
        *means_table(rows, tuned),
        "",
        "Accuracy, or root mean squared error for regression. A positive gain is better in both.",
        "",
        "![every curve](label-efficiency/curves.png)",
        "",
        *ratios(named, tuned),
        "",
        *ranks(rows),
    ]
    return "\n".join(lines)


Row: TypeAlias = tuple[str, pd.DataFrame, dict[str, float], Any]
"""A set, its results, means over the curve by role, and the test of `ally` against random."""


def compared(named: pd.DataFrame) -> list[Row]:
    rows: list[Row] = []
    for name, part in named.groupby("dataset", sort=False):
        found = paired_tests(part, [("ally", "random")])
        rows.append((str(name), part, curve_means(part), found[0] if found else None))
    return rows


def means_table(rows: list[Row], tuned: tuple[str, ...] = ()) -> list[str]:
    lines = [
        f"| set | learner | seeds | {' | '.join(columns())} | ally against random | p |",
        f"|{'---|' * (len(columns()) + 5)}",
    ]
    tests = holm([float("nan") if test is None else test.t for _, _, _, test in rows])
    for (name, part, means, test), p in zip(rows, tests, strict=True):
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
    return lines


def columns() -> tuple[str, ...]:
    return ("random", *dict.fromkeys(ROLES.values()), "ally-paper", "ally")


def curve_means(part: pd.DataFrame, baseline: str = "random") -> dict[str, float]:
    """By role, the mean over the rounds after the first and over all seeds. A role that was run with fewer seeds gets
    the baseline's mean plus its mean difference from it on the seeds that both have."""
    curves = {str(name): curves_by_seed(rows) for name, rows in part.groupby("series", sort=False)}
    means = {name: {seed: float(one.values[1:].mean()) for seed, one in by.items()} for name, by in curves.items()}
    common = means[baseline]
    found = {}
    for name, own in means.items():
        shared = sorted(own.keys() & common.keys())
        found[ROLES.get(name, name)] = float(
            np.mean(list(common.values())) + np.mean([own[seed] - common[seed] for seed in shared])
        )
    return found


def ratios(named: pd.DataFrame, tuned: tuple[str, ...] = ()) -> list[str]:
    """Labels each strategy needs for 97 % of what random finally reaches, divided by those random needs."""
    sets = {str(name): part for name, part in named.groupby("dataset", sort=False)}
    others = {name: one for name, one in sets.items() if name not in tuned}
    lines = [
        "### Labels to target",
        "",
        "The target is 97 % of random's final accuracy or, for errors, of its reduction, on curves averaged over the "
        "seeds. The ratio is the labels a strategy needs divided by those random needs: geometric mean over sets, 95 % "
        "interval by resampling sets and seeds. Who does not reach the target counts with all its labels, so a ratio "
        "near or above 1 may be too low. The last two columns compare `ally` with each strategy in the same way.",
        "",
        "| strategy | ratio | 95 % interval | sets below 1 | not reached | on sets without † | interval "
        "| labels of `ally` / its labels | interval |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for role in columns()[1:]:
        whole, rest, ours = mean_ratio(sets, role), mean_ratio(others, role), mean_ratio(sets, "ally", role)
        if whole is not None:
            each, missed = whole.each, whole.missed
            cells = [role, whole.said, f"{sum(one < 1 for one in each)} of {len(each)}", str(missed)]
            cells += [" | " if rest is None else rest.said, " | " if ours is None or role == "ally" else ours.said]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


@dataclass(frozen=True)
class RoleCurves:
    """Values of some roles on one set, (seeds, rounds + 1), over the seeds that all of them have."""

    labels: FloatArray
    values: dict[str, FloatArray]
    metric: Metric

    def needed(self, role: str, seeds: IntArray) -> tuple[float, float, bool] | None:
        """Labels that the role and random need on curves averaged over `seeds`, and whether the role gets there; None
        if random does not improve."""
        ours, theirs = (self.values[name][seeds].mean(0) for name in (role, "random"))
        first, final = float(theirs[0]), float(theirs[-1])
        if self.metric.sign * (final - first) <= 0:
            return None
        target = SHARE * final if self.metric.higher else first - SHARE * (first - final)
        own, reference = (labels_to_reach(Curve(self.labels, one), target, self.metric) for one in (ours, theirs))
        return own.labels, reference.labels, not own.censored


def role_curves(part: pd.DataFrame, roles: set[str]) -> RoleCurves | None:
    """None if one of the roles was not run."""
    found = {ROLES.get(str(name), str(name)): rows for name, rows in part.groupby("series", sort=False)}
    if not roles <= found.keys():
        return None
    curves = {role: curves_by_seed(found[role]) for role in roles}
    shared = sorted(set.intersection(*(set(one) for one in curves.values())))
    values = {role: np.stack([one[seed].values for seed in shared]) for role, one in curves.items()}
    labels = next(iter(curves.values()))[shared[0]].labels
    return RoleCurves(labels, values, metric_named(str(part["metric"].iloc[0])))


@dataclass(frozen=True)
class Ratio:
    """Labels that one strategy needs, divided by those of another: geometric mean over sets, with its interval."""

    value: float
    low: float
    high: float
    each: list[float]
    """By set."""
    missed: int
    """On how many sets the first does not reach the target."""

    @property
    def said(self) -> str:
        return f"{self.value:.2f} | {self.low:.2f} … {self.high:.2f}"


def mean_ratio(sets: dict[str, pd.DataFrame], role: str, other: str = "random") -> Ratio | None:
    """Both must reach 97 % of what random finally reaches, on the seeds that all three have."""
    curves = (role_curves(part, {role, other, "random"}) for part in sets.values())
    chosen = [one for one in curves if one is not None]

    def log_ratio(one: RoleCurves, seeds: IntArray) -> float | None:
        ours, theirs = one.needed(role, seeds), one.needed(other, seeds)
        return None if ours is None or theirs is None else float(np.log(ours[0] / theirs[0]))

    every = [np.arange(len(one.values[role])) for one in chosen]
    found = [log_ratio(one, seeds) for one, seeds in zip(chosen, every, strict=True)]
    logs = [value for value in found if value is not None]
    if not logs:
        return None
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(REPEATS):
        places = rng.integers(0, len(chosen), len(chosen))
        drawn = [log_ratio(chosen[k], rng.integers(0, len(every[k]), len(every[k]))) for k in places]
        draws.append(np.mean([value for value in drawn if value is not None]))
    low, high = np.exp(np.quantile(draws, [0.025, 0.975])).tolist()
    reached = [one.needed(role, seeds) for one, seeds in zip(chosen, every, strict=True)]
    missed = sum(needed is not None and not needed[2] for needed in reached)
    return Ratio(float(np.exp(np.mean(logs))), low, high, np.exp(logs).tolist(), missed)


def ranks(rows: list[Row]) -> list[str]:
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


WITH, WITHOUT = "ally, auto", "ally, auto without graph"
FIRST = "ally, from its first label"


def end_to_end(results: pd.DataFrame, first: pd.DataFrame | None) -> str:
    """`ally` with ``model="auto"`` against random labels with the best of the learners of the labels alone; `first`:
    campaigns that `ally` began itself."""
    lines = [
        "### End to end",
        "",
        '`model="auto"`, as a user has it: chosen again each time the labels have grown by half. For classes it learns '
        "from the unlabelled samples too ([the pool's graph](learners.md#the-pool-teaches)); without the graph, from "
        "the labels alone. Random labels are also shown with each learner alone, none of which looks at the pool; the "
        "best of them, known only afterwards, sets the target. The last two columns are the labels that `ally` with "
        "`auto` needs for 97 % of what that learner finally reaches (for errors, of its reduction), divided by those "
        "that it needs with random labels. The test sets are never in the graph. All of these begin with the same "
        "random labels, which count. The last column is a campaign as people begin one: without labels, so that `ally` "
        "chooses its first batch too (`benchmarks/first_labels.py`; seeds in brackets).",
        "",
        "| set | seeds | ally | random | ally, without graph | random, without graph | random, each learner "
        "| labels, of the best learner's | without graph | from its first label |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    against: dict[str, pd.DataFrame] = {}
    for name, part in results.groupby("dataset", sort=False):
        named = part.assign(series=[f"{s}, {m}" for s, m in zip(part["strategy"], part["model"], strict=True)])
        # The same seeds in every line.
        named = named[named["seed"].isin(named.loc[named["series"] == WITH, "seed"])]
        means = curve_means(named, "random, auto")
        metric = metric_named(str(part["metric"].iloc[0]))
        alone = {role: value for role, value in means.items() if role.startswith("random") and "auto" not in role}
        best = max(alone, key=lambda role: metric.sign * alone[role])
        begun = None if first is None else first[first["dataset"] == name].assign(series=FIRST)
        parts = [named.replace({best: "random"}), *([] if begun is None or begun.empty else [begun])]
        against[str(name)] = pd.concat(parts, ignore_index=True)

        def said(role: str, means: Any = means, metric: Any = metric) -> str:
            return f"{means[role]:.{metric.digits(means[role])}f}" if role in means else ""

        each = ", ".join(f"{'**' * (role == best)}{role[8:]} {said(role)}{'**' * (role == best)}" for role in alone)
        cells = [said(WITH), said("random, auto"), said(WITHOUT), said("random, auto without graph"), each]
        ratios = [_label_ratio(against[str(name)], role) for role in (WITH, WITHOUT, FIRST)]
        shared = set(named["seed"]) & set([] if begun is None else begun["seed"])
        ratios[-1] += f" ({len(shared)})" if ratios[-1] else ""
        lines.append(f"| {name} | {named['seed'].nunique()} | {' | '.join([*cells, *ratios])} |")
    classes = {name: part for name, part in against.items() if str(part["metric"].iloc[0]) == "accuracy"}
    for what, sets, role in (
        ("Sets with classes", classes, WITH),
        ("The same without the graph", classes, WITHOUT),
        ("The same from the first label on", classes, FIRST),
        ("All sets", against, WITH),
    ):
        whole = mean_ratio(sets, role)
        if whole is not None:
            interval = f"95 % interval {whole.low:.2f} … {whole.high:.2f}, by resampling sets and seeds"
            lines += ["", f"{what}: {whole.value:.2f} (geometric mean; {interval})."]
    if classes:
        _draw_pool(classes).savefig(FIGURES / "pool.png", dpi=80)
        lines += ["", "![accuracy against labels, with the pool's graph and without](label-efficiency/pool.png)"]
    return "\n".join(lines)


def _label_ratio(part: pd.DataFrame, role: str) -> str:
    """Labels to the target over those of the best learner with random labels; empty where the role was not run."""
    curves = role_curves(part, {role, "random"})
    needed = None if curves is None else curves.needed(role, np.arange(len(curves.values["random"])))
    return "" if needed is None else f"{'' if needed[2] else '> '}{needed[0] / needed[1]:.2f}"


LINES = {
    "ally, auto": ("ally, with the pool", "C0", "-"),
    FIRST: ("ally, with the pool, from its first label", "C2", "-"),
    "random, auto": ("random, with the pool", "C1", "-"),
    "ally, auto without graph": ("ally, without", "C0", ":"),
    "random, auto without graph": ("random, without", "C1", ":"),
}


def _draw_pool(sets: dict[str, pd.DataFrame]) -> Figure:
    """Means over seeds, a panel for each set, which says its seeds if others have more."""
    seeds = {name: part.loc[part["series"] == WITH, "seed"].nunique() for name, part in sets.items()}
    rows = -(-len(sets) // 3)
    figure = Figure(figsize=(12, 3.4 * rows + 0.5), layout="constrained")
    panels = list(figure.subplots(rows, 3, squeeze=False).flat)
    for ax, (name, part) in zip(panels, sets.items(), strict=False):
        for series, (label, colour, style) in LINES.items():
            curve = part[part["series"] == series].groupby("labels")["value"].mean()
            ax.plot(curve.index, curve.to_numpy(dtype=float), label=label, color=colour, linestyle=style)
        told = "" if seeds[name] == max(seeds.values()) else f" ({seeds[name]} seed{'s' * (seeds[name] > 1)})"
        ax.set(title=f"{name}{told}", xlabel="labels")
        ax.grid(alpha=0.3)
    figure.suptitle('model="auto", chosen again as labels grow')
    panels[0].set_ylabel("accuracy")
    for ax in panels[len(sets) :]:
        ax.remove()
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return figure


def reported(results: pd.DataFrame) -> str:
    draw(summarise(results)).savefig(FIGURES / "report.png", dpi=80)
    named = add_series(results)
    lines = [
        "### The report suite",
        "",
        "Sets that guided no choice, run once at the end. Parkinsons is split at random: split by subject, nothing is "
        "learnt ([reproduction](reproduction.md)).",
        "",
        *means_table(compared(named)),
        "",
        "![curves of the report suite](label-efficiency/report.png)",
    ]
    return "\n".join(lines)


def _told(seeds: pd.Series[int]) -> str:
    least, most = int(seeds.min()), int(seeds.max())
    return f"{least} to {most} seeds" if least < most else f"{most} seed{'s' if most > 1 else ''}"
