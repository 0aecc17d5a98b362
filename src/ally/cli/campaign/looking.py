"""``ally status`` and ``ally review``: the state of a campaign, and labels that may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ally.cli.campaign.opening import AsJson, Moved, Name, Show, opened, shown_place, typed
from ally.cli.campaign.printing import counted, dump, few, note, say, table_lines
from ally.cli.campaign.sample_columns import columns_of, shown
from ally.cli.campaign.sheets import check_out, write_rows
from ally.metrics import METRICS, constant_name
from ally.types import SKIP

if TYPE_CHECKING:
    from ally.campaign import Agreement, ModelLine, Status, Suspect

LAST = 8
"""How many models of the curve are printed."""
CLASSES = 12
"""Classes whose recall is printed."""
UNITS = ("rmse", "mae")
"""Figures in the unit of the target, shown beside whatever metric is chosen."""
ADJUDICATES = "adjudicates"
"""A column with yes in a file of disagreements: telling it settles them."""
REVIEW = ["id", "label", "labelled_by", "predicted", "probability", "dual", "loss"]


def status(name: Name, as_json: AsJson = False) -> None:
    """Show progress, the learning curve, and whether labelling more is worth it.

    Example: ally status pets
    """
    with opened(name) as campaign:
        found, automatic = campaign.status(), campaign.settings.automatic
        place, called = shown_place(name, campaign), typed(name, campaign)
        agreed = campaign.answers.agreement() if len(found.annotators) > 1 else None
        restricted = [str(one) for one in campaign.permissions()]
    if as_json:
        agreement = None if agreed is None else agreed.to_json()
        dump({**found.to_json(), "agreement": agreement, "restricted": restricted})
        return
    say(*_head(found, place), "", *_counts(found, agreed), *_training(found, automatic, called))
    if found.curve:
        say("", *_curve(found.curve[-LAST:]), *_handed(found))
    if found.recall:
        say("", *_recall(found))
    if found.comparison is not None:
        say("", found.comparison.sentence)
    note(*(f"note: {words}" for words in found.notes))


def review(
    name: Name,
    n: Annotated[int, typer.Option("--n", help="List at most this many labels.", metavar="N")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="Write to this .csv or .jsonl file; correct its column label, then `ally tell`.")
    ] = None,
    by: Annotated[
        Literal["duals", "loss"],
        typer.Option(
            help="Rank by duals (how hard a label was to fit) or by loss (under a model that did not see it)."
        ),
    ] = "duals",
    disagreements: Annotated[
        bool, typer.Option("--disagreements", help="List samples that annotators label differently instead.")
    ] = False,
    show: Show = None,
    source: Moved = None,
    as_json: AsJson = False,
) -> None:
    """List labels that may be wrong, the most likely first: those the model finds hardest to fit.

    Example: ally review pets --n 20 --out check.csv
    """
    check_out(out, (".csv", ".jsonl"))
    if disagreements:
        _disagreements(name, n, out, as_json, show, source)
        return
    with opened(name, source) as campaign:
        found = campaign.review(n, by=by)
        trained = campaign.training.has_model
        seen = shown(campaign, [suspect.id for suspect in found], show) if out is not None or as_json else {}
        if as_json:
            dump([{**line, "shown": seen[line["id"]]} for line in map(_line, found)])
        if out is not None:
            write_rows(out, [*REVIEW, *columns_of(seen)], [{**line, **seen[line["id"]]} for line in map(_line, found)])
            note(
                f"{counted(len(found), 'label')} written to {out}; correct the column label, then: ally tell "
                f"{typed(name, campaign)} {out}"
            )
    if as_json or out is not None:
        return
    if not found:
        why = "no label looks wrong" if trained else "there is no model yet; run `ally retrain`"
        note(f"nothing to review: {why}")
        return
    say(*table_lines(REVIEW, [_cells(suspect) for suspect in found]))


def _disagreements(name: str, n: int, out: Path | None, as_json: bool, show: bool | None, source: str | None) -> None:
    """The label of each annotator for samples they label differently; a skip is an empty cell."""
    with opened(name, source) as campaign:
        every, counts, called = campaign.answers.disagreements(), campaign.labels(), typed(name, campaign)
        found = list(every.items())[:n]
        wanted = (out is not None or as_json or show) and show is not False
        seen = shown(campaign, [id for id, _ in found], show) if wanted else {}
    people = sorted({who for _, said in found for who in said})
    columns = ["id", "label", *(f"by {who}" for who in people)]
    rows = [
        {
            "id": id,
            "label": counts.get(id),
            **{f"by {who}": None if said.get(who) is SKIP else said.get(who) for who in people},
            **seen.get(id, {}),
        }
        for id, said in found
    ]
    columns += columns_of(seen)
    if as_json:
        dump(rows)
    elif out is not None:
        write_rows(out, [*columns, ADJUDICATES], [{**row, ADJUDICATES: "yes"} for row in rows])
        note(
            f"{counted(len(rows), 'sample')} written to {out}; fill in the column label, then: ally tell {called} {out}"
        )
    elif not rows:
        note("annotators agree on all samples")
    else:
        cells = [["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows]
        say(*table_lines(columns, cells))
    if len(every) > len(found):
        note(f"{len(every) - len(found)} more; --n {len(every)} lists all")


def curve_line(line: ModelLine) -> str:
    """One model of the curve in words."""
    missing = "there are too few labels for cross-validation" if line.by == "cv" else "no held-out sample is labelled"
    scored = f"not evaluated: {missing}"
    if line.figure is not None:
        against = "" if line.constant is None else f"; {one_answer(line.metric)}: {line.constant:.3f}"
        scored = f"{line.figure.sentence}{against}"
    elif line.figures:
        scored = ", ".join(f"{name} {value:.4g}" for name, value in line.figures.items())
        scored = f"{scored}; too few evaluation samples for {line.metric}"
    return f"model {line.number}, trained on {counted(line.labels, 'label')}: {scored}"


def one_answer(metric: str) -> str:
    """The name of the constant answer in a table."""
    return constant_name(METRICS[metric].task)


def _head(found: Status, place: str) -> list[str]:
    reasons = [f"  {reason}" for reason in found.advice.reasons]
    return [f"{place}: {found.task} of {found.source}, strategy {found.strategy}", "", found.advice.sentence, *reasons]


def _counts(found: Status, agreement: Agreement | None) -> list[str]:
    held = [f"{found.training} for training"]
    if found.evaluate.samples:
        held.append(f"{found.evaluate.labelled} of {found.evaluate.samples} for the learning curve")
    if found.validate.samples:
        held.append(f"{found.validate.labelled} of {found.validate.samples} for early stopping")
    budget = "" if found.budget is None else f" of a budget of {found.budget}"
    several = f" for {counted(found.labelled, 'sample')}" if found.labels != found.labelled else ""
    given = f", {found.given} came with the source" if found.given else ""
    states = [f"{found.free} free"]
    states += [
        f"{n} {word}"
        for n, word in ((found.leased, "reserved"), (found.skipped, "skipped"), (found.gone, "missing"))
        if n
    ]
    lines = [
        f"samples     {found.samples}: {', '.join(states)}",
        f"labels      {found.labels} bought{several}{budget}{given}: {', '.join(held)}",
    ]
    if found.problems:
        more = f"; {len(found.problems) - 1} more (--json lists them)" if len(found.problems) > 1 else ""
        lines.append(f"problems    {found.problems[0]}{more}")
    if found.classes:
        lines.append(f"classes     {few((f'{label} {n}' for label, n in found.classes.items()), 20)}")
    if found.annotators:
        agreed = "" if agreement is None else f"; Krippendorff's alpha {agreement.alpha:.2f}"
        if agreement is not None and len(agreement.classes) > 2:
            agreed += f" ({few((f'{label} {alpha:.2f}' for label, alpha in agreement.classes.items()), 20)})"
        differ = (
            f"{agreed}; they disagree on {counted(found.disagreements, 'sample')}" if found.disagreements else agreed
        )
        lines.append(f"annotators  {few((f'{who} {n}' for who, n in found.annotators.items()), 20)}{differ}")
    return lines


def _running(found: Status) -> str:
    """For how long, what it is doing, how far it is, and how long it may still take."""
    said = ["running" if found.training_seconds is None else f"running for {found.training_seconds:.0f} s"]
    at = found.underway
    if at is not None:
        done = "" if at.share is None else f", {at.share:.0%} {'of all' if at.whole else 'of this stage'} done"
        said.append(f"{at.stage}{done}")
        if at.seconds_left is not None:
            said.append(f"about {at.seconds_left:.0f} s left{'' if at.whole else ' of this stage'}")
    elif found.last_seconds is not None:
        said.append(f"the one before took {found.last_seconds:.0f} s")
    return "; ".join(said)


def _training(found: Status, automatic: bool, name: str) -> list[str]:
    again = "it is tried again after the next answers" if automatic else f"`ally retrain {name}` tries again"
    states = {
        "none": "none yet" if automatic else f"none yet; run `ally retrain {name}`",
        "running": _running(found),
        "done": "done",
        "failed": f"failed: {found.training_error}; {again}",
        "interrupted": f"interrupted; {again}",
    }
    since = (
        f"; {counted(found.waiting, 'new answer')} since" if found.waiting and found.training_state == "done" else ""
    )
    lines = [f"training    {states[found.training_state]}{since}"]
    if found.encoder is not None and found.encoded is not None:
        rest = "" if found.encoded >= found.samples else "; the others are not asked about by the model yet"
        lines.insert(0, f"encoder     {found.encoder}: {found.encoded} of {found.samples} samples encoded{rest}")
    return lines


def _curve(lines: Sequence[ModelLine]) -> list[str]:
    metric = lines[-1].metric
    others = [name for name in UNITS if name != metric and any(name in line.figures for line in lines)]
    cells = [
        (
            str(line.number),
            str(line.labels),
            "" if line.value is None else f"{line.value:.3f}",
            _interval(line),
            str(line.evaluated_on or ""),
            "" if line.constant is None else f"{line.constant:.3f}",
            *("" if name not in line.figures else f"{line.figures[name]:.4g}" for name in others),
            "" if line.agreement is None else f"{line.agreement:.3f}",
        )
        for line in lines
    ]
    on = "cross-validated on" if lines[-1].by == "cv" else "evaluated on"
    names = ["model", "labels", metric, "95 % interval", on, one_answer(metric), *others, "agreement"]
    used = [place for place, name in enumerate(names) if name != one_answer(metric) or any(row[place] for row in cells)]
    return table_lines([names[place] for place in used], [[row[place] for place in used] for row in cells], right=True)


def _recall(found: Status) -> list[str]:
    """Classes with the lowest recall first."""
    worst = sorted(found.recall, key=lambda one: (one.value, -one.n))
    cells = [(one.label, f"{one.value:.3f}", f"{one.low:.3f} to {one.high:.3f}", str(one.n)) for one in worst[:CLASSES]]
    more = [f"… (--json lists {len(worst) - CLASSES} more)"] if len(worst) > CLASSES else []
    return [*table_lines(["class", "recall", "95 % interval", "evaluated on"], cells), *more]


def _handed(found: Status) -> list[str]:
    """Which model `ally predict` uses, where it is not the last of the curve; what cross-validation measures."""
    from ally.campaign.values import CHOSEN

    line = found.model
    if line is None or not line.labels:
        return []
    told = []
    if line.by == "cv" and line.figure is not None:
        told.append(f"{line.metric} is {CHOSEN.format(n=line.evaluated_on)}")
    if line.handed is None and found.evaluate.labelled:
        told.append(f"predictions come from model {line.number} itself; the next training makes one with every label")
    elif line.handed is not None and line.handed != line.labels:
        told.append(f"predictions come from a model trained on all {line.handed} labels, held-out ones too")
    return ["", *told] if told else []


def _interval(line: ModelLine) -> str:
    return "" if line.low is None or line.high is None else f"{line.low:.3f} to {line.high:.3f}"


def _line(suspect: Suspect) -> dict[str, Any]:
    return {
        "id": str(suspect.id),
        "label": suspect.label,
        "labelled_by": suspect.annotator,
        "predicted": suspect.predicted,
        "probability": None if suspect.probability is None else round(suspect.probability, 4),
        "dual": None if suspect.dual is None else round(suspect.dual, 6),
        "loss": None if suspect.loss is None else round(suspect.loss, 6),
    }


def _cells(suspect: Suspect) -> list[str]:
    predicted = (
        f"{suspect.predicted:.4g}"
        if isinstance(suspect.predicted, float)
        else ""
        if suspect.predicted is None
        else str(suspect.predicted)
    )
    probability = "" if suspect.probability is None else f"{suspect.probability:.2f}"
    dual, loss = ("" if value is None else f"{value:.3f}" for value in (suspect.dual, suspect.loss))
    return [str(suspect.id), str(suspect.label), suspect.annotator, predicted, probability, dual, loss]
