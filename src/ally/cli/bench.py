"""``ally bench``: does active learning pay off on these data?"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from ally.cli.console import live_progress, stderr
from ally.cli.reading import (
    ChannelAxis,
    Columns,
    EmbeddingsFile,
    Encoding,
    IdColumn,
    IdsFile,
    ImageColumn,
    ImageFolder,
    ImageSize,
    MissingLabel,
    NoHeader,
    TextColumn,
    given_options,
    of_source,
)
from ally.cli.report import BandChoice, report
from ally.errors import InputError

TaskName = Literal["auto", "classification", "regression"]
of_strategies = partial(typer.Option, rich_help_panel="Strategies")
of_campaigns = partial(typer.Option, rich_help_panel="Campaigns")


def bench(
    out: Annotated[Path, typer.Option(help="Folder for the results; run again with the same folder to continue.")],
    campaign: Annotated[
        list[str] | None,
        typer.Argument(help="Campaigns with labels: pets means the file pets.db. They are only read.", metavar="NAME"),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        of_source(
            help="A name listed by `ally datasets`, a table or array file, or a folder of images by class.", metavar="D"
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        of_strategies(help="Names listed by `ally strategies` (default: ally, badge, margin, random).", metavar="S"),
    ] = None,
    label: Annotated[
        str | None,
        of_source(
            help="Column with the labels of a table file (default: label, class, target or y).",
            metavar="COLUMN",
        ),
    ] = None,
    task: Annotated[
        TaskName,
        of_source(
            help="auto, classification or regression (auto: as the labels say; see docs/sources.md).",
            metavar="TASK",
        ),
    ] = "auto",
    encoder: Annotated[
        str,
        of_source(
            help="A pretrained encoder for texts or images: a name, the folder of a model, none, or auto: the one that "
            "is installed, for data of your own.",
            metavar="NAME|FOLDER",
        ),
    ] = "auto",
    id_column: IdColumn = None,
    text: TextColumn = None,
    image: ImageColumn = None,
    column: Columns = None,
    embeddings: EmbeddingsFile = None,
    ids: IdsFile = None,
    folder: ImageFolder = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    missing_label: MissingLabel = None,
    size: ImageSize = None,
    channels: ChannelAxis = None,
    seeds: Annotated[int, of_campaigns(help="Campaigns per strategy.", min=1, metavar="N")] = 5,
    init: Annotated[
        int | None, of_campaigns(help="Random labels at the start (default: one batch).", min=1, metavar="N")
    ] = None,
    batch: Annotated[
        int | None,
        of_campaigns(help="Labels per round (default: 1 % of the pool, 10 to 200).", min=1, metavar="N"),
    ] = None,
    rounds: Annotated[int, of_campaigns(help="Rounds after the start; can be raised later.", min=0, metavar="N")] = 8,
    model: Annotated[
        list[str] | None, of_strategies(help="Models (default: auto, the best by cross-validation).", metavar="M")
    ] = None,
    objective: Annotated[
        list[str] | None, of_strategies(help="How to train (default: as each strategy does).", metavar="O")
    ] = None,
    validation: Annotated[
        int, of_campaigns(help="Labels bought at the start for early stopping; they count too.", min=0, metavar="N")
    ] = 0,
    look_at: Annotated[
        int | None,
        of_campaigns(help="Choose from this many unlabelled samples, drawn at random.", min=1, metavar="N"),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What to measure: accuracy, balanced_accuracy, macro_f1, auroc, log_loss; rmse, mae, r2, mse "
            "(default: accuracy or rmse)."
        ),
    ] = None,
    data_dir: Annotated[
        Path | None, of_source(help="Where the data sets are (default: ALLY_DATA, else a cache folder).")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes; 0: this one (default: one per core).", min=0, metavar="N")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="local, ray or ray://host:port: campaigns as tasks of a Ray cluster.", metavar="E")
    ] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare strategies on data with known labels. Interrupt it, run it again, and it continues.

    Your own data are opened as `ally new` opens them; a campaign's labels are the answers.

    Example: ally bench --dataset digits --strategy ally --strategy random --out runs/digits
    """
    from ally.cli.campaign.opening import place_of
    from ally.experiment import bench as run
    from ally.experiment.bench import STRATEGIES

    names = [*map(place_of, campaign or ()), *(dataset or ())]
    if not names:
        raise InputError("there is nothing to compare strategies on; name a campaign, or a data set (--dataset)")
    with live_progress() as progress:
        run(
            names,
            strategy or STRATEGIES,
            out=out,
            seeds=seeds,
            init=init,
            batch=batch,
            rounds=rounds,
            models=model or None,
            objectives=objective or None,
            validation=validation,
            look_at=look_at,
            metric=metric,
            label=label,
            task=task,
            reading=given_options(
                id_column=id_column,
                text=text,
                image=image,
                column=column,
                embeddings=embeddings,
                ids=ids,
                folder=folder,
                encoding=encoding,
                no_header=no_header,
                missing_label=missing_label,
                size=size,
                channels=channels,
            ),
            encoder=encoder,
            data_dir=data_dir,
            workers=workers,
            engine=engine,
            progress=progress,
            say=lambda words: stderr.print(Text(words), soft_wrap=True),
        )
    report(out, None, BandChoice.ci, as_json)
