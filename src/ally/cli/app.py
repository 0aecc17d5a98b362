"""All commands, and their exit codes: 0 success, 2 wrong input, 130 interrupted."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

import ally
from ally.cli._renamed_options import Command
from ally.cli.bench import bench
from ally.cli.campaign import COMMANDS
from ally.cli.campaign.options import option_of
from ally.cli.console import make_printable, show_warning
from ally.cli.datasets import app as datasets
from ally.cli.demo import demo
from ally.cli.doctor import doctor
from ally.cli.generate import generate
from ally.cli.paper import paper
from ally.cli.query import query
from ally.cli.report import report
from ally.cli.strategies import strategies
from ally.errors import AllyError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Which samples should be labelled next?",
)
for command in (demo, query, bench, report, generate, strategies, doctor):
    app.command(cls=Command)(command)
for name, command in COMMANDS.items():
    app.command(name, cls=Command, rich_help_panel="A labelling campaign")(command)
app.add_typer(paper, name="paper")
app.add_typer(datasets, name="datasets")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ally {ally.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Which samples should be labelled next, so that the model gains the most per label?"""


def main() -> None:
    """Runs a command; the library's own errors are one line on standard error."""
    warnings.showwarning = show_warning
    try:
        app()
    except AllyError as error:
        print(f"error: {make_printable(error.worded(option_of))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        words = f"{error.filename or 'a file'}: {error.strerror or error}"
        print(f"error: {make_printable(words)}", file=sys.stderr)
        sys.exit(2)
