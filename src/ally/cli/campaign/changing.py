"""``ally change``: other settings for a campaign under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.campaign.settings import declarations
from ally.cli.campaign.names import AsJson, Name, opened
from ally.cli.campaign.options import read_classes, takes_settings
from ally.cli.campaign.printing import dump, say

if TYPE_CHECKING:
    from ally.campaign import Campaign


@takes_settings(later=True)
def change(
    name: Name,
    source: Annotated[
        str | None, typer.Option("--from", help="Where the source is from now on.", metavar="SOURCE")
    ] = None,
    as_json: AsJson = False,
    **settings: Any,
) -> None:
    """Change settings of a campaign, or tell it where its source has moved to.

    Example: ally change pets --batch 50 --budget 1000
    """
    from ally.errors import InputError

    if not settings and source is None:
        raise InputError(f"nothing to change; `ally change {name} --help` lists the options")
    with opened(name) as campaign:
        if "classes" in settings:
            settings["classes"] = _classes(campaign, settings["classes"])
        if source is not None:
            campaign.changed(**settings)  # a setting that cannot be is refused before the source is moved
            campaign.move(source)
        changed = campaign.change(**settings) if settings else campaign.settings
    if as_json:
        dump(
            {
                "place": changed.place,
                **{item.name: getattr(changed, item.name) for item in declarations() if not item.fixed},
            }
        )
        return
    if source is not None:
        say(f"the source is {source} from now on")
    say(*(f"{_words(setting, getattr(changed, setting))} from now on" for setting in settings))


def _classes(campaign: Campaign, text: str) -> tuple[Any, ...]:
    """Classes that there are stay as they are: 0 stays a number beside the new class none."""
    return tuple(read_classes(text, campaign.classes()))


def _words(option: str, value: Any) -> str:
    if option == "lease_seconds":
        return f"lease is {value / 60:g} minutes"
    if option == "automatic":
        return f"training is {'automatic' if value else 'by hand'}"
    return f"{option.replace('_', ' ')} is {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
