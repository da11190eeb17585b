"""The HTTP door for upload tickets: a machine shows its token, gets signed requests once, and says when it is done."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Response

from stationmaster.control.delivering.tickets import Standing, TicketOffice
from stationmaster.errors import TicketRefused

Authorization = Annotated[str, Header()]


def upload_routes(office: TicketOffice) -> APIRouter:
    # Plain functions: they wait for the bucket, and FastAPI runs them in threads.
    routes = APIRouter(prefix="/api/uploads", tags=["uploads"])

    @routes.post("/{ticket_id}", summary="Use a ticket: signed requests for its file, once")
    def use(ticket_id: str, response: Response, authorization: Authorization = "") -> dict[str, Any]:
        ticket = office.admit(ticket_id, _token(authorization))
        return _answer(office.issue(ticket.id), response)

    @routes.post("/{ticket_id}/done", summary="Have what was sent verified; parts that lack are signed anew")
    def done(ticket_id: str, response: Response, authorization: Authorization = "") -> dict[str, Any]:
        ticket = office.admit(ticket_id, _token(authorization))
        return _answer(office.settle(ticket.id), response)

    return routes


def _token(authorization: str) -> str:
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer" or not token:
        raise TicketRefused("an upload ticket needs its token", hint="send it as Authorization: Bearer TOKEN")
    return token


def _answer(standing: Standing, response: Response) -> dict[str, Any]:
    response.headers["Cache-Control"] = "no-store"  # the addresses are secrets
    return {"state": standing.ticket.state.value, "requests": [piece.to_json() for piece in standing.pieces]}
