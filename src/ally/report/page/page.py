"""The report as one HTML file that works offline: what the template ``assets/page.html.jinja`` shows."""

from __future__ import annotations

import base64

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from ally.report.answer import answer_parts, highlighted, sentences
from ally.report.figure import Band
from ally.report.grid import Description
from ally.report.page import tables
from ally.report.page.charts import chart_data, pack_library, read_asset
from ally.report.statistics.comparison import sentence
from ally.report.statistics.summary import Summary
from ally.report.style import styles

FIRST = 6
"""Sentences at the top; the others are folded away."""
BANDS = {"ci": "95 % interval of the mean", "std": "± standard deviation", "none": "none"}


def render_page(summary: Summary, description: Description, picture: bytes, band: Band = "ci") -> str:
    """The whole page: the answer first, then curves, tables, and how it was made. `picture` is a PNG for readers
    without scripts."""
    highlights = [sentence(c, summary.baseline) for c in highlighted(summary) if c.gain is not None][:FIRST]
    titles = {
        "answer": "Answer",
        "curves-section": "Curves",
        "comparison": f"Against {summary.baseline}",
        "efficiency": "Label efficiency",
        "tests": "Paired tests",
        "wins": "Wins, ties, losses",
        "compute": "Compute",
        "made": "How this was made",
        "reading": "How to read this page",
    }
    environment = Environment(
        loader=PackageLoader("ally.report.page", "assets"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.get_template("page.html.jinja").render(
        summary=summary,
        description=description,
        titles=titles,
        style=Markup(read_asset("page.css")),
        script=Markup(read_asset("page.js")),
        library=pack_library(),
        charts=chart_data(summary),
        picture=base64.b64encode(picture).decode(),
        band=band,
        bands=BANDS,
        hidden=sum(not style.shown for style in styles(summary).values()),
        answer=answer_parts(summary),
        highlights=highlights,
        other_sentences=[text for text in sentences(summary) if text not in highlights],
        comparisons=[
            tables.comparison_table([c for c in summary.comparisons if c.dataset == name], summary.constants.get(name))
            for name in summary.datasets
        ],
        overall=tables.overall_table(summary) if len(summary.targets) > 1 else None,
        efficiency={
            name: tables.efficiency_table(summary, name) if name in summary.targets else None
            for name in summary.datasets
        },
        tests=tables.paired_tables(summary, f"against {summary.baseline}", summary.tests),
        pairs=tables.paired_tables(summary, "every pair", summary.pairs),
        wins=tables.win_table(summary) if summary.wins else None,
        costs=[tables.cost_table(summary, name) for name in summary.datasets],
    )
