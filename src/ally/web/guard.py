"""Checks on every request before any route (Host, Origin, identity, size, rate), and headers on every response.

A page of another site can make a browser send requests here. Host keeps out names that were pointed at this machine,
Origin and Sec-Fetch-Site keep out other sites, and every request that changes something must name an Origin that is
ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ally.errors import AllyError
from ally.web.access import Access, Person
from ally.web.limits import Buckets, RequestTurns, client_of
from ally.web.problems import problem

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_NAMES = {name for name, _ in _RAW}
SAFE = ("GET", "HEAD")
MOST_HEAD = 32_768
MOST_BODY = 1_000_000
MOST_OF_STRANGER = 10_000
"""Bytes of a body that is a link's secret: to read a large one takes long, and anybody may send it."""
BODY_SECONDS = 10.0
OPEN = ("/api/v1/session",)
"""The API routes that need no login. Everything else under /api does."""
EVENTS = "/api/v1/events"
MOST_COOKIES = 10
MOST_AT_ONCE = 8
"""Requests to look, of one person; a browser sends six."""
REFUSED_WITH = {400: {"Connection": "close"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "1"}}
"""Headers of refusals. What follows a request whose length is in doubt may be its end: it is not read as another."""
UNREADABLE = 503, "who may come in cannot be read now; try again, and if it stays so ask whoever runs the server"


class Guard:
    """`hosts` are names with ports under which this server may be called."""

    def __init__(self, app: ASGIApp, access: Access, hosts: Iterable[str], *, rate: float = 100.0) -> None:
        self.app = app
        self.access = access
        self.hosts = frozenset(host.lower() for host in hosts)
        self.known = Buckets(rate, 6 * rate)
        self.unknown = Buckets(20.0, 100.0)
        self.turns = RequestTurns(MOST_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers, path = Headers(scope=scope), scope["path"]
        refusal = check_framing(scope["method"], headers) or self._refusal(scope["method"], path, headers)
        person, cookies = None, _cookies(headers, self.access.cookie_name)
        if refusal is None:
            try:
                person = await self._find_person(cookies)
            except AllyError:
                refusal = UNREADABLE if path.startswith("/api") else None
        if refusal is None:
            refusal = self._too_many(scope, path, person) or self._stranger(path, person)
        most = MOST_BODY if person is not None else MOST_OF_STRANGER
        if refusal is None and int(headers.get("content-length", "0")) > most:
            refusal = 413, f"the body has more than {most} bytes; send fewer answers at once"
        sending = _Sending(send)
        if refusal is not None:
            status, detail = refusal
            extra = REFUSED_WITH.get(status)
            return await problem(status, detail, extra)(scope, receive, sending)
        scope.setdefault("state", {}).update(person=person, cookies=cookies)
        async with self._turn(scope["method"], path, person):
            await self.app(scope, _Receiving(receive, most), sending)

    def _turn(self, method: str, path: str, person: Person | None) -> AbstractAsyncContextManager[None]:
        """Streams are counted by themselves, and requests that change something share flushes instead of threads."""
        counts = method in SAFE and path != EVENTS
        return self.turns.of(person.annotator) if counts and person is not None else nullcontext()

    async def _find_person(self, cookies: list[str]) -> Person | None:
        """Whoever has no cookie costs no look at the list."""
        if not cookies and self.access.alone is None:
            return None
        return self.access.find_person(await self.access.admitted(), cookies)

    def _refusal(self, method: str, path: str, headers: Headers) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 403, "the server is not called by this name; open the address that `ally label` printed"
        origins = headers.getlist("origin")
        if origins and not (len(origins) == 1 and self._ours(origins[0])):
            return 403, "the request comes from another site; open the address that `ally label` printed"
        if method not in SAFE and not origins:
            return 403, "the request says no Origin; a program sends the server's own address as Origin"
        navigates = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        site = headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") and not (navigates and not path.startswith("/api")):
            return 403, "the request comes from another site; open the address that `ally label` printed"
        if method not in SAFE and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "the body must be application/json"
        return None

    def _ours(self, origin: str) -> bool:
        scheme, _, host = origin.lower().partition("://")
        return scheme in ("http", "https") and host in self.hosts

    def _too_many(self, scope: Scope, path: str, person: Person | None) -> tuple[int, str] | None:
        allowed = self.known.allow(person.annotator) if person is not None else self.unknown.allow(client_of(scope))
        return None if allowed else (429, "there are too many requests at once; wait a second and try again")

    def _stranger(self, path: str, person: Person | None) -> tuple[int, str] | None:
        if person is not None or not path.startswith("/api") or path in OPEN:
            return None
        return 401, "you are not signed in here; open the link that you were given, or ask for a new one"


def check_framing(method: str, headers: Headers) -> tuple[int, str] | None:
    """Why the size of a request is refused, before anything in it is believed."""
    if sum(len(name) + len(value) + 4 for name, value in headers.raw) > MOST_HEAD:
        return 431, f"the headers have more than {MOST_HEAD} bytes; remove cookies of this host"
    length, in_chunks = headers.get("content-length"), "transfer-encoding" in headers
    if length is not None and not length.isdecimal():
        return 400, "Content-Length is not a number"
    if length is not None and in_chunks:
        return 400, "the request says twice how long its body is; send one of Content-Length and Transfer-Encoding"
    if method in SAFE and (in_chunks or int(length or 0)):
        return 400, f"a {method} request has no body; send it without one"
    return None


def _refused(status: int, detail: str) -> HTTPException:
    """What FastAPI lets through from where a body is read."""
    return HTTPException(status, detail)


class _Receiving:
    """Limits the size of the body and the time to receive it."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._size = 0
        self._whole = False
        self._end = asyncio.get_running_loop().time() + BODY_SECONDS

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()  # from here on it only tells that the client went away
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            raise _refused(408, f"the body did not arrive within {BODY_SECONDS:g} seconds; send it again") from None
        self._size += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._size > self._most:
            raise _refused(413, f"the body has more than {self._most} bytes; send fewer answers at once")
        return message


class _Sending:
    """Adds the headers that every answer has."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            given = [pair for pair in message["headers"] if pair[0] not in _NAMES]
            if all(name != b"cache-control" for name, _ in given):
                given.append((b"cache-control", b"no-store"))
            message["headers"] = given + _RAW
        await self._send(message)


def _cookies(headers: Headers, name: str) -> list[str]:
    """The values of the cookies of that name: other servers of this host may have set more, and some that break the
    rules."""
    pairs = (pair.partition("=") for line in headers.getlist("cookie") for pair in line.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name][:MOST_COOKIES]
