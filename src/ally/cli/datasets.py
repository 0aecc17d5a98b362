"""``ally datasets``: the catalogue of data sets, fetching and verifying them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ally.cli.console import live_progress, stderr, stdout
from ally.errors import InputError

WIDE = 150
"""From this width on, every fact has a column."""
app = typer.Typer(help="List, fetch and verify data sets.", pretty_exceptions_enable=False)

DataDir = Annotated[
    Path | None, typer.Option(help="Where the data sets are (default: ALLY_DATA, else a cache folder).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Names = Annotated[list[str] | None, typer.Argument(help="Names listed by `ally datasets`.", metavar="NAME")]


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List, fetch and verify data sets; without a command, list them."""
    context.obj = (data_dir, as_json)
    if context.invoked_subcommand is None:
        list_command(context)


@app.command("list")
def list_command(context: typer.Context, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List all data sets, and which of them are on this machine.

    Example: ally datasets list
    """
    folder, as_json = _settings(context, data_dir, as_json)
    rows = _describe(folder)
    if as_json:
        print(json.dumps({"data_dir": str(folder), "datasets": rows}, indent=2))
    else:
        stdout.print(_listing(rows, folder), highlight=False)


@app.command("fetch")
def fetch_command(
    context: typer.Context, names: Names = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Download data sets. Files that are complete are not downloaded again.

    Example: ally datasets fetch mnist
    """
    from ally.data.catalogue import DATASETS, fetch

    folder, as_json = _settings(context, data_dir, as_json)
    if not names:
        raise InputError("no data set given; name one or more names listed by `ally datasets`")
    for name in names:
        DATASETS[name]
    done: dict[str, list[str]] = {}
    with live_progress() as progress:
        for name in names:
            done[name] = list(fetch(name, folder, progress))
            if not as_json:
                for line in done[name]:
                    stdout.print(f"{name}: {line}", highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps({"data_dir": str(folder), "done": done}, indent=2))


@app.command("verify")
def verify_command(
    context: typer.Context, names: Names = None, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Compare files with their checksums (default: all that are on this machine). Exits with 2 if one differs.

    Example: ally datasets verify mnist
    """
    from ally.data.catalogue import DATASETS, state, verify

    folder, as_json = _settings(context, data_dir, as_json)
    asked = names or [name for name, entry in DATASETS.items() if state(entry, folder) in ("here", "partly")]
    found = {}
    with live_progress() as progress:
        for number, name in enumerate(asked):
            progress(f"verifying {name}", number, len(asked))
            found[name] = verify(name, folder)
            progress(f"verifying {name}", len(asked), len(asked))
    if as_json:
        rows = {name: [vars(check) for check in checks] for name, checks in found.items()}
        print(json.dumps({"data_dir": str(folder), "checks": rows}, indent=2))
    else:
        if not found:
            stderr.print(f"{folder} has no data sets to verify", highlight=False, soft_wrap=True)
        for name, checks in found.items():
            for check in checks:
                detail = f" ({check.detail})" if check.detail else ""
                stdout.print(f"{name}: {check.path}: {check.verdict}{detail}", highlight=False, soft_wrap=True)
            if not checks:
                stdout.print(f"{name}: ships with scikit-learn", highlight=False)
    bad = any(
        check.verdict == "bad" or (names and check.verdict == "missing")
        for checks in found.values()
        for check in checks
    )
    if bad:
        raise typer.Exit(2)


def _settings(context: typer.Context, data_dir: Path | None, as_json: bool) -> tuple[Path, bool]:
    """Options can come before or after the name of the command."""
    from ally.data.catalogue import default_data_dir

    before, json_before = context.obj or (None, False)
    return (data_dir or before or default_data_dir()), as_json or json_before


def _describe(folder: Path) -> list[dict[str, Any]]:
    from ally.data.catalogue import DATASETS, missing, state

    return [
        {
            "name": name,
            "task": entry.task,
            "kind": entry.kind,
            "size": entry.size,
            "about": entry.describe,
            "state": state(entry, folder),
            "missing": [file.path for file in missing(entry, folder)],
            "fetchable": entry.fetchable,
            "by_hand": entry.by_hand,
            "terms": entry.terms,
            "citation": entry.citation,
        }
        for name, entry in DATASETS.items()
    ]


def _listing(rows: Sequence[dict[str, Any]], folder: Path) -> RenderableType:
    """A column for every fact, or two lines each where that is too wide."""
    wide = stdout.width >= WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("data set", no_wrap=True)
    for column in ("task", "pool + test", "here", "terms") if wide else ():
        table.add_column(column, overflow="fold")
    table.add_column("what it is" if wide else "what it is / task · pool + test · here · terms")
    for row in rows:
        here = row["state"]
        if here == "partly":
            here = f"partly; missing: {', '.join(row['missing'])}"
        elif here == "absent" and not row["fetchable"]:
            here = f"absent; {row['by_hand']}"
        facts = row["task"], row["size"], here, row["terms"]
        if wide:
            table.add_row(Text(row["name"]), *map(Text, facts), Text(row["about"]))
        else:
            table.add_row(Text(row["name"]), Group(Text(row["about"]), Text(" · ".join(facts), style="dim")))
    return Group(
        table, "", Text(f"folder: {folder}", style="dim"), Text("ally datasets fetch NAME downloads one.", style="dim")
    )
