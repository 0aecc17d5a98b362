"""What a campaign's record must hold beyond what any store promises: looked at once, when a file is opened that this
user has not had open."""

from __future__ import annotations

from typing import Any

from ally.campaign.settings import Settings
from ally.errors import StoreDamaged
from ally.json_form import find_misfit
from ally.store import Store

LABEL: Any = str | bool | int | float


def check_record(store: Store) -> None:
    """Raises `StoreDamaged` unless the settings and all labels are such as a campaign writes."""
    settings = Settings.from_json(store.settings)
    form = LABEL if settings.task == "classification" else int | float
    for label in store.answers.values()[0]:
        misfit = find_misfit(label, form, "a label on record")
        if misfit is not None:
            raise StoreDamaged(f"{misfit}, which is none of a campaign; it is damaged: restore a backup")
