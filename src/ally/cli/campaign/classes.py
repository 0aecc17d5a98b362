"""``ally classes``: list and change the classes during labelling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ally.cli.campaign.opening import Annotator, AsJson, Name, opened, typed
from ally.cli.campaign.options import read_classes
from ally.cli.campaign.printing import counted, dump, note, say, table_lines
from ally.errors import InputError

if TYPE_CHECKING:
    from ally.campaign import Campaign, ClassChange

Action = Literal["list", "add", "rename", "merge", "remove", "undo"]
AddClasses = Annotated[
    bool, typer.Option("--add-classes", help="Accept unknown labels as new classes (default: refuse them).")
]


def classes(
    name: Name,
    action: Annotated[
        Action,
        typer.Argument(help="list (default); add A B …; rename OLD NEW; merge A B … INTO; remove A; undo."),
    ] = "list",
    labels: Annotated[list[str] | None, typer.Argument(help="Classes.", metavar="[CLASS]...")] = None,
    annotator: Annotator = None,
    as_json: AsJson = False,
) -> None:
    """List the classes, or add, rename, merge or remove some; `undo` undoes the last change.

    Labels move with their class and keep their annotator and time. The full record keeps the earlier answers.

    Example: ally classes pets merge kitten cat
    """
    with opened(name) as campaign:
        if action == "list":
            _say_classes(campaign, as_json)
            return
        change = _changed(campaign, action, labels or [], annotator)
        left = list(campaign.classes)
        called = typed(name, campaign)
    if as_json:
        dump({**change.to_json(), "classes": left})
    else:
        note(*(f"note: {words}" for words in change.near))
        say(_line(change), f"classes: {', '.join(map(str, left))}")
        if action != "undo":
            say(f"`ally classes {called} undo` undoes it")


def unknown_classes(error: Exception, name: str) -> str:
    """The error about unknown labels, with the commands that add them as classes."""
    import shlex

    added = " ".join(shlex.quote(str(label)) for label in getattr(error, "labels", ())[:20])
    return f"{error}: `ally classes {name} add {added}`, or --add-classes takes all of them"


def _changed(campaign: Campaign, action: Action, given: list[str], annotator: str | None) -> ClassChange:
    edit, known = campaign.classes.by(annotator), list(campaign.classes)
    counts = {"add": (1, None), "rename": (2, 2), "merge": (2, None), "remove": (1, 1), "undo": (0, 0)}
    least, most = counts[action]
    if len(given) < least or (most is not None and len(given) > most):
        wanted = {"add": "A B …", "rename": "OLD NEW", "merge": "A B … INTO", "remove": "A", "undo": ""}[action]
        raise InputError(
            f"{action} takes {wanted or 'nothing'}, and {counted(len(given), 'class', 'classes')} were given"
        )
    labels: list[Any] = [read_classes(text.replace(",", "\0"), known)[0] for text in given] if given else []
    labels = [label.replace("\0", ",") if isinstance(label, str) else label for label in labels]
    if action == "add":
        return edit.add(labels)
    if action == "rename":
        return edit.rename(*labels)
    if action == "merge":
        return edit.merge(labels[:-1], labels[-1])
    return edit.remove(labels[0]) if action == "remove" else edit.undo()


def _line(change: ClassChange) -> str:
    old = ", ".join(map(str, change.old))
    said = f" ({counted(change.said, 'answer')} updated)" if change.said else ""
    words = {
        "add": f"added {old}",
        "rename": f"{old} is {change.new} from now on{said}",
        "merge": f"{old} merged into {change.new}{said}",
        "remove": f"removed {old}",
        "undo": f"the last change is undone{said}",
    }
    return words[change.change]


def _say_classes(campaign: Campaign, as_json: bool) -> None:
    counts = campaign.status().classes
    from ally.data.export.answers import reads

    lines = [(label, counts.get(reads(label), 0)) for label in campaign.classes]
    if as_json:
        declared = campaign.settings.classes is not None
        dump({"declared": declared, "classes": [{"class": label, "labels": n} for label, n in lines]})
        return
    say(*table_lines(["class", "labels"], [(str(label), str(n)) for label, n in lines]))
    if campaign.settings.classes is None:
        say("any other label becomes a new class; after `ally classes NAME add`, unknown labels are refused")
