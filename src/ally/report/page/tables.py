"""The tables of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ally.metrics import constant_name, metric_named
from ally.report.statistics.comparison import Comparison
from ally.report.statistics.efficiency import Ratio
from ally.report.statistics.pairs import without_spread
from ally.report.statistics.significance import PairedTest, totals
from ally.report.statistics.summary import Summary

MARKED = 5
"""Ratios from fewer seeds are not coloured, because a bootstrap over so few is too narrow."""
LOOKS = {"better": "good", "worse": "bad"}


class TableCell(NamedTuple):
    """A cell: its text, what it is sorted by (the text if None), and a CSS class."""

    text: str
    key: float | None = None
    look: str = ""

    @property
    def sorted_by(self) -> str | None:
        return None if self.key is None or math.isnan(self.key) else repr(self.key)


class Table(NamedTuple):
    """A table that sorts on a click in its header; `words` are the columns that hold text."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[TableCell]]
    words: Sequence[int] = (0,)


def comparison_table(comparisons: list[Comparison], constant: float | None = None) -> Table:
    """One data set: every series against its baseline, and the score of a constant answer."""
    metric = metric_named(comparisons[0].metric)
    digits = metric.digits(comparisons[0].curve_mean)
    several = len({c.baseline for c in comparisons if c.baseline}) > 1
    head = [
        "series",
        f"mean {metric.name}",
        f"final {metric.name}",
        "area",
        "gain",
        "95 % interval",
        "pairs",
        "verdict",
    ]
    rows = [
        [
            TableCell(c.strategy),
            TableCell(f"{c.curve_mean:.{digits}f}", c.curve_mean),
            TableCell(f"{c.final:.{digits}f}" + (f" ± {c.final_std:.{digits}f}" if c.seeds > 1 else ""), c.final),
            TableCell(f"{c.area:.{digits}f}", c.area),
            TableCell("" if c.gain is None else f"{c.gain:+.{digits}f}", c.gain),
            TableCell(interval(c, digits), c.low),
            TableCell(str(c.pairs) if c.pairs else "", c.pairs),
            TableCell(
                c.verdict + (f" (than {c.baseline})" if several and c.baseline and c.gain is not None else ""),
                None,
                LOOKS.get(c.verdict, ""),
            ),
        ]
        for c in comparisons
    ]
    if constant is not None:
        score = TableCell(f"{constant:.{digits}f}", constant)
        rows.append([TableCell(constant_name(metric.task)), score, score, *[TableCell("")] * 5])
    return Table(f"{comparisons[0].dataset}: test {metric.name}, {metric.direction}", head, rows, words=(0, 7))


def interval(one: Comparison | PairedTest, digits: int) -> str:
    """``low … high``, or an empty string."""
    return (
        ""
        if one.low is None or one.high is None or without_spread(one.low, one.high)
        else f"{one.low:+.{digits}f} … {one.high:+.{digits}f}"
    )


def efficiency_table(summary: Summary, dataset: str) -> Table:
    """One data set: the labels each series needs to reach the target."""
    target = summary.targets[dataset]
    head = [
        "series",
        "labels needed",
        "seeds that reached it",
        f"ratio to {summary.baseline}",
        "interval",
        "ratio to the best baseline",
        "interval",
    ]
    rows = []
    for one in summary.efficiencies:
        if one.dataset == dataset:
            ratios = [cell for ratio in summary.ratios[dataset, one.series] for cell in ratio_cells(ratio)]
            reached = TableCell(f"{one.reached} of {len(one.by_seed)}", float(one.reached))
            rows.append(
                [
                    TableCell(one.series),
                    TableCell(str(one.labels), one.labels.labels + one.labels.censored / 2),
                    reached,
                    *ratios,
                ]
            )
    value = f"{target.value:.{metric_named(target.metric).digits(target.value)}f}"
    return Table(f"{dataset}: labels to reach {target.metric} {value} (set by {target.series})", head, rows)


def overall_table(summary: Summary) -> Table:
    """All data sets together: geometric means of label ratios."""
    head = ["series", "data sets", f"ratio to {summary.baseline}", "interval", "ratio to the best baseline", "interval"]
    rows = []
    for name in summary.series:
        both = summary.ratios.get(("", name), (None, None))
        if any(both):
            sets = max(ratio.sets for ratio in both if ratio is not None)
            rows.append(
                [TableCell(name), TableCell(str(sets), sets), *(cell for ratio in both for cell in ratio_cells(ratio))]
            )
    return Table("Labels needed, as a ratio: geometric mean over data sets and seeds", head, rows)


def ratio_cells(ratio: Ratio | None) -> list[TableCell]:
    if ratio is None:
        return [TableCell(""), TableCell("")]
    certain = ratio.low is not None and ratio.high is not None and not ratio.bound and ratio.seeds >= MARKED
    look = "" if not certain else "good" if (ratio.high or 1) < 1 else "bad" if (ratio.low or 1) > 1 else ""
    return [TableCell(str(ratio), ratio.value, look), TableCell(ratio.interval, ratio.low)]


def paired_table(caption: str, metric: str, tests: list[PairedTest]) -> Table:
    """Paired tests of one data set."""
    size = max((abs(one.difference) for one in tests), default=0.0)
    digits = max(metric_named(metric).digits(10 * size), 2)
    head = [
        "series",
        "against",
        "seeds",
        "difference",
        "95 % interval",
        "Wilcoxon p",
        "Wilcoxon, Holm",
        "t test p",
        "t test, Holm",
    ]
    rows = [
        [
            TableCell(one.first),
            TableCell(one.second),
            TableCell(str(one.seeds), one.seeds),
            TableCell(f"{one.difference:+.{digits}f}", one.difference),
            TableCell(interval(one, digits), one.low),
            *(
                TableCell(
                    p_value(p),
                    p,
                    "good" if look and p < 0.05 and one.difference > 0 else "bad" if look and p < 0.05 else "",
                )
                for p, look in ((one.wilcoxon, False), (one.wilcoxon_holm, True), (one.t, False), (one.t_holm, True))
            ),
        ]
        for one in tests
    ]
    return Table(caption, head, rows, words=(0, 1))


def paired_tables(summary: Summary, family: str, tests: Sequence[PairedTest]) -> list[Table]:
    """A table for each data set that has tests of this family."""
    metrics = {c.dataset: c.metric for c in summary.comparisons}
    by_dataset = {name: [test for test in tests if test.dataset == name] for name in summary.datasets}
    return [
        paired_table(f"{name}: {family}, {len(own)} tests", metrics[name], own)
        for name, own in by_dataset.items()
        if own
    ]


def p_value(p: float) -> str:
    return "" if math.isnan(p) else "< .001" if p < 0.001 else f"{p:.3f}"


def win_table(summary: Summary) -> Table:
    """Rows against columns, over data sets."""
    sums = totals(summary.series, summary.wins)
    names = [name for name in summary.series if name in sums]
    rows = []
    for row in names:
        cells = [TableCell("–") if row == column else _record(summary, row, column) for column in names]
        rows.append([TableCell(row), TableCell(str(sums[row]), float(sums[row].wins - sums[row].losses)), *cells])
    return Table("Wins / ties / losses of the row against the column", ["series", "all", *names], rows)


def _record(summary: Summary, row: str, column: str) -> TableCell:
    if (row, column) not in summary.wins:
        return TableCell("")
    record = summary.wins[row, column]
    balance = record.wins - record.losses
    return TableCell(str(record), float(balance), "good" if balance > 0 else "bad" if balance < 0 else "")


def cost_table(summary: Summary, dataset: str) -> Table:
    head = ["series", "training, ms per label", "queries, ms per label", "one query, s"]
    rows = [
        [
            TableCell(cost.series),
            TableCell(_milliseconds(cost.train_per_label), cost.train_per_label),
            TableCell(_milliseconds(cost.query_per_label), cost.query_per_label),
            TableCell("" if math.isnan(cost.query) else f"{cost.query:.2f}", cost.query),
        ]
        for cost in summary.costs
        if cost.dataset == dataset
    ]
    return Table(f"{dataset}: compute per label bought, medians over campaigns", head, rows)


def _milliseconds(seconds: float) -> str:
    return "" if math.isnan(seconds) else f"{1000 * seconds:.1f}"
