"""Signs browsers in and out."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from stationmaster.api.gate.signing_in import cookie_name
from stationmaster.api.problems import problems
from stationmaster.errors import NotSignedIn
from stationmaster.station.doorkeeper import Doorkeeper, Session
from stationmaster.station.wire.session import SessionDocument, SignIn

routes = APIRouter(prefix="/api", tags=["session"], responses=problems(401, 403, 422))


@routes.post("/session", operation_id="sign_in", summary="Sign a browser in by a one-time link or a token")
def sign_in(request: Request, response: Response, proof: SignIn) -> SessionDocument:
    """The answer sets the session's cookie."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    opened = doorkeeper.open_session(proof.code.get_secret_value())
    response.set_cookie(
        cookie_name(doorkeeper),
        opened.secret,
        max_age=max(0, int(opened.session.expires_at - request.app.state.station.now())),
        httponly=True,
        samesite="strict",
        secure=_is_https(request),
    )
    return SessionDocument.of(opened.session)


@routes.get("/session", operation_id="get_session", summary="Who is signed in in this browser")
def get_session(request: Request) -> SessionDocument:
    session: Session | None = getattr(request.state, "session", None)  # the gate has put it there
    if session is not None:
        return SessionDocument.of(session)
    caller = getattr(request.state, "caller", None)
    if caller is None or caller.token is not None:
        raise NotSignedIn("this browser is not signed in", hint="open a link of `stationmaster tokens link`")
    return SessionDocument.of_caller(caller)


@routes.delete("/session", operation_id="sign_out", summary="Sign this browser out", status_code=204)
def sign_out(request: Request) -> Response:
    """Repeating it changes nothing."""
    doorkeeper: Doorkeeper = request.app.state.doorkeeper
    name = cookie_name(doorkeeper)
    secret = request.cookies.get(name)
    if secret:
        doorkeeper.close_session(secret)
    response = Response(status_code=204)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=_is_https(request))
    return response


def _is_https(request: Request) -> bool:
    return bool(request.app.state.is_https) or request.url.scheme == "https"
