"""Errors as problem details (RFC 9457): one shape, with the library's error message."""

from __future__ import annotations

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ally.errors import (
    AllyError,
    AnswerConflict,
    DataError,
    IdError,
    InputError,
    PoolExhausted,
    StateUnavailable,
    StoreError,
)

MEDIA_TYPE = "application/problem+json"
TITLES = {
    400: "The request cannot be read",
    401: "Not signed in",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    408: "The request took too long",
    409: "Something changed meanwhile",
    413: "The request is too large",
    415: "Not JSON",
    422: "The input cannot be used",
    429: "Too many requests",
    431: "The request is too large",
    500: "Something went wrong in the server",
    503: "The campaign cannot be reached",
}


class ProblemDetail(BaseModel):
    """What went wrong, and the next step, in `detail`."""

    title: str
    status: int
    detail: str
    type: str = "about:blank"


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": title, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetail"}}}}
    for status, title in TITLES.items()
    if status != 500
}


def problem(status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    body = {"type": "about:blank", "title": TITLES.get(status, "Error"), "status": status, "detail": detail}
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def status_of(error: AllyError) -> int:
    if isinstance(error, IdError):
        return 404
    if isinstance(error, (AnswerConflict, PoolExhausted)):
        return 409
    if isinstance(error, (StateUnavailable, StoreError)):
        return 503
    return 422 if isinstance(error, (InputError, DataError)) else 500


def install(app: FastAPI) -> None:
    @app.exception_handler(AllyError)
    async def of_library(_: Request, error: AllyError) -> Response:
        status = status_of(error)
        return problem(status, str(error), {"Retry-After": "2"} if status == 503 else None)

    @app.exception_handler(RequestValidationError)
    async def of_input(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return problem(400, "the body is not JSON; send JSON")
        place = ".".join(str(part) for part in first["loc"][1:]) or "the body"
        return problem(422, f"{place}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def of_server(_: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # FastAPI gives no reason
            return problem(400, "the body cannot be read as JSON; send less deep and shorter values")
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RecursionError)
    async def of_depth(_: Request, error: RecursionError) -> Response:
        return problem(400, "the body is nested too deeply; send a flat list of answers")
