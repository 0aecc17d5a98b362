"""What a person sees of a sample, as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ally.cli.campaign.printing import note
from ally.errors import AllyError

if TYPE_CHECKING:
    from ally.campaign import Campaign
    from ally.data.ids import SampleId

LONG = 100_000
"""In a longer table, samples are shown on request only, if the whole table must be read to find one."""
TAKEN = frozenset(
    {
        "id",
        "label",
        "skip",
        "annotator",
        "at",
        "query",
        "kind",
        "undoes",
        "predicted",
        "probability",
        "path",
        "text",
        "dual",
        "labelled_by",
        "adjudicates",
    }
)
"""Column names that the commands give a meaning in their files."""


def shown(campaign: Campaign, ids: Sequence[SampleId], wanted: bool | None) -> dict[str, dict[str, Any]]:
    """By id: the path of an image, the text, or the columns of a table. What cannot be shown is empty, with a note."""
    if wanted is None:
        wanted = not _long(campaign)
    found: dict[str, dict[str, Any]] = {str(id): {} for id in ids}
    if not wanted:
        return found
    try:
        _ = campaign.source.samples
    except AllyError as error:
        note(f"note: only ids are listed, because the source cannot be opened: {error}")
        return found
    return {id: _columns(campaign, id) for id in found}


def columns_of(shown: dict[str, dict[str, Any]]) -> list[str]:
    """Every column that any sample has, in the order met."""
    return list(dict.fromkeys(name for columns in shown.values() for name in columns))


def _long(campaign: Campaign) -> bool:
    if campaign.source.cache is not None or campaign.settings.fingerprint.get("from") != "rows":
        return False
    if campaign.source.size > LONG:
        note(
            f"note: only ids are listed, because finding rows in a table of {campaign.source.size} takes a while; "
            "--show adds the rows"
        )
    return campaign.source.size > LONG


def _columns(campaign: Campaign, id: str) -> dict[str, Any]:
    try:
        seen = campaign.show(id)
    except AllyError as error:
        note(f"note: {id} cannot be shown: {error}")
        return {}
    columns: dict[str, Any] = {}
    if seen.path is not None:
        columns["path"] = str(seen.path)
    if seen.text is not None:
        columns["text"] = seen.text
    return columns | {f"source.{name}" if name in TAKEN else name: value for name, value in seen.columns.items()}
