"""``ally strategies``."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from ally.cli.console import stdout


def strategies(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the catalogue of strategies."""
    from ally.strategies import CATALOGUE

    rows = [
        {
            "name": name,
            "tasks": sorted(entry.tasks),
            "objective": entry.objective if isinstance(entry.objective, str) else type(entry.objective).__name__.lower(),
            "score": repr(entry.score),
            "select": repr(entry.select),
            "needs": list(entry.needs),
            "about": entry.about,
        }
        for name, entry in CATALOGUE.items()
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("strategy", "tasks", "needs", "picks", box=None, header_style="bold", pad_edge=False)
    for row in rows:
        both = len(row["tasks"]) == 2
        table.add_row(str(row["name"]), "both" if both else str(row["tasks"][0]), ", ".join(row["needs"]), str(row["about"]))
    stdout.print(table)
