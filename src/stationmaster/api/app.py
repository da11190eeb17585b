"""The routes of the HTTP service: health checks, and upload tickets for machines."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse

from stationmaster import __version__
from stationmaster.control.destinations.upload_tickets import UploadStatus, UploadTickets
from stationmaster.errors import NotFound, StationmasterError, TokenMissing
from stationmaster.store.store import Store
from stationmaster.store.tickets import Ticket

_TICKET_ID = re.compile(r"[0-9a-f]{32}")


def build_app(store: Store, *, tickets: UploadTickets | None) -> FastAPI:
    """The service; without `tickets` it has no routes for uploads."""
    app = FastAPI(title="Stationmaster", version=__version__, docs_url=None, redoc_url=None)
    app.add_exception_handler(StationmasterError, _error_response)

    # HEAD as well: many load balancers use it.
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", summary="Whether the process answers")
    def healthz() -> dict[str, object]:
        return {"ok": True, "version": __version__}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", summary="Whether the store answers as well")
    def readyz() -> JSONResponse:
        try:
            store.now()
        except StationmasterError as problem:
            return JSONResponse({"ready": False, "problem": str(problem)}, status_code=503)
        return JSONResponse({"ready": True, "uploads": tickets is not None})

    if tickets is not None:
        app.include_router(_upload_routes(tickets))
    return app


def _upload_routes(tickets: UploadTickets) -> APIRouter:
    """A machine sends its ticket's token, gets signed requests once, and reports when it has uploaded its file."""
    # Plain functions: they wait for the bucket, and FastAPI runs them in threads.
    routes = APIRouter(prefix="/api/uploads", tags=["uploads"])

    def admitted(ticket_id: str, authorization: Annotated[str, Header()] = "") -> Ticket:
        token = _token(authorization)
        if not _TICKET_ID.fullmatch(ticket_id):  # a database does not accept every text
            raise NotFound("there is no such upload ticket")
        return tickets.admit(ticket_id, token)

    admitted_ticket = Depends(admitted)

    @routes.post("/{ticket_id}", summary="Use a ticket once: returns signed requests for its file")
    def use(response: Response, ticket: Ticket = admitted_ticket) -> dict[str, Any]:
        return _answer(tickets.issue(ticket.id), response)

    @routes.post("/{ticket_id}/done", summary="Verify the upload; missing parts are signed again")
    def done(response: Response, ticket: Ticket = admitted_ticket) -> dict[str, Any]:
        return _answer(tickets.settle(ticket.id), response)

    return routes


def _token(authorization: str) -> str:
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise TokenMissing(hint="send it as Authorization: Bearer TOKEN")
    return token


def _answer(status: UploadStatus, response: Response) -> dict[str, Any]:
    response.headers["Cache-Control"] = "no-store"  # the addresses are secrets
    return {"state": status.ticket.state.value, "requests": [piece.to_json() for piece in status.pieces]}


def _error_response(_request: Request, problem: Exception) -> JSONResponse:
    """The only place where an error becomes an HTTP response."""
    assert isinstance(problem, StationmasterError)
    headers = {"WWW-Authenticate": "Bearer"} if problem.http_status == HTTPStatus.UNAUTHORIZED else None
    return JSONResponse({"error": str(problem), "hint": problem.hint}, status_code=problem.http_status, headers=headers)
