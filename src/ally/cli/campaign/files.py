"""``ally import``, ``export`` and ``rescan``: labels in files, and rescanning the source."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign.classes import AddClasses, unknown_classes
from ally.cli.campaign.opening import FEW, AsJson, IdColumn, LabelColumn, Moved, Name, opened, typed
from ally.cli.campaign.printing import counted, dump, note, problem_lines, say
from ally.cli.campaign.sample_columns import columns_of, shown
from ally.cli.campaign.sheets import check_out, write_rows
from ally.cli.console import live_progress
from ally.cli.reading import Encoding, NoHeader, given_options
from ally.errors import InputError, LabelError, UnknownClasses
from ally.types import SKIP, PlainModel

if TYPE_CHECKING:
    from ally.campaign import Campaign
    from ally.data import Answer

ANSWER = ["id", "label", "skip", "annotator", "at"]
RECORD = ["number", "id", "annotator", "at", "kind", "label", "query", "undoes"]
WEIGHTS = ".safetensors"


def import_labels(
    name: Name,
    path: Annotated[
        Path,
        typer.Argument(
            help="A .csv, .tsv, .jsonl or .parquet file, or a folder with one folder of images per class.",
            metavar="FILE|FOLDER",
        ),
    ],
    annotator: Annotated[
        str | None, typer.Option(help="Who labelled, if the file does not say (default: import).")
    ] = None,
    id_column: IdColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    add_classes: AddClasses = False,
    as_json: AsJson = False,
) -> None:
    """Import labels made elsewhere, with annotators and times: all of them or, if one is wrong, none.

    Example: ally import pets labels.csv
    """
    reading = given_options(id_column=id_column, label=label, encoding=encoding, no_header=no_header)
    with opened(name) as campaign:
        try:
            told = campaign.import_labels(path, annotator=annotator, add_classes=add_classes, **reading)
        except UnknownClasses as error:
            raise LabelError(unknown_classes(error, typed(name, campaign))) from error
    if as_json:
        dump(told.to_json())
    else:
        before = f" ({told.known} already saved)" if told.known else ""
        say(f"{counted(told.labelled, 'label')} and {counted(told.skipped, 'skip')} imported from {path}{before}")


def export(
    name: Name,
    out: Annotated[
        Path,
        typer.Argument(
            help="A .csv, .jsonl or .parquet file; a .json file for Label Studio; or, without an extension, a new "
            "folder with one folder of images per class.",
            metavar="FILE|FOLDER",
        ),
    ],
    skips: Annotated[bool, typer.Option("--skips/--no-skips", help="Include skipped samples.")] = True,
    link: Annotated[
        bool, typer.Option("--link", help="Link images instead of copying them, where the disk allows.")
    ] = False,
    with_columns: Annotated[
        bool,
        typer.Option(
            "--with-columns", help="Add texts or columns, and predictions with the probability of every class."
        ),
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write every answer ever given, including undone ones, as .jsonl or .csv.")
    ] = False,
    model: Annotated[
        bool, typer.Option("--model", help="Write the newest model as a .safetensors file, for `ally predict`.")
    ] = False,
    plain: Annotated[
        PlainModel | None,
        typer.Option(
            "--as",
            help="With --model: a plain model trained on what the newest one says of the samples. The file of a model "
            "that learned from the whole pool holds part of it; this one holds nothing of it.",
        ),
    ] = None,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """Write the current labels, the full history of answers, or the newest model.

    Example: ally export pets labels.csv
    """
    model = model or out.suffix.lower() == WEIGHTS
    if record and model:
        raise InputError("--record and --model exclude each other; write one at a time")
    if plain is not None and not model:
        raise InputError("--as says what kind of model to write; add --model, or leave --as out")
    with opened(name, source) as campaign:
        if model:
            out, n, what = _write_model(campaign, out, plain), 1, "model"
        elif record:
            check_out(out, (".csv", ".jsonl"))
            n, what = write_rows(out, RECORD, _record(campaign)), "answer"
        elif with_columns:
            check_out(out, (".csv", ".jsonl", ".parquet"))
            n, what = _write_wide(campaign, out, skips), "answer" if skips else "label"
        else:
            n, what = campaign.export(out, skips=skips, link=link), "answer" if skips and out.suffix else "label"
            if not out.suffix and (left := len(campaign.labels()) - n):
                note(f"note: {counted(left, 'image')} left out: missing from the source, or unreadable")
    if as_json:
        dump({"path": str(out), "written": n})
    else:
        say(f"{counted(n, what)} written to {out}")


def rescan(name: Name, source: Moved = None, as_json: AsJson = False) -> None:
    """Read the source again: add new samples and set missing ones aside.

    Example: ally rescan pets
    """
    with opened(name, source) as campaign, live_progress() as progress:
        found = campaign.source.rescan(progress)
    if as_json:
        dump(found.to_json())
        return
    labelled = f", {counted(found.labelled, 'new label')}" if found.labelled else ""
    say(f"{counted(found.added, 'new sample')}, {found.gone} missing, {found.back} back{labelled}")
    if found.problems:
        say("problems:", *problem_lines(found.problems, FEW))


def _write_wide(campaign: Campaign, out: Path, skips: bool) -> int:
    """Labels beside what a person sees of each sample and what the newest model says of it."""
    answers = campaign.answers.current(skips=skips)
    ids = [answer.id for answer in answers]
    seen = shown(campaign, ids, True)
    said: dict[str, dict[str, Any]] = {}
    if campaign.training.has_model and ids:
        table = campaign.training.predictions(ids).rename(columns={"label": "predicted"})
        said = {line["id"]: {str(name): value for name, value in line.items()} for line in table.to_dict("records")}
    rows = [
        {
            **_answer_line(answer),
            **{
                name: round(value, 4) if isinstance(value, float) else value
                for name, value in said.get(answer.id, {}).items()
            },
            **seen[answer.id],
        }
        for answer in answers
    ]
    extra = [name for name in next(iter(said.values()), {}) if name != "id"]
    noted = ["note"] if any(answer.note for answer in answers) else []
    return write_rows(out, [*ANSWER, *noted, *extra, *columns_of(seen)], rows)


def _answer_line(answer: Answer) -> dict[str, Any]:
    skip = answer.label is SKIP
    said = (answer.id, None if skip else answer.label, "yes" if skip else None, answer.annotator, answer.at)
    return {**dict(zip(ANSWER, said, strict=True)), **({} if answer.note is None else {"note": answer.note})}


def _write_model(campaign: Campaign, out: Path, plain: PlainModel | None) -> Path:
    target = out if out.suffix.lower() == WEIGHTS else out.with_name(out.name + WEIGHTS)
    check_out(target, (WEIGHTS,))
    from ally.campaign.training.models import origin

    if plain is not None:
        copy = campaign.training.plain_model(plain)
        copy.write(target)
        share = copy.about["agreement"]
        said = f"the same label for {share:.1%}" if copy.fit.classes else f"predictions that correlate at {share:.3f}"
        note(f"note: it and the newest model give {said} of samples that it was not trained on")
        return target
    model = campaign.training.model()
    model.write(target)
    note(f"note: {origin(model)}")
    return target


def _record(campaign: Campaign) -> Iterator[dict[str, Any]]:
    for answer in campaign.answers.all():
        yield {
            "number": answer.number,
            "id": answer.sample,
            "annotator": answer.annotator,
            "at": datetime.fromtimestamp(answer.at, UTC).isoformat(),
            "kind": answer.kind,
            "label": answer.value,
            "query": answer.query,
            "undoes": answer.undoes,
        }
