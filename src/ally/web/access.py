"""Access control. Unshared, anyone who reaches the port is the owner; shared, people come through links.

A link holds a secret after its ``#``, which browsers do not send: the page exchanges it once for a cookie. The campaign
keeps digests only, so that links and cookies outlive a restart and neither can be read out of its file.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ally.campaign import Campaign

Role: TypeAlias = Literal["annotator", "owner"]
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
        return self._issue(LINK, self._links, Person(annotator, role), LINK_SECONDS)

    def exchange(self, secret: str) -> str | None:
        """A link's secret for a cookie's value; None if it was used before, has expired, or never was one."""
        digest = _digest(secret)
        with self._lock:
            found = self._links.pop(digest, None)
        if found is None or found[1] < self._clock():
            return None
        person = found[0]
        self._campaign.page.log(REVOKED, {"annotator": person.annotator, "link": digest})
        return self._issue(SESSION, self._sessions, person, SESSION_SECONDS)

    def end(self, annotator: str) -> None:
        """Revoke all links and cookies of an annotator; the answers stay."""
        with self._lock:
            self._forget(annotator, "")
        self._campaign.page.log(REVOKED, {"annotator": annotator})

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

    def _issue(self, kind: str, kept: dict[str, tuple[Person, float]], person: Person, seconds: float) -> str:
        secret, until = secrets.token_urlsafe(32), self._clock() + seconds
        digest = _digest(secret)
        detail = {"digest": digest, "annotator": person.annotator, "role": person.role, "until": until}
        self._campaign.page.log(kind, detail)
        with self._lock:
            kept[digest] = person, until
        return secret


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
