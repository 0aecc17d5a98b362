"""``ally new``: a campaign from what you have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign.opening import FEW, AsJson, new_place, shown_place, typed
from ally.cli.campaign.options import takes_settings
from ally.cli.campaign.printing import counted, dump, few, problem_lines, say
from ally.cli.console import live_progress
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
    OwnKind,
    TextColumn,
    given_options,
    of_source,
)
from ally.errors import InputError

if TYPE_CHECKING:
    from ally.campaign import Campaign, Status

COLUMNS = 40
"""Columns that are printed."""


@takes_settings()
def new(
    name: Annotated[
        str,
        typer.Argument(help="Where to keep it: pets means the file pets.db; or a postgresql:// URL.", metavar="NAME"),
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="A folder of images, or a .csv, .tsv, .xlsx, .parquet, .jsonl, .txt, .npy or .npz file.",
            metavar="SOURCE",
        ),
    ],
    kind: OwnKind = None,
    id_column: IdColumn = None,
    text: TextColumn = None,
    image: ImageColumn = None,
    label: Annotated[
        str | None,
        of_source(
            help="Column with known labels (default: label, class, target or y), or none; for images, folder: "
            "subfolders are classes."
        ),
    ] = None,
    embeddings: EmbeddingsFile = None,
    column: Columns = None,
    ids: IdsFile = None,
    folder: ImageFolder = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    size: ImageSize = None,
    channels: ChannelAxis = None,
    missing_label: MissingLabel = None,
    flat: Annotated[bool, of_source("--flat", help="Ignore subfolders.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be read, and create nothing.")] = False,
    as_json: AsJson = False,
    **settings: Any,
) -> None:
    """Create a labelling campaign from a folder of images, a table, texts or features.

    Example: ally new pets --from photos/ --classes cat,dog
    """
    from ally.campaign import Campaign

    if not name:
        raise InputError("the name of the campaign is empty; give one, such as pets")
    given = given_options(
        kind=kind,
        id_column=id_column,
        text=text,
        image=image,
        label=label,
        embeddings=embeddings,
        column=column,
        ids=ids,
        folder=folder,
        encoding=encoding,
        no_header=no_header,
        size=size,
        channels=channels,
        missing_label=missing_label,
        recursive=False if flat else None,
    )
    with live_progress() as progress:
        campaign = Campaign.create(
            "memory" if dry_run else new_place(name),
            source,
            **settings,
            progress=progress,
            **given,
        )
    with campaign:
        place = new_place(name) if dry_run else shown_place(name, campaign)
        status, following = campaign.status(), f"ally ask {typed(name, campaign)} --out next.csv"
        hint = [] if campaign.task_note is None else [campaign.task_note]
        hint += _hint(campaign) if settings["encoder"] == "auto" else []
        if dry_run:
            following = "run it again without --dry-run to create the campaign"
        if as_json:
            dump(_data(campaign, status, following, hint))
        else:
            say(*_page(campaign, status, place, source, following, hint))


def _hint(campaign: Campaign) -> list[str]:
    """What an encoder would add, if one would help and none is installed."""
    from ally.data.encoders.choosing import missing_encoder

    settings = campaign.settings
    words = missing_encoder(campaign.source.samples, settings.model, settings.options.get("embeddings"))
    return [] if words is None else [words]


def _page(campaign: Campaign, status: Status, place: str, source: str, following: str, hint: list[str]) -> list[str]:
    from ally.data.samples import notes_beside_columns

    settings, samples = campaign.settings, campaign.source.samples
    one, many = samples.kind.words
    if settings.task == "regression":
        wanted = "labels are numbers"
    elif settings.classes is None:
        wanted = "any label is a class"
    else:
        wanted = f"classes {few(map(str, settings.classes), 10)}"
    lines = [f"{place}: {counted(status.samples, one, many)} of {source}; {wanted}"]
    if status.given:
        lines.append(f"  {counted(status.given, 'label')} came with the source")
    share = f"{settings.held_out_share:.0%} of each query asks about them until they are labelled"
    if status.evaluate.samples:
        lines.append(
            f"  {counted(status.evaluate.samples, 'random sample')} held out, never trained on, to measure the "
            f"learning curve; {share}"
        )
    elif settings.evaluate == "cv":
        lines.append(
            "  no samples are held out; the learning curve is estimated by cross-validation on the chosen labels, "
            "which are not a random sample"
        )
    else:
        lines.append("  no samples are held out, so there will be no learning curve; --evaluate N holds some out")
    if status.validate.samples:
        lines.append(f"  {counted(status.validate.samples, 'random sample')} held out for early stopping; {share}")
    if settings.store_policy == "majority" and settings.opinions % 2 == 0:
        lines.append(f"  {settings.opinions} opinions can tie: then the last one counts; an odd number avoids ties")
    lines += [f"  {note}" for note in (*notes_beside_columns(samples), *hint, *status.notes)]
    lines += _column_lines(samples.columns())
    if len(samples.problems):
        lines.append(f"  {counted(len(samples.problems), 'problem')}:")
        lines += [f"  {line}" for line in problem_lines(campaign.source.problems(), FEW)]
    return [*lines, f"next: {following}"]


def _column_lines(columns: dict[str, str]) -> list[str]:
    """Every column and how it is read; of very many, the first."""
    if not columns:
        return []
    width = min(30, max(map(len, columns)))
    lines = [f"    {name:<{width}}  {how}" for name, how in list(columns.items())[:COLUMNS]]
    more = [f"    … (--json lists {len(columns) - COLUMNS} more)"] if len(columns) > COLUMNS else []
    return ["  columns:", *lines, *more]


def _data(campaign: Campaign, status: Status, following: str, hint: list[str]) -> dict[str, Any]:
    return {
        "name": campaign.name,
        "kind": campaign.source.samples.kind.name,
        "task": status.task,
        "classes": None if campaign.settings.classes is None else list(campaign.settings.classes),
        "samples": status.samples,
        "given": status.given,
        "evaluate": campaign.settings.evaluate,
        "validate": status.validate.samples,
        "columns": campaign.source.samples.columns(),
        "encoder": status.encoder,
        "notes": [*status.notes, *campaign.source.samples.notes, *hint],
        "problems": list(campaign.source.problems()),
        "next": following,
    }
