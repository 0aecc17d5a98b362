"""``ally new``: a campaign from what you have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ally.cli.campaign.names import FEW, AsJson, new_place, shown_place, typed
from ally.cli.campaign.printing import counted, dump, few, problem_lines, say
from ally.cli.console import live_progress

if TYPE_CHECKING:
    from ally.campaign import Campaign, Status

PolicyName = Literal["last", "majority"]
POLICY_HELP = "Which label counts if annotators differ; the majority of numbers (--regression) is their median."
WORDS = {
    "images": ("image", "images"),
    "text": ("text", "texts"),
    "table": ("row", "rows"),
    "features": ("row of features", "rows of features"),
}


def new(
    name: Annotated[str, typer.Argument(help="Where to keep it: pets makes the file pets.db; or postgresql://…", metavar="NAME")],
    source: Annotated[
        str, typer.Option("--from", help="A folder of images, or a .csv .tsv .parquet .jsonl .txt .npy file.", metavar="SOURCE")
    ],
    classes: Annotated[str | None, typer.Option(help="All classes, separated by commas (default: any label is one).")] = None,
    regression: Annotated[bool, typer.Option("--regression", help="Labels are numbers to predict.")] = False,
    id_column: Annotated[str | None, typer.Option(help="Column of a table that holds the ids (default: id or name, if unique).")] = None,
    text: Annotated[str | None, typer.Option(help="Column of a table that holds the texts (default: text, if there is one).")] = None,
    image: Annotated[str | None, typer.Option(help="Column of a table that holds paths of images.")] = None,
    label: Annotated[str | None, typer.Option(help="Column that holds labels known already; folder: subfolders are classes.")] = None,
    embeddings: Annotated[Path | None, typer.Option(help="Vectors to learn from instead: .npz (X, ids), or a table with ids.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A column of a table to learn from: C, C=number or C=category (default: all that can serve).")
    ] = None,
    ids: Annotated[Path | None, typer.Option(help="Ids of the rows of an .npy file, one a line (default: row numbers).")] = None,
    folder: Annotated[Path | None, typer.Option(help="Where the paths of --image begin (default: the folder of the table).")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file (default: utf-8).")] = None,
    size: Annotated[int | None, typer.Option(help="The learner sees images of this side (default: 32).", min=8)] = None,
    flat: Annotated[bool, typer.Option("--flat", help="Leave out images in subfolders.")] = False,
    strategy: Annotated[str, typer.Option(help="A name that `ally strategies` lists.")] = "ally",
    objective: Annotated[str | None, typer.Option(help="How to train, if not as the strategy says.")] = None,
    model: Annotated[str | None, typer.Option(help="The network (default: by the kind of data).")] = None,
    batch: Annotated[int, typer.Option(help="Samples of a query, and answers after which the learner is trained again.", min=1)] = 20,
    evaluate: Annotated[
        int | None, typer.Option(help="Random samples for the learning curve (default: 100, at most a tenth).", min=0)
    ] = None,
    validate: Annotated[int, typer.Option(help="Random samples for early stopping.", min=0)] = 0,
    random_share: Annotated[float, typer.Option(help="Share of each query that is drawn at random, to compare with.")] = 0.0,
    budget: Annotated[int | None, typer.Option(help="Labels to be bought in all, for the advice when to stop.", min=1)] = None,
    lease: Annotated[float, typer.Option(help="Minutes for which samples are kept for the one who asked.", metavar="MINUTES")] = 60.0,
    policy: Annotated[PolicyName, typer.Option(help=POLICY_HELP)] = "last",
    opinions: Annotated[int, typer.Option(help="Different annotators who are asked about each sample.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Equal seeds give the same order of samples.", min=0)] = 0,
    by_hand: Annotated[bool, typer.Option("--by-hand", help="Train only when `ally retrain` says so.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a labelling campaign from a folder of images, a table, texts or features."""
    from ally.campaign import Campaign
    from ally.errors import InputError

    if not name:
        raise InputError("the name of the campaign is empty; give one, such as pets")
    options: dict[str, Any] = {
        "id_column": id_column,
        "text": text,
        "image": image,
        "label": label,
        "embeddings": embeddings,
        "columns": _columns(column),
        "ids": ids,
        "folder": folder,
        "encoding": encoding,
        "size": size,
        "recursive": False if flat else None,
    }
    given = {option: value for option, value in options.items() if value is not None}
    with live_progress() as progress:
        campaign = Campaign.create(
            new_place(name),
            source,
            classes=None if classes is None else read_classes(classes),
            task="regression" if regression else "classification",
            strategy=strategy,
            objective=objective,
            model=model,
            batch=batch,
            evaluate=evaluate,
            validate=validate,
            random_share=random_share,
            budget=budget,
            lease_seconds=in_seconds(lease),
            policy=policy,
            opinions=opinions,
            automatic=not by_hand,
            seed=seed,
            progress=progress,
            **given,
        )
    with campaign:
        status, following = campaign.status(), f"ally ask {typed(name, campaign)} --out next.csv"
        if as_json:
            dump(_data(campaign, status, following))
        else:
            say(*_page(campaign, status, shown_place(name, campaign), source, following))


def read_classes(text: str, known: Iterable[Any] = ()) -> list[Any]:
    """Those `known` already by their names; the others are whole numbers if all of them are written as such, and texts otherwise, or if
    the known ones are texts."""
    from ally.sources.export.cells import WRITTEN

    names = [name.strip() for name in text.split(",")]
    same = {str(value): value for value in known}
    others = [name for name in names if name not in same]
    numbers = all(WRITTEN[int].fullmatch(name) for name in others) and not (same and all(isinstance(value, str) for value in same.values()))
    return [same[name] if name in same else int(name) if numbers else name for name in names]


def in_seconds(lease: float) -> float:
    """Of a lease in minutes."""
    from ally.campaign.settings import LONGEST_LEASE
    from ally.errors import InputError

    if not 0 < 60 * lease <= LONGEST_LEASE:
        days = f"{LONGEST_LEASE / 86400:g} days"
        raise InputError(
            f"--lease {lease:g} is not a number of minutes above 0, and at most {LONGEST_LEASE / 60:.0f} ({days}); give another"
        )
    return 60 * lease


def _columns(given: list[str] | None) -> Any:
    """Names, or a mapping from names to kinds where any is given."""
    if not given:
        return None
    if not any("=" in word for word in given):
        return given
    pairs = [word.rpartition("=") if "=" in word else (word, "", "") for word in given]
    return {name: kind or None for name, _, kind in pairs}


def _page(campaign: Campaign, status: Status, place: str, source: str, following: str) -> list[str]:
    settings, samples = campaign.settings, campaign.samples
    one, many = WORDS[samples.kind]
    if settings.task == "regression":
        wanted = "numbers to predict"
    elif settings.classes is None:
        wanted = "any label is a class"
    else:
        wanted = f"classes {few(map(str, settings.classes), 10)}"
    lines = [f"{place}: {counted(status.samples, one, many)} of {source}; {wanted}"]
    if status.given:
        lines.append(f"  {counted(status.given, 'label')} came with the source")
    share = f"{settings.held_out_share:.0%} of each query is about them until they are labelled"
    if status.evaluate.samples:
        lines.append(
            f"  {counted(status.evaluate.samples, 'random sample')} held out, never trained on, to measure the learning curve; {share}"
        )
    else:
        lines.append("  no sample is held out, so there will be no learning curve; --evaluate N holds some out")
    if status.validate.samples:
        lines.append(f"  {counted(status.validate.samples, 'random sample')} held out to stop a training early; {share}")
    if settings.store_policy == "majority" and settings.opinions % 2 == 0:
        lines.append(f"  of {settings.opinions} opinions neither may be the majority: then the last one counts; an odd number avoids it")
    lines += [f"  {note}" for note in samples.notes]
    if len(samples.problems):
        lines.append(f"  {counted(len(samples.problems), 'problem')}:")
        lines += [f"  {line}" for line in problem_lines(campaign.problems(), FEW)]
    return [*lines, f"next: {following}"]


def _data(campaign: Campaign, status: Status, following: str) -> dict[str, Any]:
    return {
        "name": campaign.name,
        "kind": campaign.samples.kind,
        "task": status.task,
        "classes": None if campaign.settings.classes is None else list(campaign.settings.classes),
        "samples": status.samples,
        "given": status.given,
        "evaluate": status.evaluate.samples,
        "validate": status.validate.samples,
        "notes": list(campaign.samples.notes),
        "problems": list(campaign.problems()),
        "next": following,
    }
