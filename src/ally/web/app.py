"""The application: the API under /api/v1, the page, and the guard around both."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib import resources

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

import ally
from ally.campaign import Campaign
from ally.errors import AllyError
from ally.web import labelling, looking, schemas
from ally.web.access import SESSION_SECONDS, Access
from ally.web.events import Events
from ally.web.guard import UNREADABLE, Guard
from ally.web.limits import Buckets, client_of
from ally.web.problems import PROBLEMS, ProblemDetail, install
from ally.web.routing import Routes
from ally.web.shared_flush import Gatherer

SCREENS = ("/", "/grid", "/progress", "/review", "/settings")
MIMES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
SIGN_INS_AT_ONCE = 5
"""Others wait: a link that is being tried counts as one that does not work, and many people may have one address."""


class Page:
    """The application with what has to be told when it ends."""

    def __init__(self, campaign: Campaign, access: Access, hosts: Iterable[str], *, rate: float = 100.0) -> None:
        self.campaign = campaign
        self.gatherer = Gatherer(campaign)
        self.events = Events(campaign, access)
        self.access = access
        self.guesses = Buckets(0.2, 10.0)
        """Wrong secrets: an address may try ten, and then one every five seconds."""
        self.sign_ins = asyncio.Semaphore(SIGN_INS_AT_ONCE)
        self.api = _api(self)
        self.app: ASGIApp = Guard(
            GZipMiddleware(self.api, minimum_size=1000, compresslevel=4), access, hosts, rate=rate
        )


def _api(page: Page) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        page.events.close()
        page.access.close()

    api = FastAPI(
        title="ally",
        version=ally.__version__,
        description="Label samples of one campaign.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    install(api)
    routes = Routes(api)
    labelling.add_routes(routes, page.campaign, page.gatherer)
    looking.add_routes(routes, page.campaign, page.events, page.access)

    @api.post("/api/v1/session", responses=PROBLEMS)
    async def session(body: schemas.Secret, request: Request, response: Response) -> schemas.Me:
        """Exchange a link's secret, once, for a cookie that scripts cannot read."""
        address, access = client_of(request.scope), page.access
        async with page.sign_ins:
            if not page.guesses.allow(address):
                wait = {"Retry-After": "60"}
                raise HTTPException(429, "too many links that do not work were tried; wait a minute", wait)
            try:
                cookie = await asyncio.to_thread(access.exchange, body.secret)
                person = None if cookie is None else access.find_person(await access.admitted(), [cookie])
            except AllyError as error:  # a stranger need not know where the list is
                raise HTTPException(*UNREADABLE, {"Retry-After": "2"}) from error
            if cookie is None or person is None:
                raise HTTPException(403, "this link was used before or has ended; ask for a new one")
            page.guesses.give_back(address)
        response.set_cookie(
            access.cookie_name,
            cookie,
            max_age=int(SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.headers.get("origin", "").startswith("https:"),
        )
        return schemas.Me(annotator=person.annotator, role=person.role)

    @api.get("/api/openapi.json", include_in_schema=False)
    def schema() -> dict[str, object]:
        found = api.openapi()
        found["components"]["schemas"].setdefault("ProblemDetail", ProblemDetail.model_json_schema())
        return found

    _serve_files(api)
    return api


def _serve_files(api: FastAPI) -> None:
    """The files of the page by their exact names, read once."""
    files = {}
    for item in (resources.files("ally.web") / "page").iterdir():
        ending = item.name[item.name.rfind(".") :]
        if ending in MIMES:
            data = item.read_bytes()
            files[item.name] = data, MIMES[ending], f'"{hashlib.sha256(data).hexdigest()[:20]}"'

    def file(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404, "there is no such page; open /")
        data, mime, tag = files[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(data, media_type=mime, headers=headers)

    @api.get("/assets/{name}", include_in_schema=False)
    def asset(name: str, request: Request) -> Response:
        return file(name, request)

    def shell(request: Request) -> Response:
        return file("index.html", request)

    for path in SCREENS:
        api.get(path, include_in_schema=False)(shell)
