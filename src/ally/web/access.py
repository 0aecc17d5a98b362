"""Access control. Unshared, anyone who reaches the port is the owner; shared, people come through links.

A link holds a secret after its ``#``, which browsers do not send: the page exchanges it once for a cookie. The campaign
keeps digests only, so that links and cookies outlive a restart and neither can be read out of its file.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ally.campaign import Campaign

Role: TypeAlias = Literal["annotator", "owner"]
Entry: TypeAlias = tuple[str, dict[str, Any]]
COOKIE = "ally-session"
LINK, SESSION, REVOKED = "page link", "page session", "page access ended"
LINK_SECONDS = 7 * 86400.0
SESSION_SECONDS = 30 * 86400.0


@dataclass(frozen=True)
class Person:
    annotator: str
    role: Role


class Access:
    """`alone` is the person who labels on this machine without a login; None where people come by links."""

    def __init__(self, campaign: Campaign, alone: Person | None, clock: Callable[[], float] = time.time) -> None:
        self._campaign = campaign
        self._clock = clock
        self._lock = threading.Lock()
        self.alone = alone
        self._links: dict[str, tuple[Person, float]] = {}
        self._sessions: dict[str, tuple[Person, float]] = {}
        if alone is None:
            self._read()

    def _read(self) -> None:
        for kind, kept in ((LINK, self._links), (SESSION, self._sessions)):
            for detail in self._campaign.page.logged(kind):
                kept[detail["digest"]] = Person(detail["annotator"], detail["role"]), float(detail["until"])
        for detail in self._campaign.page.logged(REVOKED):
            self._forget(str(detail["annotator"]), str(detail.get("link", "")))

    def _forget(self, annotator: str, link: str) -> None:
        """A link that was used, or all that an annotator has."""
        if link:
            self._links.pop(link, None)
            return
        for kept in (self._links, self._sessions):
            for digest in [digest for digest, (person, _) in kept.items() if person.annotator == annotator]:
                del kept[digest]

    def new_link(self, annotator: str, role: Role = "annotator") -> str:
        """A secret that lets this annotator in once."""
        return self.new_links([Person(annotator, role)])[0]

    def new_links(self, people: Sequence[Person]) -> list[str]:
        """A secret for each, recorded together."""
        new = [_Secret.new(LINK, person, self._clock() + LINK_SECONDS) for person in people]
        self._keep(self._links, new)
        return [one.text for one in new]

    def exchange(self, secret: str) -> str | None:
        """A link's secret for a cookie's value; None if it was used before, has expired, or never was one."""
        digest = _digest(secret)
        with self._lock:
            found = self._links.pop(digest, None)
        if found is None or found[1] < self._clock():
            return None
        new = _Secret.new(SESSION, found[0], self._clock() + SESSION_SECONDS)
        self._keep(self._sessions, [new], (REVOKED, {"annotator": new.person.annotator, "link": digest}))
        return new.text

    def end(self, annotator: str) -> None:
        """Revoke all links and cookies of an annotator; the answers stay."""
        with self._lock:
            self._forget(annotator, "")
        self._campaign.page.log((REVOKED, {"annotator": annotator}))

    def person(self, cookie: str | None) -> Person | None:
        if self.alone is not None:
            return self.alone
        found = None if not cookie else self._sessions.get(_digest(cookie))
        return found[0] if found is not None and found[1] > self._clock() else None

    def people(self) -> list[tuple[Person, str]]:
        """Everyone who has a link or a cookie, and which."""
        with self._lock:
            waiting = {person: "link" for person, until in self._links.values() if until > self._clock()}
            inside = {person: "in" for person, until in self._sessions.values() if until > self._clock()}
        return sorted((waiting | inside).items(), key=lambda item: (item[0].role != "owner", item[0].annotator))

    def _keep(self, kept: dict[str, tuple[Person, float]], new: Sequence[_Secret], *besides: Entry) -> None:
        self._campaign.page.log(*besides, *(one.entry for one in new))
        with self._lock:
            kept.update({_digest(one.text): (one.person, one.until) for one in new})


@dataclass(frozen=True)
class _Secret:
    """Of a link or a cookie: what it says, whom it lets in, and until when."""

    text: str
    kind: str
    person: Person
    until: float

    @classmethod
    def new(cls, kind: str, person: Person, until: float) -> _Secret:
        return cls(secrets.token_urlsafe(32), kind, person, until)

    @property
    def entry(self) -> Entry:
        """What is recorded of it: its digest only."""
        return self.kind, {**vars(self.person), "digest": _digest(self.text), "until": self.until}


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
