"""``ally trust``: allow a campaign what only its user may."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ally.catalogue_names import KEPT_MODEL
from ally.cli.campaign.opening import AsJson, Name, opened
from ally.cli.campaign.printing import dump, say
from ally.errors import InputError

if TYPE_CHECKING:
    from ally.campaign.permissions import Permission


def trust(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Allow it without asking.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Take back all that was allowed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Allow what a campaign of somebody else asks for.

    A campaign may name code to run, a cluster to connect to, a model to fetch, or files outside its folder. That is
    ignored until you allow it here, once; your decision is kept on this machine, not in the campaign. With --json, it
    is listed and nothing is allowed.

    Example: ally trust pets
    """
    with opened(name, quiet=True) as campaign:
        if revoke:
            campaign.revoke_trust()
            say(f"{name}: nothing is allowed any more")
        asked = campaign.permissions()
        if as_json:
            dump([{"setting": one.name, "value": one.value, "act": one.act} for one in asked])
            return
        if revoke:
            return
        if not asked:
            say(f"{name} asks for nothing that needs your permission")
            return
        say(f"{name} asks for:")
        for one in asked:
            say(f"  {one.name} = {_show_value(one)}", f"    which {one.act}")
        if not yes and not _confirm():
            raise InputError("nothing was allowed; answer y, or pass --yes")
        campaign.trust(asked)
        say(f"{name}: allowed, from now on")


def _show_value(asked: Permission) -> str:
    """All of it in quotes, so that blanks cannot pass for its end; of an estimator, which nobody can read, the size."""
    if asked.value.startswith(KEPT_MODEL):
        return f"an estimator, kept in {len(asked.value)} characters ({asked.key[:12]})"
    return repr(asked.value)


def _confirm() -> bool:
    """Whether the person at the terminal says yes; nobody there is a no."""
    try:
        return typer.confirm("Allow this?", err=True)
    except typer.Abort:
        return False
