"""Errors as RFC 9457 problem JSON: the only place where an error becomes an HTTP response."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as FrameworkError

from stationmaster.errors import NotFound, StationmasterError, UserError
from stationmaster.station.wire.problem import MEDIA_TYPE, Problem


def problem_response(error: StationmasterError) -> Response:
    problem = Problem.of(error)
    headers: dict[str, str] = {}
    if problem.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.retry_after_seconds is not None:
        headers["Retry-After"] = str(math.ceil(problem.retry_after_seconds))
    return Response(problem.model_dump_json(), problem.status, headers, MEDIA_TYPE)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These error responses, for the description of a route."""
    return {status: _described(HTTPStatus(status).phrase) for status in statuses}


def _described(meaning: str) -> dict[str, Any]:
    return {"description": meaning, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def add_problem_handlers(app: FastAPI) -> None:
    app.add_exception_handler(StationmasterError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(FrameworkError, _of_the_framework)


def _ours(_request: Request, error: Exception) -> Response:
    assert isinstance(error, StationmasterError)
    return problem_response(error)


def _invalid(_request: Request, error: Exception) -> Response:
    """A request that does not follow the schema: the first thing that is wrong with it."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    return problem_response(
        InvalidRequest(_in_words(place, first["msg"]), hint="see GET /api/openapi.json for what is expected")
    )


def _in_words(place: str, message: str) -> str:
    """Our own checks name the field themselves; pydantic marks their texts."""
    own = message.removeprefix("Value error, ")
    return own if own != message and not place else f"{place or 'body'}: {own}"


class BodyRefused(HTTPException):
    """Raised while a route reads the body; FastAPI lets exceptions of this kind through to the handlers of errors."""

    def __init__(self, problem: StationmasterError) -> None:
        super().__init__(problem.http_status, str(problem))
        self.problem = problem


class InvalidRequest(UserError):
    """The request does not follow the API's schema."""

    http_status = 422


class MethodRefused(UserError):
    """This address does not answer that method."""

    http_status = 405


def _of_the_framework(_request: Request, error: Exception) -> Response:
    assert isinstance(error, FrameworkError)
    if isinstance(error, BodyRefused):
        return problem_response(error.problem)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return problem_response(NotFound("there is nothing at this address", hint="see GET /api/openapi.json"))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        refused = problem_response(MethodRefused())
        refused.headers.update(error.headers or {})
        return refused
    return problem_response(UserError(str(error.detail)))
