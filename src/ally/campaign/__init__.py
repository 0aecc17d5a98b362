"""A labelling campaign over days: ask, tell, train in the background, advise.

campaign = ally.Campaign.create("pets.db", "photos/", classes=["cat", "dog"])
query = campaign.ask(20)
campaign.tell(query.id, {query.ids[0]: "cat", query.ids[1]: ally.SKIP})
campaign.status().advice.sentence
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ally.campaign.advice import Advice
    from ally.campaign.campaign import Campaign
    from ally.campaign.settings import Settings
    from ally.campaign.values import (
        Agreement,
        AskedSample,
        CampaignQuery,
        ClassChange,
        ClassRecall,
        Held,
        ModelLine,
        RandomComparison,
        Scanned,
        Status,
        Suspect,
        Told,
        Undone,
    )

__all__ = [
    "Advice",
    "Agreement",
    "AskedSample",
    "Campaign",
    "CampaignQuery",
    "ClassChange",
    "ClassRecall",
    "Held",
    "ModelLine",
    "RandomComparison",
    "Scanned",
    "Settings",
    "Status",
    "Suspect",
    "Told",
    "Undone",
]
_PLACES = {"Advice": "advice", "Campaign": "campaign", "Settings": "settings"}


def __getattr__(name: str) -> Any:
    """Import a part on first use: the command line reads the settings without opening a database."""
    if name not in __all__:
        raise AttributeError(f"module 'ally.campaign' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"ally.campaign.{_PLACES.get(name, 'values')}"), name)
