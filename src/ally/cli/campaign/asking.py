"""``ally ask``, ``tell``, ``skip``, ``undo``, ``release``: labelling from the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign import answers as told_answers
from ally.cli.campaign.names import Annotator, AsJson, Key, Moved, Name, Show, opened, typed
from ally.cli.campaign.printing import counted, dump, few, note, say
from ally.cli.campaign.sheets import check_out, write_rows
from ally.cli.campaign.showing import columns_of, shown

if TYPE_CHECKING:
    from ally.campaign import Campaign, CampaignQuery, Told

FEW = 5
COLUMNS = ["id", "label", "query", "kind", "predicted", "probability"]


def ask(
    name: Name,
    n: Annotated[
        int | None, typer.Option("--n", help="How many samples (default: a batch, or as many as there are).")
    ] = None,
    annotator: Annotator = None,
    key: Key = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the query here, .csv or .jsonl; fill in its label column and tell it.")
    ] = None,
    show: Show = None,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """Ask which samples to label next; they are kept for you for a while."""
    check_out(out, (".csv", ".jsonl"))
    with opened(name, source) as campaign:
        _ensure_told(campaign, out)
        query = _asked(campaign, n, annotator, key, typed(name, campaign))
        seen = shown(campaign, query.ids, show)
        if query.model is None and any(sample.kind == "active" for sample in query.samples):
            note("note: no model has ranked the samples yet, so these are random ones")
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
    """A query; where nothing is left to ask about, what to do."""
    from ally.errors import InputError, PoolExhausted

    try:
        return campaign.ask(n, annotator=annotator, key=key, at_most=n is None)
    except PoolExhausted as error:
        if error.available:
            raise
        held = campaign.status().leased
    if held:
        wait = f"answer them, wait until the time for them is over, or give a query back: ally release {name} QUERY"
        raise InputError(f"0 samples are free, {held} are asked about now; {wait}")
    done = "labelled or set aside" + (", or has your answer" if campaign.settings.opinions > 1 else "")
    following = f"`ally export {name} labels.csv` writes the labels, `ally rescan {name}` looks for new samples"
    raise InputError(f"nothing is left to ask about: every sample is {done}; {following}")


def _ensure_told(campaign: Campaign, out: Path | None) -> None:
    """A sheet that is filled in and not told yet is not overwritten."""
    from ally.errors import AllyError, InputError
    from ally.sources import read_answers
    from ally.types import SKIP

    if out is None or not out.exists():
        return
    given: dict[str, Any] = {}
    try:
        for answer in read_answers(out):
            told_answers.add(given, answer.id, answer.label)
    except AllyError as error:
        raise InputError(
            f"{out} is there already and is not a sheet of questions ({error}); give another name to --out"
        ) from error
    lost = campaign.untold(given)
    if lost:
        such = f"the skip of {lost[0]!r}" if given[lost[0]] is SKIP else f"{given[lost[0]]!r} for {lost[0]!r}"
        raise InputError(
            f"{out} holds {counted(len(lost), 'answer')} that the campaign does not have, such as {such}; "
            "tell the file first, or give another name to --out"
        )


def tell(
    name: Name,
    answers: Annotated[
        list[str] | None,
        typer.Argument(
            help="A .csv, .jsonl or .parquet file with the columns id and label, - for standard input, or pairs "
            "ID=LABEL (after -- if an id begins with a dash)."
        ),
    ] = None,
    query: Annotated[int | None, typer.Option(help="The query that is answered (default: as the file says).")] = None,
    annotator: Annotator = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Take labels: all of them or none. Rows without a label stay open; a column skip with yes sets samples aside."""
    with opened(name) as campaign:
        given = told_answers.read(answers or [], campaign.settings)
        number = given.query if query is None else query
        if number is None:
            told = campaign.relabel(given.by_id, annotator=annotator, key=key)
        else:
            told = campaign.tell(number, given.by_id, annotator=annotator, key=key)
    _say_told(told, as_json)


def skip(
    name: Name,
    ids: Annotated[
        list[str], typer.Argument(help="Ids of the samples; after -- if one begins with a dash.", metavar="ID...")
    ],
    annotator: Annotator = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set samples aside; they are not asked about again."""
    with opened(name) as campaign:
        told = campaign.skip(ids, annotator=annotator, key=key)
    _say_told(told, as_json)


def undo(
    name: Name,
    number: Annotated[int | None, typer.Option(help="The answer to take back (default: your last).")] = None,
    annotator: Annotator = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Take back your last answer, or one by its number. Its sample can be asked about again."""
    with opened(name) as campaign:
        undone = campaign.undo(annotator=annotator, number=number, key=key)
    if as_json:
        dump(undone.to_json())
    else:
        what = "the skip" if undone.kind == "skip" else f"the label {undone.label!r}"
        say(f"{what} of {undone.id} is taken back (answer {undone.number})")


def release(
    name: Name,
    query: Annotated[int, typer.Argument(help="The number of the query.", metavar="QUERY")],
    as_json: AsJson = False,
) -> None:
    """Give a query back: what it asked for and nobody has answered is free for others at once."""
    with opened(name) as campaign:
        freed = campaign.release(query)
    if as_json:
        dump({"query": query, "released": freed})
    else:
        say(f"{counted(freed, 'sample')} of query {query} given back")


def _lines(query: CampaignQuery) -> list[dict[str, Any]]:
    return [
        {
            "id": sample.id,
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
        note(f"note: and {counted(len(told.slips) - FEW, 'other')} like these")


def told_line(told: Told) -> str:
    """What was taken, and what is left of the query."""
    parts = [counted(told.labelled, "label")] if told.labelled or not told.skipped else []
    parts += [counted(told.skipped, "skip")] if told.skipped else []
    before = f" ({told.known} on record before)" if told.known else ""
    words = f"{' and '.join(parts)} taken{before}"
    if told.query is None:
        return words
    if told.waiting:
        return f"{words}; {len(told.waiting)} of query {told.query} without an answer: {few(told.waiting)}"
    return f"{words}; query {told.query} is answered"
