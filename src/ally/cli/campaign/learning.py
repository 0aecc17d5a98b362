"""``ally retrain`` and ``ally predict``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign.files import WEIGHTS
from ally.cli.campaign.looking import curve_line
from ally.cli.campaign.opening import FEW, AsJson, Moved, Name, opened, typed
from ally.cli.campaign.printing import counted, dump, note, problem_lines, say
from ally.cli.campaign.sheets import check_out, write_rows
from ally.cli.console import live_progress, stderr
from ally.cli.reading import Encoding, NoHeader, OwnKind, given_options
from ally.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


def retrain(
    name: Name,
    background: Annotated[
        bool, typer.Option("--background", help="Train in a separate process; `ally status` shows the result.")
    ] = False,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """Train on all labels now, and rank the samples to ask about next.

    Example: ally retrain pets
    """
    with opened(name, source) as campaign:
        if background:
            campaign.retrain(wait=False)
            if as_json:
                dump({"model": None, "background": True})
            else:
                say(f"training in the background; `ally status {typed(name, campaign)}` shows the result")
            return
        with live_progress() as progress:
            number = campaign.retrain(progress=progress)
        status, declared = campaign.status(), campaign.settings.classes
    line = next(line for line in status.curve if line.number == number)
    if as_json:
        dump(line.to_json())
        return
    note(*(f"note: {words}" for words in status.notes))
    if not line.labels:
        say(f"model {number}: no labels to train on yet; the samples are ranked to cover the data")
    elif status.task == "classification" and declared is None and len(status.classes) < 2:
        say(
            f"model {number}: all labels are {next(iter(status.classes))}, but a classifier needs two classes; label "
            "others too"
        )
    else:
        say(curve_line(line))


def predict(
    name: Annotated[
        str,
        typer.Argument(help="A campaign, or a .safetensors file from `ally export --model`.", metavar="NAME|MODEL"),
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            help="New data of the same kind (default: the unlabelled samples of the campaign).",
            metavar="NEWDATA",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this .csv, .jsonl or .parquet file instead of standard output.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(help="Vectors of the new samples, if the model was trained on vectors.")
    ] = None,
    ids: Annotated[Path | None, typer.Option(help="Ids for the rows of an .npy file, one per line.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="Folder that image paths are relative to (default: the table's).")
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="The encoder that a model file names, if it is not installed: a name, which may be fetched, "
            "or a folder."
        ),
    ] = None,
    kind: OwnKind = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column with the probability of each class.")
    ] = False,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """Predict labels and their probabilities with the newest model.

    Example: ally predict pets --out predictions.csv
    """
    check_out(out, (".csv", ".jsonl", ".parquet"))
    given = given_options(
        kind=kind, embeddings=embeddings, ids=ids, folder=folder, encoding=encoding, no_header=no_header
    )
    if data is None and given:
        option = "no-header" if "header" in given else next(iter(given))
        raise InputError(f"--{option} is for new data; name it too: ally predict {name} NEWDATA")
    with stderr.status("predicting"):
        if name.lower().endswith(WEIGHTS):
            if data is None:
                raise InputError(
                    f"{name} is a model without a campaign; say what to predict: ally predict {name} NEWDATA"
                )
            table = _by_model(name, data, given, encoder, probabilities)
        elif encoder is not None:
            raise InputError("--encoder is for a model file; a campaign names its own: ally trust NAME")
        else:
            with opened(name, source) as campaign:
                table = campaign.predict(data, probabilities=probabilities, **given).astype({"id": str})
    note(*(f"note: {line}" for line in problem_lines(table.attrs.get("problems", []), FEW)))
    note(*(f"note: {line}" for line in table.attrs.get("notes", [])))
    note(f"note: {table.attrs['model']}")
    if as_json:
        dump(json.loads(table.to_json(orient="records", double_precision=6)))
    if out is not None or not as_json:
        write_rows(out, list(map(str, table)), _rows(table))
    if out is not None:
        note(f"{counted(len(table), 'prediction')} written to {out}")


def _by_model(path: str, data: str, options: dict[str, Any], encoder: str | None, probabilities: bool) -> pd.DataFrame:
    from ally.campaign.training.predict import predict as predict_by
    from ally.learning.trained import Trained

    return predict_by(Trained.read(path), data, options, encoder=encoder, probabilities=probabilities)


def _rows(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for values in table.itertuples(index=False, name=None):
        line = dict(zip(map(str, table), values, strict=True))
        yield {name: round(value, 4) if name.startswith("probability") else value for name, value in line.items()}
