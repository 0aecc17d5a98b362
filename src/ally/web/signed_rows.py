"""Who may come in, for servers on several machines that share a campaign on a database server.

Whoever can write to the database could write such rows too. So each is signed with a key that the owner gives those
machines and that is not in the database, and a row without a valid signature counts for nothing. Rows are numbered, and
the number is signed: one that comes again later is passed over, and where one is missing, what came before it lets
nobody in, since it may have been an end. Where all of the list was set back to an earlier state, a machine that has
seen the later one lets nobody in: it remembers in its state folder how long the list was. What remains is a machine
that never saw it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ally.campaign import Campaign
from ally.errors import InputError, StateUnavailable, StoreDamaged
from ally.state import load_key, lock_state, open_state_folder, read_private, write_private
from ally.web.access_list import AccessEntry, AccessList, Admitted, Decide

VARIABLE = "ALLY_PAGE_KEY"
"""The environment variable that holds the key."""
SHORTEST_KEY, LONGEST_KEY = 32, 4096
KIND = "page access, signed"


def load_page_key(file: Path | None) -> bytes:
    """The key that signs the list: from a file, from ALLY_PAGE_KEY, else this user's own on this machine."""
    given = os.environ.get(VARIABLE, "").encode()
    where = VARIABLE
    if file is not None:
        where = str(file)
        try:
            with open(file, "rb") as opened:
                given = opened.read(LONGEST_KEY + 1)
        except OSError as error:
            raise InputError(f"the key file {file} cannot be read ({error.strerror}); name another") from error
    elif not given:
        return load_key("access.key")
    given = given.strip()
    if not SHORTEST_KEY <= len(given) <= LONGEST_KEY:
        raise InputError(
            f"the key in {where} has {len(given)} bytes; give {SHORTEST_KEY} to {LONGEST_KEY} random ones, as those of "
            "`openssl rand -hex 32`"
        )
    return hashlib.sha256(b"ally page access\n" + given).digest()


class SignedRows(AccessList):
    """Rows among the events of the campaign."""

    waits = True

    def __init__(self, campaign: Campaign, key: bytes) -> None:
        self._campaign, self._key = campaign, key
        self._looking = threading.Lock()
        self._last_event: Any = None
        self._place = 0
        self._admitted = Admitted()
        self._memory = _find_memory(campaign.id, key)
        self._highest = _recall(self._memory)
        self.read()

    def read(self) -> Admitted:
        with self._looking:
            self._catch_up()
            return self._admitted

    def change(self, decide: Decide, now: float) -> Sequence[AccessEntry]:
        def work() -> Sequence[AccessEntry]:
            admitted = self.read()
            new = decide(admitted)
            self._campaign.page.log(
                *((KIND, self._sign(place, entry)) for place, entry in enumerate(new, self._place + 1))
            )
            return new

        _, (outcome,) = self._campaign.page.together([], [work])
        if isinstance(outcome, BaseException):
            raise outcome
        made: Sequence[AccessEntry] = outcome
        return made

    def _catch_up(self) -> None:
        """Reads what is new. If the last event that was read is another one now, the log was set back: all is read
        again."""
        last, place, admitted = self._last_event, self._place, self._admitted
        events = list(self._campaign.page.events(0 if last is None else last.number - 1))
        if last is not None and events[:1] != [last]:
            place, admitted = 0, Admitted()
            events = list(self._campaign.page.events())
        new = [found for event in events if event.kind == KIND and (found := self._check(event.detail)) is not None]
        for found_place, entry in new:
            if found_place > place:
                admitted = (admitted if found_place == place + 1 else Admitted()).with_entries([entry])
                place = found_place
        if place < self._highest:
            forget = "" if self._memory is None else f"remove {self._memory}, "
            raise StoreDamaged(
                f"the list of who may come in, in {self._campaign.name}, was set back from {self._highest} entries to "
                f"{place}, and somebody who was sent away may be in it; if you restored the database, "
                f"{forget}start this server again, and send them away once more"
            )
        if place > self._highest:
            _remember(self._memory, place)
        self._place, self._admitted, self._highest = place, admitted, place
        if events:
            self._last_event = events[-1]

    def _sign(self, place: int, entry: AccessEntry) -> dict[str, str]:
        text = json.dumps({"campaign": self._campaign.id, "place": place, **asdict(entry)})
        return {"entry": text, "signature": self._signature(text)}

    def _signature(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _check(self, detail: Mapping[str, Any]) -> tuple[int, AccessEntry] | None:
        """The place and the entry of a row that was signed with our key for this campaign."""
        text, signature = detail.get("entry"), detail.get("signature")
        if not isinstance(text, str) or not isinstance(signature, str):
            return None
        if not hmac.compare_digest(self._signature(text).encode(), signature.encode("utf-8", "surrogatepass")):
            return None
        signed = json.loads(text)
        if signed.pop("campaign") != self._campaign.id:
            return None
        return signed.pop("place"), AccessEntry(**signed)


def _find_memory(campaign: str, key: bytes) -> Path | None:
    """The file of this machine for lists signed with this key; None where no state can be kept."""
    name = hmac.new(key, f"length {campaign}".encode(), hashlib.sha256).hexdigest()[:32]
    try:
        return open_state_folder("access") / f"{name}.length"
    except StateUnavailable:
        return None


def _recall(memory: Path | None) -> int:
    data = None if memory is None else read_private(memory)
    return int(data) if data is not None and data.isdigit() else 0


def _remember(memory: Path | None, length: int) -> None:
    """Two servers of this machine may do so at once: the greater one stays."""
    if memory is None:
        return
    with lock_state(memory.with_suffix(".lock")):
        if length > _recall(memory):
            write_private(memory, str(length).encode())
