"""A plain report in one HTML file that needs no network."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ally.report.summary import Comparison

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
img { max-width: 100%; background: #fff; border-radius: 6px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }
.answer { background: var(--soft); border-left: 4px solid #d62728; padding: .6rem 1rem; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 0; }
"""


def write_page(
    path: Path, title: str, answers: Sequence[str], comparisons: Sequence[Comparison], picture: Path, facts: dict[str, str]
) -> None:
    """Writes the report: the answer first, then curves, tables, and how it was made."""
    image = base64.b64encode(picture.read_bytes()).decode()
    parts = [f"<h1>{escape(title)}</h1>"]
    parts += [f'<p class="answer">{escape(answer)}</p>' for answer in answers]
    parts.append(f'<img alt="Learning curves: test metric against number of labels" src="data:image/png;base64,{image}">')
    for dataset in dict.fromkeys(c.dataset for c in comparisons):
        parts.append(f"<h2>{escape(dataset)}</h2>{_table([c for c in comparisons if c.dataset == dataset])}")
    settings = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    parts.append(f"<h2>How this was made</h2><dl>{settings}</dl>")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )
    path.write_text(page, encoding="utf-8")


def _table(comparisons: Sequence[Comparison]) -> str:
    metric = comparisons[0].metric
    head = ("strategy", f"mean {metric}", f"final {metric}", "gain on random", "95% interval", "s / query", "against random")
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells(c))}</tr>" for c in comparisons)
    return f'<div class="scroll"><table><tr>{"".join(f"<th>{escape(h)}</th>" for h in head)}</tr>{rows}</table></div>'


def cells(c: Comparison) -> tuple[str, ...]:
    """A comparison as the words of one table row."""
    digits = 4 if c.metric == "accuracy" else 2
    interval = "" if c.low is None or c.high is None else f"{c.low:+.{digits}f} … {c.high:+.{digits}f}"
    return (
        c.strategy,
        f"{c.curve_mean:.{digits}f}",
        f"{c.final:.{digits}f} ± {c.final_std:.{digits}f}",
        "" if c.gain is None else f"{c.gain:+.{digits}f}",
        interval,
        f"{c.seconds:.2f}",
        c.verdict,
    )
