"""The report as one HTML file that works offline."""

from __future__ import annotations

import base64
from html import escape

from ally.report.answer import answer_parts, highlighted, sentences
from ally.report.figure import Band
from ally.report.grid import Description
from ally.report.page import tables
from ally.report.page.charts import asset, chart_data, packed_library
from ally.report.page.html import bullets, embedded_json, facts, paragraph
from ally.report.statistics.comparison import sentence
from ally.report.statistics.summary import Summary
from ally.report.style import styles

READING = {
    "Series": "A strategy, with the setting, model, batch or objective if these vary within a data set. Each "
    "series is compared with the baseline run under the same conditions, or the closest ones.",
    "Mean and gain": "The test metric averaged over the label counts after the first training. A gain is the "
    "difference from the baseline, paired by seed; positive is better, also for errors. Its interval is Student's t "
    "over seeds and does not cover other splits or data sets.",
    "Area": "Trapezoid under the curve over labels, divided by the range of labels.",
    "Labels": "Every label bought, including those of a validation set.",
    "Labels needed": "For 97 % of the best baseline's mean final value (for errors: 97 % of its reduction since the "
    "first round). We take the first crossing of the raw curve, on straight lines between rounds, that also holds at "
    "the next round. “> 1600” means that the target was not reached within 1600 labels; such campaigns count as 1600 "
    "labels.",
    "Ratio": "Labels the series needs divided by labels the other needs, per seed; geometric mean. Below 1 saves "
    "labels. “<” means that the other did not reach the target on some seeds (the ratio is at most this), “>” that the "
    "series did not (at least this), “?” that both happened, so the ratio may be too high or too low. It is empty if "
    "neither reached the target. The mean over data sets leaves out “?” and empty ratios. The interval is a paired "
    "bootstrap over seeds (and data sets) with the target held fixed. With few seeds it is too narrow; ratios from "
    "fewer than five seeds are not coloured.",
    "Tests": "Two-sided, on the paired means. Holm's correction covers one table. With n seeds Wilcoxon's test cannot "
    "go below 2/2ⁿ: five seeds give .0625 at best.",
    "Wins / ties / losses": "Over data sets. A tie is a paired difference whose 95 % interval includes 0. Not "
    "corrected.",
    "Unfinished campaigns": "They appear in the curves but not in means, gains and tests.",
}


# The browser blocks everything that is not inside the file.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:; base-uri 'none'; form-action 'none'"
)


FIRST = 6
"""Sentences at the top; the others are folded away."""


def page(summary: Summary, description: Description, picture: bytes, band: Band = "ci") -> str:
    """The whole page: the answer first, then curves, tables, and how it was made. `picture` is a PNG for readers
    without scripts."""
    sections = {
        "answer": ("Answer", _answer(summary, description)),
        "curves-section": ("Curves", _curves(summary, picture, band)),
        "comparison": (f"Against {summary.baseline}", _comparisons(summary)),
        "efficiency": ("Label efficiency", _efficiency(summary)),
        "tests": ("Paired tests", _tests(summary)),
        "wins": ("Wins, ties, losses", _wins(summary)),
        "compute": ("Compute", "".join(tables.cost_table(summary, name) for name in summary.datasets)),
        "made": ("How this was made", _made(summary, description)),
        "reading": ("How to read this page", facts(READING)),
    }
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, (title, _) in sections.items())
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 '
        f'id="{name}-title">{escape(title)}</h2>{content}</section>'
        for name, (title, content) in sections.items()
    )
    question = paragraph(description.question, "question") if description.question else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(description.title)}</title>"
        f'<link rel="icon" href="data:,"><style>{asset("page.css")}</style></head>'
        f"<body><header><h1>{escape(description.title)}</h1>{question}"
        f'<nav aria-label="Sections">{links}</nav></header><main>{body}</main>'
        f"{embedded_json('curves', chart_data(summary))}"
        f'<script type="text/plain" id="plotly">{packed_library()}</script>'
        f"<script>{asset('page.js')}</script></body></html>\n"
    )


def _answer(summary: Summary, description: Description) -> str:
    parts = [paragraph(f"Substitute: {description.substitute}", "warning")] if description.substitute else []
    parts.append(f'<div class="answer">{"".join(paragraph(text) for text in answer_parts(summary))}</div>')
    told = [sentence(c, summary.baseline) for c in highlighted(summary) if c.gain is not None][:FIRST]
    parts.append(bullets(told) if told else "")
    rest = [text for text in sentences(summary) if text not in told]
    if rest:
        parts.append(
            f"<details><summary>Every other series in a sentence ({len(rest)})</summary>{bullets(rest)}</details>"
        )
    return "".join(parts)


def _curves(summary: Summary, picture: bytes, band: Band) -> str:
    smoothed = f", smoothed by a moving average of weight {summary.smoothing:g}" if summary.smoothing else ""
    figures = "".join(
        f'<figure><h3>{escape(name)}</h3><div class="chart" id="chart-{place}" role="img" aria-label="Learning curves '
        f"on {escape(name)}; "
        f'the tables below hold the numbers"></div></figure>'
        for place, name in enumerate(summary.datasets)
    )
    options = "".join(
        f'<option value="{value}"{" selected" if value == band else ""}>{text}</option>'
        for value, text in (("ci", "95 % interval of the mean"), ("std", "± standard deviation"), ("none", "none"))
    )
    controls = (
        f'<div class="controls"><label>Band <select id="band">{options}</select></label> <label>Labels <select '
        'id="scale">'
        '<option value="linear">linear</option><option value="log">logarithmic</option></select></label> '
        '<button type="button" id="all">Show all</button> <button type="button" id="main">Only ALLY and the '
        "baseline</button></div>"
    )
    hint = (
        f"Means over seeds{smoothed}. ALLY and the baseline have bands; if four or fewer series are shown, all do. "
        "Click a name in the legend to hide or show it; double-click to show it alone."
    )
    hidden = sum(not style.shown for style in styles(summary).values())
    hint += (
        f" {hidden} of {len(summary.series)} series start hidden; their names in the legend are grey." if hidden else ""
    )
    image = base64.b64encode(picture).decode()
    alt = f"Learning curves on {', '.join(summary.datasets)}: test metric against labels bought, a line per series"
    return (
        f'<div id="interactive" hidden>{paragraph(hint, "hint")}{controls}<div class="charts">{figures}</div></div>'
        f'<div id="static"><img alt="{escape(alt)}" src="data:image/png;base64,{image}"></div>'
    )


def _comparisons(summary: Summary) -> str:
    parts = [
        tables.comparison_table([c for c in summary.comparisons if c.dataset == name], summary.constants.get(name))
        for name in summary.datasets
    ]
    return "".join(parts) + paragraph(
        "Intervals here are not corrected for the number of series; the tests below are.", "hint"
    )


def _efficiency(summary: Summary) -> str:
    parts = [tables.overall_table(summary)] if len(summary.targets) > 1 else []
    for name in summary.datasets:
        if name in summary.targets:
            parts.append(tables.efficiency_table(summary, name))
        else:
            parts.append(
                paragraph(f"{name} has no target: no baseline was run, or the best one did not improve.", "hint")
            )
    return "".join(parts)


def _tests(summary: Summary) -> str:
    metrics = {c.dataset: c.metric for c in summary.comparisons}
    families = {f"against {summary.baseline}": summary.tests, "every pair": summary.pairs}
    parts = {
        family: "".join(
            tables.paired_table(f"{name}: {family}, {len(tests)} tests", metrics[name], tests)
            for name in summary.datasets
            if (tests := [one for one in chosen if one.dataset == name])
        )
        for family, chosen in families.items()
    }
    first, second = parts.values()
    hidden = f"<details><summary>Every pair of series</summary>{second}</details>" if second else ""
    return (first or paragraph("Nothing to test yet.", "hint")) + hidden


def _wins(summary: Summary) -> str:
    return (
        tables.win_table(summary)
        if summary.wins
        else paragraph("No two series share two finished seeds: nothing to count.", "hint")
    )


def _made(summary: Summary, description: Description) -> str:
    parts = [bullets(description.notes)] if description.notes else []
    for title, pairs in (("Settings", description.settings), ("Environment", description.environment)):
        if pairs:
            parts.append(f"<h3>{title}</h3>{facts(pairs)}")
    if summary.gaps:
        parts.append(f"<h3>Missing from the grid</h3>{bullets(summary.gaps)}")
    return "".join(parts) or paragraph(
        "The grid has no settings.json; results.csv next to this page has every row.", "hint"
    )
