"""Settings of a campaign as options of ``ally new`` and ``ally change``, made from their declarations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from ally.campaign.setting_checks import LONGEST_LEASE
from ally.campaign.settings import Declared, declarations
from ally.errors import InputError

Command = Callable[..., None]
TaskName = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class Form:
    """How a setting is given on the command line, if not by its own name and type."""

    option: str
    kind: Any
    help: str
    read: Callable[[Any], Any] = lambda value: value
    """From the option to the setting."""
    default: Any = None
    names: tuple[str, ...] = ()
    metavar: str | None = None


def read_classes(text: str, known: Iterable[Any] = ()) -> list[Any]:
    """Classes from ``a,b,c``. A name of a `known` class gives that class. The others are whole numbers if all of them
    look like it and the known ones are not texts; otherwise texts."""
    from ally.data.export.cells import WRITTEN

    names = [name.strip() for name in text.split(",")]
    same = {str(value): value for value in known}
    others = [name for name in names if name not in same]
    numbers = all(WRITTEN[int].fullmatch(name) for name in others) and not (
        same and all(isinstance(value, str) for value in same.values())
    )
    return [same[name] if name in same else int(name) if numbers else name for name in names]


def in_seconds(lease: float) -> float:
    """A lease in seconds, from minutes."""
    if not 0 < 60 * lease <= LONGEST_LEASE:
        days = f"{LONGEST_LEASE / 86400:g} days"
        raise InputError(
            f"--lease {lease:g} is out of range; give minutes above 0 and at most {LONGEST_LEASE / 60:.0f} ({days})"
        )
    return 60 * lease


def read_evaluate(text: str) -> int | str:
    """A number of samples, or ``cv``."""
    if text == "cv":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"--evaluate {text} is neither a whole number nor cv") from None


LEASE = "Minutes that samples stay reserved for whoever asked."
FORMS = {
    "task": Form(
        "task",
        TaskName,
        "auto, classification or regression (auto: as the labels in SOURCE say, else classification).",
        default="auto",
        metavar="TASK",
    ),
    "classes": Form(
        "classes", str | None, "All classes, separated by commas (default: any label is one).", read_classes
    ),
    "encoder": Form(
        "encoder",
        str,
        "A pretrained encoder of texts or photos: a name, the folder of a model, or none (auto: what is installed).",
        lambda name: None if name == "none" else name,
        "auto",
    ),
    "evaluate": Form(
        "evaluate",
        str | None,
        "Random samples held out for the learning curve (default: 100, at most a tenth), or cv: none, and "
        "cross-validation on the labels that were chosen.",
        read_evaluate,
        metavar="N|cv",
    ),
    "lease_seconds": Form("lease", float, LEASE, in_seconds, 60.0, metavar="MINUTES"),
    "random_state": Form("seed", int, "Seed of the random order of samples and of the training.", default=0),
    "automatic": Form(
        "by_hand", bool, "Train only on `ally retrain`.", lambda by_hand: not by_hand, False, ("--by-hand",)
    ),
}
LATER = {
    "classes": Form("classes", str, "All classes, separated by commas: the existing ones and new ones."),
    "lease_seconds": Form("lease", float, LEASE, in_seconds, metavar="MINUTES"),
    "automatic": Form(
        "automatic", bool, "Train automatically, or only on `ally retrain`.", names=("--automatic/--by-hand",)
    ),
}
"""The forms of ``ally change``, where an option that is left out changes nothing."""


def takes_settings(*, later: bool = False) -> Callable[[Command], Command]:
    """Gives a command with ``**settings`` an option for each setting; with `later`, only for those that may change.

    The command gets all settings by name, as the campaign takes them; with `later`, only those that were given.
    """

    def decorate(command: Command) -> Command:
        own = [
            item for item in inspect.signature(command, eval_str=True).parameters.values() if item.name != "settings"
        ]
        forms = dict(_forms(later))

        def called(**given: Any) -> None:
            settings = {}
            for name, form in forms.items():
                value = given.pop(form.option)
                if not later or value is not None:
                    settings[name] = None if value is None else form.read(value)
            command(**given, **settings)

        groups = {item.name: item.group for item in declarations()}
        options = [_parameter(form, groups[name], later) for name, form in forms.items()]
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        ordered = sorted([*own, *options], key=lambda item: item.default is not inspect.Parameter.empty)
        keywords = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in ordered]
        called.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        called.__annotations__ = {item.name: item.annotation for item in ordered}
        return called

    return decorate


def option_of(argument: str) -> str:
    """The option for an argument of the library."""
    others = {"columns": "column", "lease_seconds": "lease", "random_state": "seed"}
    return f"--{others.get(argument, argument).replace('_', '-')}"


def _forms(later: bool) -> Iterator[tuple[str, Form]]:
    special = LATER if later else FORMS
    for item in declarations():
        if not (later and item.fixed):
            yield item.name, special.get(item.name) or _plain(item, later)


def _plain(item: Declared, later: bool) -> Form:
    return Form(item.name, item.kind, item.meaning, default=None if later else item.default)


def _parameter(form: Form, group: str, later: bool) -> inspect.Parameter:
    option = typer.Option(*form.names, help=form.help, rich_help_panel=group, metavar=form.metavar)
    kind = form.kind | None if later else form.kind
    return inspect.Parameter(
        form.option, inspect.Parameter.KEYWORD_ONLY, default=form.default, annotation=Annotated[kind, option]
    )
