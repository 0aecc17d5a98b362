"""``ally ask``, ``tell``, ``skip``, ``undo``, ``release``: labelling from the command line."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign import answers as told_answers
from ally.cli.campaign.classes import AddClasses, unknown_classes
from ally.cli.campaign.opening import Annotator, AsJson, IdColumn, Key, LabelColumn, Moved, Name, Show, opened, typed
from ally.cli.campaign.printing import counted, dump, few, note, say
from ally.cli.campaign.sample_columns import columns_of, shown
from ally.cli.campaign.sheets import check_out, write_rows
from ally.cli.reading import Encoding, NoHeader, given_options
from ally.errors import AllyError, InputError, LabelError, PoolExhausted, UnknownClasses
from ally.types import SKIP

if TYPE_CHECKING:
    from ally.campaign import Campaign, CampaignQuery, Told

FEW = 5
COLUMNS = ["id", "label", "query", "kind", "predicted", "probability"]


def ask(
    name: Name,
    n: Annotated[
        int | None, typer.Option("--n", help="How many samples (default: a batch, or all that are left).", metavar="N")
    ] = None,
    annotator: Annotator = None,
    key: Key = None,
    out: Annotated[
        Path | None, typer.Option(help="Write to this .csv or .jsonl file; fill in its column label, then `ally tell`.")
    ] = None,
    show: Show = None,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """Get the next samples to label. They are reserved for you for a while.

    Example: ally ask pets --n 20 --out next.csv
    """
    check_out(out, (".csv", ".jsonl"))
    with opened(name, source) as campaign:
        _ensure_told(campaign, out)
        query = _asked(campaign, n, annotator, key, typed(name, campaign))
        seen = shown(campaign, query.ids, show)
        if query.model is None and any(sample.kind == "active" for sample in query.samples):
            note("note: no model is trained yet, so these samples are random")
        if as_json:
            dump(_data(query, seen))
        if out is not None or not as_json:
            write_rows(out, [*COLUMNS, *columns_of(seen)], [{**line, **seen[line["id"]]} for line in _lines(query)])
        if out is not None:
            note(
                f"{counted(len(query), 'sample')} written to {out}; fill in the column label, then: ally tell "
                f"{typed(name, campaign)} {out}"
            )


def _asked(campaign: Campaign, n: int | None, annotator: str | None, key: str | None, name: str) -> CampaignQuery:
    """A query; if nothing is left to ask about, the error says what to do."""
    try:
        return campaign.ask(n, annotator=annotator, key=key, at_most=n is None)
    except PoolExhausted as error:
        if error.available:
            raise
        held = campaign.status().leased
    if held:
        wait = f"answer them, wait until the reservation ends, or free them: ally release {name} QUERY"
        raise InputError(f"no sample is free, {held} are reserved for someone; {wait}")
    done = "labelled or skipped" + (", or has your answer" if campaign.settings.opinions > 1 else "")
    following = f"`ally export {name} labels.csv` writes the labels, `ally rescan {name}` looks for new samples"
    raise InputError(f"nothing left to ask about: every sample is {done}; {following}")


def _ensure_told(campaign: Campaign, out: Path | None) -> None:
    """Never overwrite a file with answers that the campaign does not have yet."""
    from ally.data import read_answers

    if out is None or not out.exists():
        return
    given: dict[str, Any] = {}
    try:
        for answer in read_answers(out):
            told_answers.add(given, answer.id, answer.label)
    except AllyError as error:
        raise InputError(
            f"{out} already exists and was not written by `ally ask` ({error}); give --out another name"
        ) from error
    lost = campaign.answers.untold(given)
    if lost:
        such = f"the skip of {lost[0]!r}" if given[lost[0]] is SKIP else f"{given[lost[0]]!r} for {lost[0]!r}"
        raise InputError(
            f"{out} holds {counted(len(lost), 'answer')} that the campaign does not have, such as {such}; "
            "run `ally tell` on it first, or give --out another name"
        )


def tell(
    name: Name,
    answers: Annotated[
        list[str] | None,
        typer.Argument(
            help="A .csv, .jsonl or .parquet file with the columns id and label; - for standard input; or ID=LABEL "
            "pairs (after -- if an id starts with a dash).",
            metavar="FILE|ID=LABEL",
        ),
    ] = None,
    query: Annotated[
        int | None, typer.Option(help="Number of the query (default: as in the file).", metavar="N")
    ] = None,
    id_column: IdColumn = None,
    label: LabelColumn = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    add_classes: AddClasses = False,
    annotator: Annotator = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Save labels: all of them or, if one is wrong, none.

    Rows without a label stay open. To skip a sample, write yes into a column named skip.

    Example: ally tell pets next.csv, or ally tell pets a.jpg=cat b.jpg=dog
    """
    written = given_options(encoding=encoding, no_header=no_header)
    with opened(name) as campaign:
        read = partial(campaign.answers.read, id_column=id_column, label=label)
        given = told_answers.read(answers or [], read, written)
        number = given.query if query is None else query
        try:
            if given.adjudicates:
                told = campaign.relabel(given.by_id, annotator=annotator, key=key, settle=True)
            elif number is None:
                told = campaign.relabel(given.by_id, annotator=annotator, key=key, add_classes=add_classes)
            else:
                told = campaign.tell(number, given.by_id, annotator=annotator, key=key, add_classes=add_classes)
        except UnknownClasses as error:
            raise LabelError(unknown_classes(error, typed(name, campaign))) from error
    _say_told(told, as_json)


def skip(
    name: Name,
    ids: Annotated[
        list[str], typer.Argument(help="Ids of the samples (after -- if one starts with a dash).", metavar="ID")
    ],
    annotator: Annotator = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Skip samples: they are not asked about again.

    Example: ally skip pets blurry.jpg
    """
    with opened(name) as campaign:
        told = campaign.skip(ids, annotator=annotator, key=key)
    _say_told(told, as_json)


def undo(
    name: Name,
    number: Annotated[
        int | None, typer.Option(help="Number of the answer to undo (default: your last).", metavar="N")
    ] = None,
    annotator: Annotator = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Undo your last answer, or one by its number. The sample can be asked about again.

    Example: ally undo pets
    """
    with opened(name) as campaign:
        undone = campaign.undo(annotator=annotator, number=number, key=key)
    if as_json:
        dump(undone.to_json())
    else:
        what = "the skip" if undone.kind == "skip" else f"the label {undone.label!r}"
        say(f"undone: {what} of {undone.id} (answer {undone.number})")


def release(
    name: Name,
    query: Annotated[int, typer.Argument(help="Number of the query.", metavar="QUERY")],
    as_json: AsJson = False,
) -> None:
    """Free the unanswered samples of a query, so that others can label them now.

    Example: ally release pets 12
    """
    with opened(name) as campaign:
        freed = campaign.release(query)
    if as_json:
        dump({"query": query, "released": freed})
    else:
        say(f"{counted(freed, 'sample')} of query {query} released")


def _lines(query: CampaignQuery) -> list[dict[str, Any]]:
    return [
        {
            "id": str(sample.id),
            "label": None,
            "query": query.id,
            "kind": sample.kind,
            "predicted": sample.why.get("predicted"),
            "probability": _rounded(sample.why.get("probability")),
        }
        for sample in query.samples
    ]


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def _data(query: CampaignQuery, seen: dict[str, dict[str, Any]]) -> dict[str, Any]:
    found = query.to_json()
    return {**found, "samples": [{**sample, "shown": seen[sample["id"]]} for sample in found["samples"]]}


def _say_told(told: Told, as_json: bool) -> None:
    if as_json:
        dump(told.to_json())
    else:
        say(told_line(told))
    note(*(f"note: {slip}" for slip in told.slips[:FEW]))
    if len(told.slips) > FEW:
        note(f"note: and {len(told.slips) - FEW} more like these")


def told_line(told: Told) -> str:
    """What was saved, and what is left of the query."""
    parts = [counted(told.labelled, "label")] if told.labelled or not told.skipped else []
    parts += [counted(told.skipped, "skip")] if told.skipped else []
    before = f" ({told.known} already saved)" if told.known else ""
    words = f"{' and '.join(parts)} saved{before}"
    if told.query is None:
        return words
    if told.waiting:
        return f"{words}; {len(told.waiting)} of query {told.query} still open: {few(map(str, told.waiting))}"
    return f"{words}; query {told.query} is complete"
