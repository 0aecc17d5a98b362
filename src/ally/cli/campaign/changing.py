"""``ally change``: other settings for a campaign under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign.names import AsJson, Name, opened
from ally.cli.campaign.new import POLICY_HELP, PolicyName, in_seconds, read_classes
from ally.cli.campaign.printing import dump, say

if TYPE_CHECKING:
    from ally.campaign import Campaign


def change(
    name: Name,
    source: Annotated[str | None, typer.Option("--from", help="Where the source is from now on.", metavar="SOURCE")] = None,
    classes: Annotated[str | None, typer.Option(help="All classes, separated by commas; those that there are, and new ones.")] = None,
    strategy: Annotated[str | None, typer.Option(help="A name that `ally strategies` lists.")] = None,
    objective: Annotated[str | None, typer.Option(help="How to train.")] = None,
    model: Annotated[str | None, typer.Option(help="The network.")] = None,
    batch: Annotated[int | None, typer.Option(help="Samples of a query, and answers after which the learner is trained again.")] = None,
    random_share: Annotated[float | None, typer.Option(help="Share of each query that is drawn at random, to compare with.")] = None,
    budget: Annotated[int | None, typer.Option(help="Labels to be bought in all.")] = None,
    lease: Annotated[
        float | None, typer.Option(help="Minutes for which samples are kept for the one who asked.", metavar="MINUTES")
    ] = None,
    policy: Annotated[PolicyName | None, typer.Option(help=POLICY_HELP)] = None,
    opinions: Annotated[int | None, typer.Option(help="Different annotators who are asked about each sample.")] = None,
    automatic: Annotated[bool | None, typer.Option("--automatic/--by-hand", help="Train by itself, or by `ally retrain` only.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change settings of a campaign, or tell it where its source has moved to."""
    from ally.errors import InputError

    options: dict[str, Any] = {
        "classes": classes,
        "strategy": strategy,
        "objective": objective,
        "model": model,
        "batch": batch,
        "random_share": random_share,
        "budget": budget,
        "lease_seconds": None if lease is None else in_seconds(lease),
        "policy": policy,
        "opinions": opinions,
        "automatic": automatic,
    }
    given = {option: value for option, value in options.items() if value is not None}
    if not given and source is None:
        raise InputError(f"nothing is to be changed; `ally change {name} --help` lists what can be")
    with opened(name) as campaign:
        if classes is not None:
            given["classes"] = _classes(campaign, classes)
        if source is not None:
            campaign.changed(**given)  # a setting that cannot be is refused before the source is moved
            campaign.move(source)
        changed = campaign.change(**given) if given else campaign.settings
    if as_json:
        dump({"place": changed.place, **{option: getattr(changed, option) for option in options}})
        return
    if source is not None:
        say(f"the source is {source} from now on")
    say(*(f"{_words(option, getattr(changed, option))} from now on" for option in given))


def _classes(campaign: Campaign, text: str) -> tuple[Any, ...]:
    """Classes that there are stay as they are: 0 stays a number beside the new class none."""
    return tuple(read_classes(text, campaign.classes()))


def _words(option: str, value: Any) -> str:
    if option == "lease_seconds":
        return f"lease is {value / 60:g} minutes"
    if option == "automatic":
        return f"training is {'automatic' if value else 'by hand'}"
    return f"{option.replace('_', ' ')} is {', '.join(map(str, value)) if isinstance(value, tuple) else value}"
