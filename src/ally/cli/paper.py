"""``ally paper``: the paper's experiments by name."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table
from rich.text import Text

from ally.cli.console import live_progress, stderr, stdout
from ally.cli.report import BandChoice, report
from ally.errors import DataError, InputError

Name = Annotated[str, typer.Argument(help="A name listed by `ally paper list`.", metavar="NAME")]
Scale = Annotated[
    Literal["smoke", "small", "full"],
    typer.Option(help="smoke (seconds), small (minutes to an hour) or full (the paper's size).", metavar="SCALE"),
]
Protocol = Annotated[
    Literal["paper", "fixed", "early-duals"] | None,
    typer.Option(
        help="How long to train: paper (early stopping, the default), fixed or early-duals.", metavar="PROTOCOL"
    ),
]
DataDir = Annotated[
    Path | None, typer.Option(help="Where the data sets are (default: ALLY_DATA, else a cache folder).")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
GENERATION: dict[str, dict[str, Any]] = {
    "smoke": {"dataset": "digits", "share": 0.1, "n": 4, "steps": 40, "head": "paper", "smooth": True},
    "small": {"dataset": "mnist", "share": 0.02, "n": 8, "steps": 120, "head": "paper", "smooth": True},
    "full": {"dataset": "mnist", "share": 0.1, "n": 8, "steps": 120, "head": "paper", "smooth": True},
}
"""Arguments of `ally generate` that are the paper's figure; `small` labels 2 % of MNIST instead of 10 %."""
paper = typer.Typer(no_args_is_help=True, help="Run the paper's experiments, by name.")


@paper.command("list")
def listing(as_json: AsJson = False) -> None:
    """List the experiments and what the paper claims.

    Example: ally paper list
    """
    from ally.experiment.presets import PRESETS

    if as_json:
        print(
            json.dumps(
                [{"name": name, "title": p.title, "figure": p.figure, "claim": p.claim} for name, p in PRESETS.items()],
                indent=2,
            )
        )
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    for column in ("experiment", "in the paper", "claim"):
        table.add_column(column)
    for name, preset in PRESETS.items():
        table.add_row(name, preset.title, preset.figure, preset.claim)
    stdout.print(table, highlight=False)
    stdout.print(
        "\nally paper show NAME prints the settings, ally paper run NAME runs it.", style="dim", highlight=False
    )


@paper.command()
def show(
    name: Name,
    scale: Scale = "small",
    protocol: Protocol = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print all settings of an experiment without running it.

    Example: ally paper show mnist-200 --scale small
    """
    from ally.experiment.presets import PRESETS

    preset = PRESETS[name]
    grid = None if preset.make is None else preset.build(scale, data_dir, protocol)
    facts = {"experiment": preset.title, "in the paper": preset.figure, "claim": preset.claim}
    if grid is None:
        facts |= {f"--{option}": str(value) for option, value in GENERATION[scale].items()}
    else:
        facts |= {"campaigns": str(len(grid.cells)), **grid.settings}
        facts |= {"substitute": grid.substitute} if grid.substitute else {}
        names = dict.fromkeys(name for name, _ in grid.cells)
        notes = (*grid.notes, *(note for name in names for note in _data_notes(name, data_dir)))
        facts |= {f"note {number}": note for number, note in enumerate(notes, start=1)}
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    for fact, value in facts.items():
        table.add_row(fact, Text(value))
    stdout.print(table, highlight=False)


def _data_notes(name: str, data_dir: Path | None) -> list[str]:
    """Notes about a data set, or why it cannot be read."""
    from ally.data.catalogue.own_data import DataOptions
    from ally.experiment.folder import data_notes
    from ally.experiment.opening import open_trial

    try:
        return data_notes(partial(open_trial, DataOptions(data_dir)), [name])
    except DataError as error:
        return [str(error)]


@paper.command()
def run(
    name: Name,
    scale: Scale = "small",
    protocol: Protocol = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results (default: paper-runs/NAME-SCALE).")] = None,
    data_dir: DataDir = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; 0: this one (default: one per core).", min=0, metavar="N")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment. Interrupt it, run it again, and it continues.

    Example: ally paper run mnist-200 --scale smoke
    """
    from ally.experiment import DataOptions
    from ally.experiment import run as run_grid
    from ally.experiment.presets import PRESETS

    preset = PRESETS[name]
    folder = out or Path("paper-runs") / "-".join(filter(None, (name, scale, protocol)))
    if preset.make is None:
        from ally.cli.generate import generate

        if workers not in (None, 0, 1) or as_json:
            raise InputError(f"{name} is a single training and prints no table; leave out --workers and --json")
        generate(**GENERATION[scale], out=folder, data_dir=data_dir)
        return
    grid = preset.build(scale, data_dir, protocol)
    stderr.print(f"{grid.title} ({scale})" + (f"; {grid.substitute}" if grid.substitute else ""), highlight=False)

    def say(words: str) -> None:
        stderr.print(Text(words), soft_wrap=True)

    with live_progress() as progress:
        run_grid(grid, folder, data=DataOptions(data_dir), workers=workers, progress=progress, say=say)
    report(folder, None, BandChoice.ci, as_json)
