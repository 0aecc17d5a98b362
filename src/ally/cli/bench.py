"""``ally bench``: does active learning pay on these data?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from ally.cli.console import live_progress, stderr
from ally.cli.report import BandChoice, report

TaskName = Literal["auto", "classification", "regression"]


def bench(
    out: Annotated[Path, typer.Option(help="Folder for results; run again with the same one, the grid goes on.")],
    dataset: Annotated[
        list[str], typer.Option(help="A name that `ally datasets` lists, a table file, or a folder of images by class.")
    ],
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="Names that `ally strategies` lists (default: ally, badge, margin, random)."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Column of a table file that holds the labels.")] = None,
    task: Annotated[
        TaskName, typer.Option(help="What the target is (auto: up to 100 different whole numbers are classes).")
    ] = "auto",
    seeds: Annotated[int, typer.Option(help="Campaigns per strategy.", min=1)] = 5,
    init: Annotated[int | None, typer.Option(help="Random labels at the start (default: a batch).", min=1)] = None,
    batch: Annotated[
        int | None, typer.Option(help="Labels per round (default: a hundredth of the pool, 10 to 200).", min=1)
    ] = None,
    rounds: Annotated[int, typer.Option(help="Batches after the start; may be raised later.", min=0)] = 8,
    model: Annotated[list[str] | None, typer.Option(help="Networks (default: by the kind of data).")] = None,
    objective: Annotated[list[str] | None, typer.Option(help="How to train (default: as each strategy says).")] = None,
    validation: Annotated[
        int, typer.Option(help="Labels bought at the start for early stopping; they are counted.", min=0)
    ] = 0,
    candidates: Annotated[
        int | None, typer.Option(help="Ask only about so many samples, drawn at random.", min=1)
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where data sets are (default: ALLY_DATA, else a cache folder).")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes (default: one per core).", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare strategies on data with known labels, in a grid that can be interrupted."""
    from ally.experiment import bench as run
    from ally.experiment.bench import STRATEGIES

    with live_progress() as progress:
        run(
            dataset,
            strategy or STRATEGIES,
            out=out,
            seeds=seeds,
            init=init,
            batch=batch,
            rounds=rounds,
            models=model or None,
            objectives=objective or None,
            validation=validation,
            candidates=candidates,
            target=target,
            task=task,
            data_dir=data_dir,
            workers=workers,
            progress=progress,
            say=lambda words: stderr.print(Text(words), soft_wrap=True),
        )
    report(out, None, BandChoice.ci, as_json)
