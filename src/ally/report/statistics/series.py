"""A series is what one curve shows: a strategy under one setting, model, batch, protocol and objective."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

CONDITIONS = ("setting", "model", "batch", "protocol", "objective")
SEPARATOR = " · "


def add_series(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a column `series`: the strategy and, in readable form, the conditions that vary in a data set.

    A condition implied by the others is not repeated. An objective is named only if one strategy has several, because
    each strategy has its own objective by default.
    """
    if "series" in results:
        return results
    parts = [part.assign(series=_names(part)) for _, part in results.groupby("dataset", sort=False)]
    return pd.concat(parts).loc[results.index] if parts else results.assign(series="")


def series_of(results: pd.DataFrame) -> list[str]:
    """Names of the series, in the order of the file."""
    return [str(name) for name in results["series"].unique()]


def _names(part: pd.DataFrame) -> list[str]:
    used: list[str] = []
    for name in CONDITIONS:
        within = [*used, "strategy"] if name == "objective" else used
        if name in part and _varies(part, name, within):
            used.append(name)
    words = {name: short_names(str(value) for value in part[name].unique()) for name in used}
    columns = [
        [f"batch {value}" if name == "batch" else words[name][str(value)] for value in part[name]]
        for name in used
        if name != "strategy"
    ]
    return [SEPARATOR.join(filter(None, row)) for row in zip(part["strategy"].astype(str), *columns, strict=True)]


def _varies(part: pd.DataFrame, name: str, within: list[str]) -> bool:
    if not within:
        return bool(part[name].nunique() > 1)
    return bool(part.groupby(within)[name].nunique().max() > 1)


def short_names(values: Iterable[str]) -> dict[str, str]:
    """``PDCL(eps=0.1, lr=1)`` and ``PDCL(eps=0.2, lr=1)`` as ``PDCL(eps=0.1)`` and ``PDCL(eps=0.2)``; names stay
    distinct."""
    full = list(dict.fromkeys(values))
    parsed = {value: _arguments(value) for value in full}
    short = {}
    for value, (head, own) in parsed.items():
        others = [arguments for name, arguments in parsed.values() if name == head]
        kept = [item for item in own if not all(item in arguments for arguments in others)]
        short[value] = f"{head}({', '.join(kept)})" if kept else head
    return short if len(set(short.values())) == len(full) else {value: value for value in full}


def _arguments(value: str) -> tuple[str, list[str]]:
    """``F(a=1, b=(2, 3))`` as ``F`` and ``[a=1, b=(2, 3)]``; a text that is not a call has no arguments."""
    call = re.fullmatch(r"(\w+)\((.*)\)", value, flags=re.DOTALL)
    if call is None:
        return value, []
    items, depth = [""], 0
    for letter in call[2]:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            items.append("")
        else:
            items[-1] += letter
    return call[1], [item.strip() for item in items if item.strip()]


def baseline_for(part: pd.DataFrame, series: str, baseline: str) -> str | None:
    """The series of `baseline` (a strategy or a series) within one data set that shares most conditions with `series`.

    Acquisition is compared under equal training: ``ally · batch 200`` with ``random · batch 200``.
    """
    if (part["series"] == baseline).any():
        return baseline
    columns = [name for name in ("batch", "model", "protocol", "setting", "objective") if name in part]
    own = part[part["series"] == series].iloc[0]
    candidates = part[part["strategy"] == baseline].drop_duplicates("series")
    if candidates.empty:
        return None
    agreement = [tuple(row[name] == own[name] for name in columns) for _, row in candidates.iterrows()]
    return str(candidates["series"].iloc[agreement.index(max(agreement))])
