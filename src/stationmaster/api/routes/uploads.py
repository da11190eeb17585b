"""Upload tickets: a machine sends its ticket's token, gets signed requests once, and reports when it has uploaded."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Response

from stationmaster.api.problems import problems
from stationmaster.control.destinations.upload_tickets import UploadStatus, UploadTickets
from stationmaster.errors import NotFound, TokenMissing
from stationmaster.store.tickets import Ticket

_TICKET_ID = re.compile(r"[0-9a-f]{32}")


def upload_routes(tickets: UploadTickets) -> APIRouter:
    # Plain functions: they wait for the bucket, and FastAPI runs them in threads.
    routes = APIRouter(prefix="/api/uploads", tags=["uploads"], responses=problems(401, 404, 409, 422))

    def admitted(
        ticket_id: Annotated[str, Path(description="Id of the ticket that the machine was given.")],
        authorization: Annotated[str, Header(description="`Bearer` and the token of the ticket.")] = "",
    ) -> Ticket:
        token = _token(authorization)
        if not _TICKET_ID.fullmatch(ticket_id):  # a database does not accept every text
            raise NotFound("there is no such upload ticket")
        return tickets.admit(ticket_id, token)

    admitted_ticket = Depends(admitted)

    @routes.post(
        "/{ticket_id}",
        operation_id="use_upload_ticket",
        summary="Use a ticket once: returns signed requests for its file",
    )
    def use(response: Response, ticket: Ticket = admitted_ticket) -> dict[str, Any]:
        return _answer(tickets.issue(ticket.id), response)

    @routes.post(
        "/{ticket_id}/done",
        operation_id="finish_upload",
        summary="Verify the upload; missing parts are signed again",
    )
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
