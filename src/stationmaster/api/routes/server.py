"""The server itself, and who is asking."""

from __future__ import annotations

from fastapi import APIRouter

from stationmaster import __version__
from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading
from stationmaster.station.wire.server import CallerDocument, ServerDocument

routes = APIRouter(prefix="/api", tags=["server"], responses=problems(401))


@routes.get("/server", operation_id="get_server", summary="The server, and who is asking")
def get_server(visit: Reading) -> ServerDocument:
    return ServerDocument(version=__version__, now=visit.station.now(), caller=CallerDocument.of(visit.caller))
