"""``ally query``: one-shot selection from files."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ally.cli.console import live_progress, make_printable, stderr, write_lines
from ally.cli.reading import (
    Columns,
    EmbeddingsFile,
    EncoderChoice,
    Encoding,
    IdColumn,
    IdsFile,
    ImageColumn,
    ImageFolder,
    MissingLabel,
    NoHeader,
    TextColumn,
    given_options,
)
from ally.errors import InputError

TaskName = Literal["auto", "classification", "regression"]
Duplicates = Literal["keep", "exact", "near"]
of_labels = partial(typer.Option, rich_help_panel="Labels")
of_learner = partial(typer.Option, rich_help_panel="Learner")
of_candidates = partial(typer.Option, rich_help_panel="Candidates")


def query(
    pool: Annotated[
        Path,
        typer.Argument(
            help="Features: .npy, .npz (X, ids, y), a table (.csv, .tsv, .xlsx, .parquet, .jsonl, .txt), a folder of "
            "images, or one of .npy or .parquet parts.",
            metavar="POOL",
        ),
    ],
    n: Annotated[int, typer.Option("--n", help="How many samples to choose.", metavar="N")],
    labels: Annotated[
        Path | None, of_labels(help="Labels so far: a table with the columns id and label (default: those in POOL).")
    ] = None,
    strategy: Annotated[str, of_learner(help="A name listed by `ally strategies`.")] = "ally",
    model: Annotated[
        str, of_learner(help="What learns: auto, linear, mlp, extra-trees, ... (auto chooses by cross-validation).")
    ] = "auto",
    objective: Annotated[str | None, of_learner(help="How to train (default: as the strategy does).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write CSV to this file instead of standard output.")] = None,
    id_column: IdColumn = None,
    label: Annotated[
        str | None,
        of_labels(
            help="Column of POOL with known labels (default: label, class, target or y), or none; for images, folder: "
            "subfolders are classes."
        ),
    ] = None,
    encoder: EncoderChoice = None,
    missing_label: MissingLabel = None,
    text: TextColumn = None,
    image: ImageColumn = None,
    column: Columns = None,
    embeddings: EmbeddingsFile = None,
    ids: IdsFile = None,
    folder: ImageFolder = None,
    encoding: Encoding = None,
    channels: Annotated[
        Literal["auto", "first", "last"], typer.Option(help="Which axis of an image array has the channels.")
    ] = "auto",
    no_header: NoHeader = False,
    task: Annotated[TaskName, of_labels(help="auto, classification or regression.", metavar="TASK")] = "auto",
    classes: Annotated[str | None, of_labels(help="All classes, separated by commas.")] = None,
    duplicates: Annotated[
        Duplicates, of_candidates(help="Copies: keep them, leave out exact ones, or near ones too.")
    ] = "exact",
    outliers: Annotated[
        float | None, of_candidates(help="Leave out this share of the candidates: those farthest from all others.")
    ] = None,
    seed: Annotated[int, of_learner(help="The same seed gives the same ids.")] = 0,
    engine: Annotated[
        str, typer.Option(help="local, ray or ray://host:port: where candidates are looked at.", metavar="E")
    ] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose which samples to label next.

    Example: ally query pool.csv --labels labels.csv --n 20 --out next.csv
    """
    import ally
    from ally.data import open_pool
    from ally.data.labels_file import read_labels

    _ensure_writable(out)
    hygiene = ally.Hygiene(duplicates=duplicates, outliers=outliers)
    reading = given_options(
        id_column=id_column,
        label=label,
        missing_label=missing_label,
        text=text,
        image=image,
        column=column,
        folder=folder,
        encoding=encoding,
        no_header=no_header,
    )
    samples = open_pool(
        pool,
        ids=ids,
        labelled=labels is not None,
        encoder=encoder or "auto",
        channels=channels,
        vectors=embeddings,
        **reading,
    )
    y = None if labels is None else read_labels(labels, missing_label)
    with live_progress() as progress:
        q = ally.query(
            samples,
            y,
            n=n,
            strategy=strategy,
            model=model,
            objective=objective,
            task=task,
            classes=None if classes is None else _declare(classes, y.values() if y else samples.labels or ()),
            hygiene=hygiene,
            random_state=seed,
            progress=progress,
            engine=engine,
        )
    for note in q.notes:
        print(f"note: {make_printable(note)}", file=sys.stderr)
    quality = q.report.get("rank_quality")
    if quality is not None:
        stderr.print(
            f"note: the dual head ranks held-out labelled samples with correlation {quality:.2f}",
            highlight=False,
            soft_wrap=True,
        )
    text = _json(q) if as_json else _csv(q)
    if out is None:
        write_lines(text.removesuffix("\n").split("\n"))
    else:
        from ally.files import write_whole

        write_whole(out, text.encode())
        stderr.print(f"{len(q)} ids written to {out}", highlight=False)


def _declare(classes: str, labels: Iterable[Any]) -> list[Any]:
    """The declared classes in the labels' own type."""
    names = [name.strip() for name in classes.split(",")]
    kind = type(next((label for label in labels if label is not None), ""))
    try:
        return [kind(name) for name in names] if kind in (int, float) else names
    except ValueError:
        return names


def _csv(q: Any) -> str:
    """No spreadsheet runs an id, a label or a column of somebody else's as a formula."""
    buffer = io.StringIO()
    q.why.rename(index=_cell).map(_cell).to_csv(buffer)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    from ally.data.export.cells import text_cell

    return text_cell(value) if isinstance(value, str) else value


def _json(q: Any) -> str:
    rows = json.loads(q.why.reset_index().to_json(orient="records"))
    return (
        json.dumps(
            {"ids": q.ids.tolist(), "why": rows, "notes": list(q.notes), "rank_quality": q.report.get("rank_quality")},
            indent=2,
        )
        + "\n"
    )


def _ensure_writable(out: Path | None) -> None:
    if out is None:
        return
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: the folder {out.parent} does not exist; create it first")
    if out.is_dir():
        raise InputError(f"--out {out} is a folder; give the name of a file")
