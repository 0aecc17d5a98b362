"""How each series looks, in pictures and on the page: colours that colour-blind readers can tell apart, markers,
dashes."""

from __future__ import annotations

from dataclasses import dataclass

from ally.metrics import metric_named
from ally.report.statistics.summary import Summary

SHOWN = 12
"""More series than this are drawn faintly (picture) or hidden until asked for (page)."""
# (light background, dark background), from the palettes of Okabe and Ito and of Tol.
ALLY = (
    ("#d55e00", "#ff8a3d"),
    ("#aa3377", "#f28cc8"),
    ("#b8860b", "#f0c75e"),
    ("#661100", "#ffb3a0"),
    ("#d1608a", "#ffc8dc"),
    ("#a05a2c", "#d9a07a"),
)
OTHERS = (
    ("#0072b2", "#56b4e9"),
    ("#009e73", "#2fd6a5"),
    ("#6a51a3", "#b5a1f0"),
    ("#8c6d31", "#d9b871"),
    ("#3a90c6", "#9ad4f5"),
    ("#117733", "#7fce8f"),
    ("#b07aa1", "#e3b7d8"),
    ("#5f5f5f", "#bdbdbd"),
    ("#7a8b00", "#c9d94f"),
    ("#2f9486", "#88dccf"),
)
MARKERS = (
    ("o", "circle"),
    ("s", "square"),
    ("^", "triangle-up"),
    ("D", "diamond"),
    ("v", "triangle-down"),
    ("P", "cross"),
    ("X", "x"),
    ("<", "triangle-left"),
    (">", "triangle-right"),
    ("p", "pentagon"),
    ("h", "hexagon"),
    ("*", "star"),
)


@dataclass(frozen=True)
class Style:
    """One series in matplotlib's and in plotly's words."""

    colour: str
    dark: str
    marker: str
    symbol: str
    dashed: bool
    width: float
    strong: bool
    """ALLY or the baseline."""
    shown: bool
    banded: bool


def styles(summary: Summary) -> dict[str, Style]:
    """ALLY strong, the baseline black and dashed, the rest in turn; the same in every panel. Bands for one of each
    only."""
    baselines = {c.strategy for c in summary.comparisons if c.is_baseline} or {summary.baseline}
    allies, others = iter(ALLY * 20), iter(OTHERS * 20)
    prominent = _prominent(summary, baselines)
    found: dict[str, Style] = {}
    lead = _lead(summary, baselines)
    for place, name in enumerate(sorted(summary.series, key=lambda name: name not in prominent)):
        ally, base = summary.strategies[name].startswith("ally"), name in baselines
        first_base = base and not any(style.dashed for style in found.values())
        light, dark = ("#000000", "#ffffff") if first_base else next(allies) if ally else next(others)
        marker, symbol = MARKERS[place % len(MARKERS)]
        width = 2.4 if ally else 1.8 if base else 1.3
        found[name] = Style(
            light, dark, marker, symbol, base, width, ally or base, name in prominent, first_base or name == lead
        )
    return found


def _lead(summary: Summary, baselines: set[str]) -> str | None:
    """ALLY itself, or the variant of it that did best."""
    allies = [
        c
        for c in summary.comparisons
        if summary.strategies[c.strategy].startswith("ally") and c.strategy not in baselines
    ]
    plain = [c for c in allies if c.strategy == "ally"]
    return max(plain or allies, key=lambda c: c.gain or 0.0).strategy if allies else None


def _prominent(summary: Summary, baselines: set[str]) -> set[str]:
    """All series if they are few; else the baselines, ALLY, and those that did best."""
    if len(summary.series) <= SHOWN:
        return set(summary.series)
    ranks: dict[str, list[float]] = {name: [] for name in summary.series}
    for dataset in summary.datasets:
        ranked = sorted(
            (c for c in summary.comparisons if c.dataset == dataset),
            key=lambda c: metric_named(c.metric).sign * c.curve_mean,
        )
        for rank, c in enumerate(ranked):
            ranks[c.strategy].append(rank / len(ranked))
    best = sorted(summary.series, key=lambda name: -sum(ranks[name]) / max(len(ranks[name]), 1))
    first = [name for name in summary.series if name in baselines or summary.strategies[name] == "ally"]
    allies = [name for name in best if summary.strategies[name].startswith("ally")][: SHOWN // 3]
    return set(list(dict.fromkeys([*first, *allies, *best]))[:SHOWN])
