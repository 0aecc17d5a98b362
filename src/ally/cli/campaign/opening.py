"""The campaign behind a name on the command line, and arguments that several commands share."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ally.cli.campaign.printing import note
from ally.errors import InputError, StoreMissing

if TYPE_CHECKING:
    from ally.campaign import Campaign

ENDINGS = (".db", ".sqlite", ".sqlite3")
FEW = 5

Name = Annotated[
    str, typer.Argument(help="The campaign: pets means the file pets.db; or a postgresql:// URL.", metavar="NAME")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Annotator = Annotated[str | None, typer.Option(help="Who labels (default: whoever asked, else your account name).")]
Key = Annotated[
    str | None, typer.Option(help="Any text, new for each call; with the same key a call can be repeated safely.")
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column with the ids (default: id, or that of the source).", metavar="COLUMN")
]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column with the labels (default: label, or that of the source).", metavar="COLUMN")
]
Moved = Annotated[
    str | None, typer.Option("--from", help="Where the source is now, if it has moved.", metavar="SOURCE")
]
Show = Annotated[
    bool | None,
    typer.Option(
        "--show/--no-show", help="Add the path, text or columns of each sample (default: yes, but not for huge tables)."
    ),
]


def place_of(name: str) -> str:
    """``pets`` means the file pets.db, or the file pets if only that exists. URLs and names that end like a database
    stay as they are."""
    if "://" in name or name.lower().endswith(ENDINGS):
        return name
    return name if not Path(f"{name}.db").exists() and Path(name).is_file() else f"{name}.db"


def new_place(name: str) -> str:
    return name if "://" in name or name.lower().endswith(ENDINGS) else f"{name}.db"


def opened(name: str, source: str | None = None, *, quiet: bool = False, **options: Any) -> Campaign:
    """The campaign of that name; if there is none, the error says how to make one. If it opens restricted, a line says
    so, unless `quiet`."""
    from ally.campaign import Campaign
    from ally.campaign.permissions import RestrictedWarning, describe_restriction

    if not name:
        raise InputError("the name of the campaign is empty; give one, such as pets")
    place = place_of(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RestrictedWarning)
            campaign = Campaign.open(place, source, **options)
        ignored = campaign.permissions()
        if ignored and not quiet:
            note(describe_restriction(ignored, typed(name, campaign)))
        return campaign
    except StoreMissing:
        if "://" in place or Path(place).exists():
            raise
        here = sorted(path.name for path in Path(place).parent.glob("*.db") if path.is_file())[:FEW]
        others = f" (found here: {', '.join(here)})" if here else ""
        raise StoreMissing(f"there is no campaign {place}{others}; create it: ally new {name} --from FOLDER") from None


def typed(name: str, campaign: Campaign) -> str:
    """The name as the user would type it in the next command, without passwords."""
    return shlex.quote(campaign.name if "://" in name else name)


def shown_place(name: str, campaign: Campaign) -> str:
    """Where the campaign is: the file as named, or the server without passwords."""
    return campaign.name if "://" in name else place_of(name)
