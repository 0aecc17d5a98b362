"""Interactive curves: the data that the page's script draws, and the library it uses."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files
from typing import Any

from ally.metrics import constant_name, metric_named
from ally.report.statistics.summary import Summary
from ally.report.style import styles


def chart_data(summary: Summary) -> list[dict[str, Any]]:
    """One chart per data set, with numbers rounded to what a screen can show."""
    look = styles(summary)
    charts = []
    for dataset in summary.datasets:
        part = summary.curves[summary.curves["dataset"] == dataset]
        metric = metric_named(str(part["metric"].iloc[0]))
        series = []
        for name, curve in part.groupby("series", sort=False):
            style = look[str(name)]
            numbers = {
                key: [_short(value) for value in curve[key]]
                for key in ("labels", "mean", "std", "low", "high", "seeds")
            }
            drawn = {
                "colour": style.colour,
                "dark": style.dark,
                "symbol": style.symbol,
                "dashed": style.dashed,
                "width": style.width,
            }
            series.append(
                {
                    "name": str(name),
                    **drawn,
                    "strong": style.strong,
                    "shown": style.shown,
                    "banded": style.banded,
                    **numbers,
                }
            )
        title = f"test {metric.name.replace('_', ' ')} ({metric.direction})"
        chart = {"dataset": dataset, "axis": title, "smoothed": bool(summary.smoothing), "series": series}
        if dataset in summary.constants:
            chart["constant"] = {"name": constant_name(metric.task), "value": _short(summary.constants[dataset])}
        charts.append(chart)
    return charts


def _short(value: float) -> float | None:
    """NaN has no place in JSON."""
    return None if value != value else float(f"{value:.6g}")


@cache
def pack_library() -> str:
    """plotly.js from the package (MIT licence), gzipped and in base64, at a third of its size."""
    code = files("plotly").joinpath("package_data/plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(code, 9, mtime=0)).decode()


def read_asset(name: str) -> str:
    return files("ally.report.page").joinpath("assets", name).read_text(encoding="utf-8")
