"""What a campaign may do only if its user on this machine said so.

A campaign says what the data is. Which code runs, where to connect, what is read outside its folder and what is fetched
is said by the person at the command line, and kept in the state folder, by the campaign's id and the exact value. A
setting that needs a permission and has none is ignored: the campaign is restricted.

    settings that need one      harmless without it
    model                       a name listed by ``ally strategies``
    engine                      'local'
    the encoder                 one that is installed with ally's own extras
    the kind of data            a built-in one
    the source and its files    inside the campaign's folder
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ally.campaign.places import KIND, PATHS, beside, found_place
from ally.data.kinds import BUILT_IN
from ally.errors import StateUnavailable
from ally.state import open_state_folder, read_private, write_private

if TYPE_CHECKING:
    from ally.campaign.settings import Settings
    from ally.store import Store

FOLDER = "trusted"
"""The folder in the state folder that holds a folder for each campaign, and in it a file for each permission."""
PLACE_OF_SOURCE, ENCODER = "source", "encoder"
LONGEST_SHOWN = 200

_granted: set[tuple[str, str]] = set()
"""Permissions of this process, by campaign and key: granted here, or found in the state folder."""


class RestrictedWarning(UserWarning):
    """A campaign asks for something that its user on this machine has not allowed."""


@dataclass(frozen=True)
class Permission:
    """One value of one setting, and what it would do."""

    name: str
    value: str
    """The exact value; of a place, where it really is."""
    act: str

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps([self.name, self.value]).encode()).hexdigest()

    def __str__(self) -> str:
        shown = self.value if len(self.value) <= LONGEST_SHOWN else f"{self.value[:LONGEST_SHOWN]}… ({self.key[:12]})"
        return f"{self.name}={shown!r}"


def needed_permissions(settings: Settings, folder: Path | None) -> list[Permission]:
    """What the settings ask for beyond the harmless. `folder` is that of the campaign's file; None on a server."""
    needed = []
    for item in fields(settings):
        act_of = item.metadata.get("needs_permission")
        value = getattr(settings, item.name)
        act = None if act_of is None else act_of(value)
        if act is not None:
            needed.append(Permission(item.name, str(value), act))
    kind = settings.options.get(KIND)
    if isinstance(kind, str) and kind not in BUILT_IN:
        needed.append(Permission(KIND, kind, "runs code"))
    encoder = _encoder_permission(settings.encoded, folder)
    places = {PLACE_OF_SOURCE: settings.place, **{name: settings.options.get(name) for name in PATHS}}
    outside = [_place_permission(name, place, folder) for name, place in places.items() if isinstance(place, str)]
    return [*needed, *(one for one in (encoder, *outside) if one is not None)]


def _place_permission(name: str, place: str, folder: Path | None) -> Permission | None:
    real = os.path.realpath(found_place(place, folder) or place)
    if folder is not None and Path(real).is_relative_to(os.path.realpath(folder)):
        return None
    return Permission(name, real, "reads a place outside the campaign's folder")


def _encoder_permission(about: Mapping[str, Any] | None, folder: Path | None) -> Permission | None:
    from ally.data.encoders.opening import DEFAULTS

    if about is None or about.get("in memory"):
        return None  # whoever opens the campaign passes the encoder again
    if "folder" in about:
        inside = _place_permission(ENCODER, about["folder"], folder) is None
        # A folder beside the campaign moves with it. Another model may come in the same folder: its digest counts too.
        place = about["folder"] if inside else os.path.realpath(found_place(about["folder"], folder) or about["folder"])
        return Permission(ENCODER, f"{place} ({about['identity']})", "loads a model from a folder")
    if about["name"] in DEFAULTS.values():
        return None
    return Permission(ENCODER, about["name"], "loads a model, which is fetched from the internet if it is not here")


def describe_restriction(ignored: Sequence[Permission], name: str) -> str:
    """What is not in force and why, as one line."""
    try:
        open_state_folder(FOLDER)
        remedy = f"until you allow it: ally trust {name}"
    except StateUnavailable as error:
        remedy = f"because {error}"
    return f"restricted: {', '.join(map(str, ignored))} {'is' if len(ignored) == 1 else 'are'} ignored {remedy}"


def restrict(settings: Settings, store: Store) -> Settings:
    """The settings without what their user never allowed; `ignored` lists it."""
    needed = needed_permissions(settings, beside(store.name))
    ignored = tuple(one for one in needed if not is_granted(store.id, one))
    if not ignored:
        return settings
    names = {one.name for one in ignored}
    changes: dict[str, Any] = {
        item.name: item.default
        for item in fields(settings)
        if item.name in names and "needs_permission" in item.metadata
    }
    if ENCODER in names:
        changes["fingerprint"] = settings.fingerprint_without_encoder()
    if PLACE_OF_SOURCE in names:
        changes["place"] = None
    return replace(settings, **changes, ignored=ignored)


def is_granted(campaign: str, permission: Permission) -> bool:
    """Whether this user allowed it, in this process or earlier."""
    if (campaign, permission.key) in _granted:
        return True
    try:
        text = read_private(_folder(campaign) / f"{permission.key}.json")
        kept = None if text is None else json.loads(text)
    except (StateUnavailable, ValueError):
        return False
    if not isinstance(kept, dict) or (kept.get("setting"), kept.get("value")) != (permission.name, permission.value):
        return False
    _granted.add((campaign, permission.key))
    return True


@dataclass(frozen=True)
class AllowedModels:
    """The import paths ``module:builder`` that this user allowed a campaign to call for its model, now or earlier."""

    campaign: str

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and is_granted(self.campaign, Permission("model", path, "runs code"))


def grant(campaign: str, permissions: Iterable[Permission]) -> None:
    """Allow this to a campaign, for this process and, where the state folder can be used, from now on. Raises
    `StateUnavailable` if it cannot be remembered."""
    wanted = list(permissions)
    _granted.update((campaign, one.key) for one in wanted)
    if not wanted:
        return
    folder = _folder(campaign)
    for one in wanted:
        line = {"campaign": campaign, "setting": one.name, "value": one.value, "at": round(time.time())}
        write_private(folder / f"{one.key}.json", json.dumps(line, indent=1).encode())


def grant_keys(campaign: str, keys: Iterable[str]) -> None:
    """Allow in this process what the process that started it was allowed."""
    _granted.update((campaign, key) for key in keys)


def granted_keys(campaign: str) -> list[str]:
    """What this process was allowed, for a process that it starts."""
    return sorted(key for name, key in _granted if name == campaign)


def revoke(campaign: str) -> None:
    """Forget every permission of a campaign."""
    _granted.difference_update({one for one in _granted if one[0] == campaign})
    shutil.rmtree(_folder(campaign), ignore_errors=True)


def _folder(campaign: str) -> Path:
    return open_state_folder(FOLDER, campaign)
