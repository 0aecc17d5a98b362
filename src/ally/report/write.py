"""From the folder of a grid to its report."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ally.drawing import use_own_style
from ally.errors import InputError
from ally.files import write_whole
from ally.report.figure import BANDS, Band, draw
from ally.report.grid import Description, read_description, read_results
from ally.report.page.page import render_page
from ally.report.statistics.summary import Summary, summarise

FILES = ("report.html", "curves.png", "curves.svg", "summary.csv", "curves.csv")


def write_report(folder: Path, *, smoothing: float | None = None, band: Band = "ci") -> Path:
    """Writes report.html, curves.png, curves.svg, summary.csv and curves.csv from results.csv and settings.json in
    `folder`.

    `smoothing` is the weight of a moving average, for curves only; statistics stay those of raw values.
    """
    return write_summary(folder, *load(folder, smoothing), band=band)


def load(folder: Path, smoothing: float | None = None) -> tuple[Summary, Description]:
    """The statistics of a grid, and what it says about itself."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give one that `ally bench` wrote (it holds results.csv)")
    description = read_description(folder)
    summary = summarise(read_results(folder), description.baseline, smoothing)
    return replace(summary, constants=description.constants), description


def write_summary(folder: Path, summary: Summary, description: Description, *, band: Band = "ci") -> Path:
    """The files of a report; each appears whole or not at all. Gives the path of the page."""
    if band not in BANDS:
        raise InputError.about("band", band, f"must be one of {', '.join(BANDS)}")
    folder = Path(folder)
    pictures = {}
    with use_own_style():
        figure = draw(summary, band)
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            # No date and no random ids: equal results give equal files.
            figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
            pictures[kind] = buffer.getvalue()
    write_whole(folder / "curves.png", pictures["png"])
    write_whole(folder / "curves.svg", pictures["svg"])
    write_whole(folder / "curves.csv", _csv(summary.curves.assign(smoothing=summary.smoothing or 0.0)))
    write_whole(folder / "summary.csv", _csv(summary_table(summary)))
    write_whole(folder / "report.html", render_page(summary, description, pictures["png"], band).encode())
    return folder / "report.html"


def summary_table(summary: Summary) -> pd.DataFrame:
    """One row per data set and series: comparison, label efficiency, corrected tests, cost."""
    tests = {(one.dataset, one.first): one for one in summary.tests}
    needed = {(one.dataset, one.series): one for one in summary.efficiencies}
    rows = []
    for c, cost in zip(summary.comparisons, summary.costs, strict=True):
        key = c.dataset, c.strategy
        test, need, ratio = tests.get(key), needed.get(key), summary.ratios.get(key, (None, None))[0]
        rows.append(
            {
                "dataset": c.dataset,
                "series": c.strategy,
                "strategy": summary.strategies[c.strategy],
                "metric": c.metric,
                "seeds": c.seeds,
                "mean": c.curve_mean,
                "final": c.final,
                "final_std": c.final_std,
                "area": c.area,
                "baseline": c.baseline,
                "pairs": c.pairs,
                "gain": c.gain,
                "low": c.low,
                "high": c.high,
                "verdict": c.verdict,
                "wilcoxon_p": test and test.wilcoxon,
                "wilcoxon_holm": test and test.wilcoxon_holm,
                "t_p": test and test.t,
                "t_holm": test and test.t_holm,
                "labels_needed": need and need.labels.labels,
                "censored": need and need.labels.censored,
                "label_ratio": ratio and ratio.value,
                "label_ratio_low": ratio and ratio.low,
                "label_ratio_high": ratio and ratio.high,
                "label_ratio_bound": ratio and ratio.bound,
                "train_seconds_per_label": cost.train_per_label,
                "query_seconds_per_label": cost.query_per_label,
            }
        )
    return pd.DataFrame(rows)


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False).encode()
