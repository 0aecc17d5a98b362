"""``ally report``: what a grid found, in words, tables and one page."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from ally.cli.console import stderr, stdout
from ally.metrics import constant_name, metric_named

if TYPE_CHECKING:
    from ally.report import Summary


class BandChoice(StrEnum):
    """Bands of curves."""

    ci = "ci"
    std = "std"


def report(
    folder: Annotated[
        Path, typer.Argument(help="A folder that `ally bench` or `ally paper run` wrote.", metavar="DIR")
    ],
    smoothing: Annotated[
        float | None, typer.Option(help="Smooth the curves: weight of a moving average, as in the paper.")
    ] = None,
    band: Annotated[
        BandChoice, typer.Option(help="Bands: ci (95 % interval of the mean) or std (standard deviation).")
    ] = BandChoice.ci,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answers and the statistics as JSON.")] = False,
) -> None:
    """Write report.html, the curves and the tables of a benchmark into its folder.

    Example: ally report runs/digits
    """
    from ally.report import answer, load, sentences, write_summary

    with stderr.status("statistics and pictures"):
        summary, description = load(folder, smoothing)
        written = write_summary(folder, summary, description, band=band.value)
    if as_json:
        print(json.dumps(as_data(summary, written), indent=2, allow_nan=False))
        return
    for table in tables(summary):
        stdout.print(table, "")
    told = sentences(summary) if len(summary.series) <= 4 else []
    for text in (answer(summary), *told):
        stdout.print(Text(text), soft_wrap=True)
    size = written.stat().st_size / 1e6
    stdout.print(
        Text(f"{written} ({size:.1f} MB), curves.png, curves.svg, summary.csv and curves.csv written"), soft_wrap=True
    )


def tables(summary: Summary) -> list[Table]:
    """A table per data set; ALLY in bold, and last the score of a constant answer."""
    from ally.report.page.tables import interval

    found = []
    for dataset in dict.fromkeys(c.dataset for c in summary.comparisons):
        part = [c for c in summary.comparisons if c.dataset == dataset]
        metric = metric_named(part[0].metric)
        digits = metric.digits(part[0].curve_mean)
        baselines = list(dict.fromkeys(c.baseline for c in part if c.baseline))
        title = Text(f"{dataset}: test {metric.name}")
        table = Table(title=title, box=None, header_style="bold", title_justify="left", pad_edge=False)
        # Numbers are never cut: where there is little room, names and verdicts take several lines.
        table.add_column("strategy", overflow="fold")
        for name in ("mean", "final", "gain", "95% interval"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column(Text(f"against {baselines[0]}" if len(baselines) == 1 else "verdict"))
        for c in part:
            verdict = f"{c.verdict} ({c.baseline})" if len(baselines) > 1 and c.baseline else c.verdict
            gain = "" if c.gain is None else f"{c.gain:+.{digits}f}"
            cells = (
                c.strategy,
                f"{c.curve_mean:.{digits}f}",
                f"{c.final:.{digits}f}",
                gain,
                interval(c, digits),
                verdict,
            )
            table.add_row(*map(Text, cells), style="bold" if c.strategy == "ally" else "")
        if dataset in summary.constants:
            score = f"{summary.constants[dataset]:.{digits}f}"
            table.add_row(constant_name(metric.task), score, score, style="dim")
        found.append(table)
    return found


def as_data(summary: Summary, written: Path) -> dict[str, object]:
    """Everything that was printed, and the files; what is not known is null."""
    from ally.report import answer, sentences
    from ally.report.write import FILES, summary_table

    rows = json.loads(summary_table(summary).to_json(orient="records", double_precision=15))
    return {
        "answer": answer(summary),
        "sentences": sentences(summary),
        "baseline": summary.baseline,
        "targets": {name: asdict(target) for name, target in summary.targets.items()},
        "series": rows,
        "missing": list(summary.gaps),
        "files": [str(written.with_name(name)) for name in FILES],
    }
