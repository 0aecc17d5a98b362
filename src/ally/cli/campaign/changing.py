"""``ally change``: new settings for a campaign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.campaign.settings import declarations
from ally.cli.campaign.opening import AsJson, Name, opened
from ally.cli.campaign.options import read_classes, takes_settings
from ally.cli.campaign.printing import dump, say
from ally.errors import InputError

if TYPE_CHECKING:
    from ally.campaign import Campaign


@takes_settings(later=True)
def change(
    name: Name,
    source: Annotated[str | None, typer.Option("--from", help="Where the source is now.", metavar="SOURCE")] = None,
    evaluate: Annotated[
        int | None,
        typer.Option(help="Total number of random samples held out for the learning curve; more than now.", min=1),
    ] = None,
    as_json: AsJson = False,
    **settings: Any,
) -> None:
    """Change the settings of a campaign, or say where its source has moved.

    Example: ally change pets --batch 50 --budget 1000
    """
    if not settings and source is None and evaluate is None:
        raise InputError(f"nothing to change; `ally change {name} --help` lists the options")
    with opened(name) as campaign:
        if "classes" in settings:
            settings["classes"] = _classes(campaign, settings["classes"])
        changed = campaign.change(source=source, **settings) if settings or source is not None else campaign.settings
        if evaluate is not None:
            campaign.training.hold_out(evaluate)
            changed = campaign.settings
    if as_json:
        dump(
            {
                "place": changed.place,
                "evaluate": changed.evaluate,
                **{item.name: getattr(changed, item.name) for item in declarations() if not item.fixed},
            }
        )
        return
    if source is not None:
        say(f"changed source to {source}")
    say(*(f"changed {_words(setting, getattr(changed, setting))}" for setting in settings))
    if evaluate is not None:
        say(f"{evaluate} samples are held out for the learning curve; the new ones were drawn at random")


def _classes(campaign: Campaign, text: str) -> tuple[Any, ...]:
    """Existing classes keep their type: 0 stays a number next to a new class such as none."""
    return tuple(read_classes(text, list(campaign.classes)))


def _words(option: str, value: Any) -> str:
    if option == "lease_seconds":
        return f"lease to {value / 60:g} minutes"
    if option == "automatic":
        return f"training to {'automatic' if value else 'by hand'}"
    return f"{option.replace('_', ' ')} to {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
