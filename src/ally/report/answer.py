"""The answer in words: is it better than the baseline here, and how certain is that?"""

from __future__ import annotations

import math

from ally.metrics import constant_words, metric_named
from ally.report.statistics.comparison import Comparison, sentence
from ally.report.statistics.significance import LEVEL, smallest_p
from ally.report.statistics.summary import Summary

TOLD = {"better": "shown to be better", "worse": "shown to be worse", "not shown to differ": "not shown to differ"}


def sentences(summary: Summary) -> list[str]:
    """One per data set and series that can be compared."""
    return [sentence(c, summary.baseline) for c in summary.comparisons if c.gain is not None]


def answer(summary: Summary) -> str:
    """One paragraph: what was shown, after which correction, with how many seeds, and what is missing."""
    return " ".join(answer_parts(summary))


def answer_parts(summary: Summary) -> list[str]:
    """The answer, a text per data set and one of caveats."""
    caveats = " ".join([*_seeds(summary), *_missing(summary)])
    told = [" ".join([_dataset(summary, dataset), *against_constant(summary, dataset)]) for dataset in summary.datasets]
    return [*told, *([caveats] if caveats else [])]


def _dataset(summary: Summary, dataset: str) -> str:
    found = [c for c in summary.comparisons if c.dataset == dataset]
    compared = [c for c in found if c.verdict in TOLD]
    if not compared:
        single = [c for c in found if c.gain is not None]
        why = (
            f"too few seeds to say how anything compares with {summary.baseline}"
            if single
            else f"nothing to compare with {summary.baseline} yet"
        )
        return f"On {dataset}: {why}."
    words = []
    for verdict, told in TOLD.items():
        names = [c.strategy for c in compared if c.verdict == verdict]
        if names:
            words.append(
                f"{len(names)} of {len(compared)} series {'is' if len(names) == 1 else 'are'} {told} ({_list(names)})"
            )
    tests = [t for t in summary.tests if t.dataset == dataset and not math.isnan(t.t_holm)]
    survive = [t.first for t in tests if t.t_holm < LEVEL]
    differ = (
        f"{_list(survive)} still differ{'s' if len(survive) == 1 else ''}" if survive else "none is shown to differ"
    )
    kept = f" Corrected for {len(tests)} comparisons (Holm, t test), {differ}." if len(tests) > 1 else ""
    return f"On {dataset}, against {summary.baseline}: {', '.join(words)}.{kept}"


def against_constant(summary: Summary, dataset: str) -> list[str]:
    """The score of a constant answer, and which series end no better."""
    if dataset not in summary.constants:
        return []
    found, value = [c for c in summary.comparisons if c.dataset == dataset], summary.constants[dataset]
    metric = metric_named(found[0].metric)
    line = f"{constant_words(metric.task)} on {dataset} scores {value:.{metric.digits(value)}f} ({metric.words})"
    below = [c.strategy for c in found if metric.sign * (c.final - value) <= 0]
    if not below:
        return [f"{line[0].upper()}{line[1:]}; every series ends better."]
    advice = "the learner has not learned these data: try more labels, other columns or another model (--model)"
    ends = "ends no better" if len(below) == 1 else "end no better"
    return [f"{line[0].upper()}{line[1:]}; {_list(below)} {ends}: {advice}."]


def _list(names: list[str]) -> str:
    """Up to four names; one that holds a comma is quoted."""
    told = [f"“{name}”" if "," in name else name for name in names[:4]]
    return ", ".join(told) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _seeds(summary: Summary) -> list[str]:
    counts = [c.pairs for c in summary.comparisons if c.verdict in TOLD]
    if not counts:
        return []
    low, high = min(counts), max(counts)
    said = f"Intervals are over {low if low == high else f'{low} to {high}'} paired seeds."
    tests = max(sum(t.dataset == name for t in summary.tests) for name in summary.datasets)
    least, corrected = smallest_p(high), smallest_p(high, tests)
    if corrected > LEVEL:
        after = f" ({corrected:.3g} once corrected for {tests} comparisons)" if tests > 1 else ""
        said += (
            f" With so few, a two-sided signed-rank test cannot give p < {least:.4g}{after}; a claim needs "
            "ten seeds or more."
        )
    return [said]


def _missing(summary: Summary) -> list[str]:
    left_out = [c for c in summary.comparisons if c.left_out]
    said = []
    if summary.gaps:
        more = f" (and {len(summary.gaps) - 3} more, below)" if len(summary.gaps) > 3 else ""
        said.append(f"The runs are not all alike: {' '.join(summary.gaps[:3])}{more}")
    if left_out:
        said.append("Unfinished campaigns are left out of comparisons.")
    return said


def highlighted(summary: Summary) -> list[Comparison]:
    """The comparisons of ALLY and its variants."""
    return [c for c in summary.comparisons if summary.strategies[c.strategy].startswith("ally")]
