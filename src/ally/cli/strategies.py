"""``ally strategies``: the catalogue, and one strategy in full."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ally.cli.console import stdout

WIDE = 150
"""From this width on, every fact has a column."""


def strategies(
    name: Annotated[
        str | None, typer.Argument(help="Explain this strategy (default: list all).", metavar="NAME")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List all strategies, or explain one.

    Example: ally strategies badge
    """
    from ally.cards import describe
    from ally.strategies import CATALOGUE

    rows = [describe(known) for known in CATALOGUE] if name is None else [describe(name)]
    if as_json:
        print(json.dumps(rows if name is None else rows[0], indent=2))
    elif name is None:
        stdout.print(_listing(rows), highlight=False)
    else:
        stdout.print(_card(rows[0]), highlight=False)


def _listing(rows: list[dict[str, Any]]) -> RenderableType:
    """All strategies by family: a column for every fact, or two lines each where that is too wide."""
    from ally.cards import CARDS, FAMILIES, SYMBOLS, Cost

    order = list(CARDS)
    rows = sorted(rows, key=lambda row: order.index(row["name"]))
    wide = stdout.width >= WIDE
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("strategy", no_wrap=True)
    for column, width in (("tasks", 14), ("needs", 24), ("cost", 30)) if wide else ():
        table.add_column(column, max_width=width)
    table.add_column("use it when" if wide else "use it when / tasks · needs · cost")
    for family, meaning in FAMILIES.items():
        blank = [""] * (len(table.columns) - 2)
        table.add_row()
        table.add_row(Text(family, style="bold"), *blank, Text(meaning, style="italic"))
        for row in rows:
            if row["family"] == family:
                facts = (
                    "both" if len(row["tasks"]) == 2 else row["tasks"][0],
                    ", ".join(row["needs"]),
                    row["cost"]["time"],
                )
                below = Text(" · ".join(filter(None, facts)), style="dim")
                cells = [*facts, row["use_when"]] if wide else [Group(row["use_when"], below)]
                table.add_row(Text(f"  {row['name']}"), *cells)
    used = {letter for row in rows for letter in Cost(row["cost"]["time"], "").letters}
    legend = ", ".join(f"{letter} {meaning}" for letter, meaning in SYMBOLS.items() if letter in used)
    note = (
        f"cost: time to choose the batch after training; {legend}; a pass runs the pool through the network once more"
    )
    return Group(table, "", Text(note, style="dim"), Text("ally strategies NAME explains one.", style="dim"))


def _card(row: dict[str, Any]) -> RenderableType:
    """One strategy in full."""
    from ally.cards import FAMILIES

    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True, style="bold")
    facts.add_column()
    for label, value in (
        ("family", f"{row['family']}: {FAMILIES[row['family']]}"),
        ("use it when", row["use_when"]),
        ("tasks", ", ".join(row["tasks"])),
        ("needs", ", ".join(row["needs"]) or "nothing"),
        ("time", row["cost"]["time"]),
        ("memory", row["cost"]["memory"]),
    ):
        facts.add_row(label, Text(value))
    parts: list[RenderableType] = [Text.assemble((row["name"], "bold"), f": {row['about']}"), "", facts]
    parts += _section("equation", Text(row["equation"]))
    parts += _section("where it comes from", Text(row["meaning"])) if row["meaning"] else []
    parts += _section("parameters", *(_part(axis, part) for axis, part in row["parameters"].items()))
    call = f'ally.query(X, y, n=20, strategy="{row["name"]}")'
    parts += _section(
        "in Python", Text(call), Text("or, to change a parameter:"), Padding(Text(row["python"]), (0, 0, 0, 2))
    )
    sources = [f"{r['authors']}: {r['title']}. {r['venue']}, {r['year']}." for r in row["references"]]
    parts += _section("reference", *(Text(source) for source in sources or ["none: a baseline"]))
    return Group(*parts)


def _section(title: str, *content: RenderableType) -> list[RenderableType]:
    return ["", Text(title, style="bold"), *(Padding(item, (0, 0, 0, 2)) for item in content)]


def _part(axis: str, part: dict[str, Any]) -> RenderableType:
    """The part of one axis, its settings below it."""
    settings = Table.grid(padding=(0, 2))
    settings.add_column(no_wrap=True)
    settings.add_column(overflow="fold", max_width=24)
    settings.add_column()
    for item in part["settings"]:
        changed = "" if item["value"] == item["default"] else f" ({part['part']}'s own default: {item['default']})"
        settings.add_row(item["name"], Text(item["value"]), Text(item["about"] + changed))
    heading = Text.assemble(f"{axis}: ", (part["part"], "bold"), f"  {part['about']}")
    return Group(heading, Padding(settings, (0, 0, 0, 2))) if part["settings"] else heading
