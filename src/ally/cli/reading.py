"""Options that say how a table, a folder or an array is read: the same for every command that reads samples."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

of_source = partial(typer.Option, rich_help_panel="Source")

OwnKind: TypeAlias = Annotated[
    str | None,
    of_source("--kind", help="A kind of data of your own, which is imported.", metavar="MODULE:NAME"),
]
IdColumn: TypeAlias = Annotated[
    str | None, of_source(help="Column with the ids (default: id, name or one like article_id, if unique).")
]
TextColumn: TypeAlias = Annotated[
    str | None, of_source(help="Column with the texts (default: text, or one of long texts).")
]
ImageColumn: TypeAlias = Annotated[str | None, of_source(help="Column with the paths of images.")]
Columns: TypeAlias = Annotated[
    list[str] | None,
    of_source(help="A column to learn from: C, C=number or C=category (default: all usable ones).", metavar="C"),
]
EmbeddingsFile: TypeAlias = Annotated[
    Path | None,
    of_source(help="Learn from these vectors instead: .npy in the order of the samples, .npz (X, ids), or a table."),
]
IdsFile: TypeAlias = Annotated[
    Path | None,
    of_source(help="Ids for the rows of an .npy file, one per line (default: row numbers, or the order)."),
]
ImageFolder: TypeAlias = Annotated[
    Path | None, of_source(help="Folder that the paths of --image are relative to (default: the table's).")
]
MissingLabel: TypeAlias = Annotated[
    str | None, of_source(help="A label that marks samples without one, such as -1.", metavar="LABEL")
]
EncoderChoice: TypeAlias = Annotated[
    str | None,
    of_source(
        help="A pretrained encoder for texts or images: a name, or the folder of a model.", metavar="NAME|FOLDER"
    ),
]
Encoding: TypeAlias = Annotated[str | None, of_source(help="Text file encoding (default: utf-8).")]
NoHeader: TypeAlias = Annotated[
    bool, of_source("--no-header", help="The file has no header line; columns are named column 1, column 2 …")
]
ImageSize: TypeAlias = Annotated[
    int | None,
    of_source(help="Side of the images that the learner sees, in pixels (default: 32).", min=8, metavar="N"),
]
ChannelAxis: TypeAlias = Annotated[
    Literal["first", "last"] | None, of_source(help="Which axis of an image array has the channels (default: detect).")
]


def read_columns(given: list[str] | None) -> Any:
    """Names, or a mapping from names to kinds where any is given."""
    if not given:
        return None
    if not any("=" in word for word in given):
        return given
    pairs = [word.rpartition("=") if "=" in word else (word, "", "") for word in given]
    return {name: kind or None for name, _, kind in pairs}


def given_options(*, no_header: bool = False, column: list[str] | None = None, **options: Any) -> dict[str, Any]:
    """What was given, as `ally.data.open_source` takes it."""
    found = {**options, "columns": read_columns(column), "header": False if no_header else None}
    return {name: value for name, value in found.items() if value is not None}
