"""Who may call which route: a route is the owner's unless it is listed here."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, get_type_hints

from fastapi import Depends, FastAPI, Request, Response
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
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
    ("GET", "/api/v1/alike"),
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

        async def check(request: Request) -> None:  # not in a thread: that costs more than the check
            if not everybody and person_of(request).role != "owner":
                raise HTTPException(403, "this is for the owner of the campaign; ask them")

        responses = {**PROBLEMS, **more.pop("responses", {})}

        def add(endpoint: Endpoint) -> Endpoint:
            called, model = _written(endpoint)
            more.setdefault("response_model", model)
            self._app.add_api_route(
                full, called, methods=[method], dependencies=[Depends(check)], responses=responses, **more
            )
            return endpoint

        return add


def _written(endpoint: Callable[..., Any]) -> tuple[Callable[..., Any], type[BaseModel] | None]:
    """The endpoint with its model written as JSON where it runs, and that model. FastAPI would check the model a second
    time, in a thread of its own."""
    model = get_type_hints(endpoint)["return"]
    if not issubclass(model, BaseModel):
        return endpoint, None

    @wraps(endpoint)
    def called(*args: Any, **given: Any) -> Response:
        return _json(endpoint(*args, **given))

    @wraps(endpoint)
    async def awaited(*args: Any, **given: Any) -> Response:
        return _json(await endpoint(*args, **given))

    return awaited if inspect.iscoroutinefunction(endpoint) else called, model


def _json(found: BaseModel) -> Response:
    return Response(write_json(found), media_type="application/json")


def write_json(found: BaseModel) -> str:
    """A text out of somebody else's file, or the name of the file, may be no valid Unicode: it is escaped."""
    try:
        return found.model_dump_json()
    except PydanticSerializationError:
        return json.dumps(found.model_dump())


def person_of(request: Request) -> Person:
    """Who calls; the guard let nobody else in."""
    person = request.state.person
    if not isinstance(person, Person):
        raise HTTPException(401, "you are not signed in here; open the link that you were given")
    return person
