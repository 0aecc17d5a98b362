"""Access control. Unshared, anyone who reaches the port is the owner; shared, people come through links.

A link holds a secret after its ``#``, which browsers do not send: the page exchanges it once for a cookie. Only digests
are kept, outside the campaign's file: links and cookies outlive a restart, and no file can let anybody in.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ally.campaign import Campaign
from ally.errors import StateUnavailable
from ally.web.access_list import AccessEntry, AccessList, Admitted, FileList, MemoryList, Role
from ally.web.shared_look import SharedLook
from ally.web.signed_rows import SignedRows, load_page_key

COOKIE = "ally-session"
LINK_SECONDS = 7 * 86400.0
SESSION_SECONDS = 30 * 86400.0


@dataclass(frozen=True)
class Person:
    annotator: str
    role: Role


class Access:
    """`alone` is the person who labels on this machine without a login; None where people come by links."""

    def __init__(
        self,
        entries: AccessList,
        alone: Person | None,
        cookie_name: str = COOKIE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._list = entries
        self._clock = clock
        self._look = SharedLook(entries.read)
        self.alone = alone
        self.cookie_name = cookie_name

    def new_link(self, annotator: str, role: Role = "annotator") -> str:
        """A secret that lets this annotator in once."""
        return self.new_links([Person(annotator, role)])[0]

    def new_links(self, people: Sequence[Person]) -> list[str]:
        """A secret for each, recorded together."""
        now = self._clock()
        made = [_draw_secret() for _ in people]
        new = [
            AccessEntry("link", person.annotator, person.role, _digest(secret), now + LINK_SECONDS)
            for person, secret in zip(people, made, strict=True)
        ]
        self._list.change(lambda _: new, now)
        return made

    def exchange(self, secret: str) -> str | None:
        """A link's secret for a cookie's value; None if it was used before, has expired, or never was one."""
        digest, now = _digest(secret), self._clock()
        if digest not in self._list.read().links:
            return None
        cookie = _draw_secret()

        def use_link(admitted: Admitted) -> list[AccessEntry]:
            link = admitted.links.get(digest)
            if link is None or link.until <= now:
                return []
            return [AccessEntry("session", link.annotator, link.role, _digest(cookie), now + SESSION_SECONDS, digest)]

        return cookie if self._list.change(use_link, now) else None

    def end(self, annotator: str) -> None:
        """Revoke all links and cookies of an annotator; the answers stay."""
        self._list.change(lambda _: [AccessEntry("end", annotator)], self._clock())

    async def admitted(self) -> Admitted:
        """Who is admitted now. Nothing else waits while another machine is asked."""
        if self.alone is not None:
            return Admitted()
        return await self._look() if self._list.waits else self._list.read()

    def find_person(self, admitted: Admitted, cookies: Sequence[str]) -> Person | None:
        """Whom the first of these cookies lets in that is a session."""
        if self.alone is not None:
            return self.alone
        now = self._clock()
        for cookie in cookies:
            session = admitted.sessions.get(_digest(cookie))
            if session is not None and session.until > now:
                return Person(session.annotator, session.role)
        return None

    def person(self, cookie: str) -> Person | None:
        """Whom a cookie lets in now."""
        return self.find_person(self._list.read(), [cookie])

    def people(self) -> list[tuple[Person, str]]:
        """Everyone who has a link or a cookie, and which."""
        valid = self._list.read().list_valid(self._clock())
        found = {Person(entry.annotator, entry.role): "in" if entry.kind == "session" else "link" for entry in valid}
        return sorted(found.items(), key=lambda item: (item[0].role != "owner", item[0].annotator))

    def close(self) -> None:
        self._list.close()


def open_access(campaign: Campaign, alone: Person | None, key_file: Path | None = None) -> tuple[Access, str]:
    """The access to a campaign, and a sentence if links and sessions will end with this server."""
    name, problem = f"{COOKIE}-{campaign.id[:8]}", ""
    entries: AccessList = MemoryList()
    if alone is None:
        try:
            entries = SignedRows(campaign, load_page_key(key_file)) if campaign.is_on_server else FileList(campaign.id)
        except StateUnavailable as error:
            problem = f"links and cookies end with this server: {error}"
    return Access(entries, alone, name), problem


def _draw_secret() -> str:
    return secrets.token_urlsafe(32)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
