"""Who may call which route: a route is the owner's unless it is listed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException

from ally.web.access import Person
from ally.web.problems import PROBLEMS

PREFIX = "/api/v1"
ANNOTATORS_MAY = {
    ("POST", "/api/v1/queries"),
    ("GET", "/api/v1/queries/{number}"),
    ("POST", "/api/v1/queries/{number}/release"),
    ("GET", "/api/v1/samples"),
    ("GET", "/api/v1/samples/image"),
    ("GET", "/api/v1/samples/label"),
    ("POST", "/api/v1/answers"),
    ("GET", "/api/v1/answers"),
    ("POST", "/api/v1/undo"),
    ("POST", "/api/v1/notes"),
    ("GET", "/api/v1/campaign"),
    ("GET", "/api/v1/progress"),
    ("GET", "/api/v1/review"),
    ("GET", "/api/v1/map"),
    ("GET", "/api/v1/events"),
}
"""Whatever else there is, is for the owner."""

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Routes:
    """Adds routes under `PREFIX`, each with its rule and the shape of its errors."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def get(self, path: str, **more: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("GET", path, more)

    def post(self, path: str, **more: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("POST", path, more)

    def patch(self, path: str, **more: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PATCH", path, more)

    def _add(self, method: str, path: str, more: dict[str, Any]) -> Callable[[Endpoint], Endpoint]:
        full = f"{PREFIX}{path}"
        everybody = (method, full) in ANNOTATORS_MAY

        def check(request: Request) -> None:
            if not everybody and person_of(request).role != "owner":
                raise HTTPException(403, "this is for the owner of the campaign; ask them")

        responses = {**PROBLEMS, **more.pop("responses", {})}

        def add(endpoint: Endpoint) -> Endpoint:
            self._app.add_api_route(
                full, endpoint, methods=[method], dependencies=[Depends(check)], responses=responses, **more
            )
            return endpoint

        return add


def person_of(request: Request) -> Person:
    """Who calls; the guard let nobody else in."""
    person = request.state.person
    if not isinstance(person, Person):
        raise HTTPException(401, "you are not signed in here; open the link that you were given")
    return person
