"""Health checks, for load balancers: they need no token and tell nothing else."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from stationmaster import __version__
from stationmaster.errors import StationmasterError
from stationmaster.station.base import Station

routes = APIRouter(tags=["health"])


# HEAD as well: many load balancers use it.
@routes.head("/healthz", include_in_schema=False)
@routes.get("/healthz", operation_id="get_health", summary="Whether the process answers")
def get_health() -> dict[str, object]:
    return {"ok": True, "version": __version__}


@routes.head("/readyz", include_in_schema=False)
@routes.get("/readyz", operation_id="get_readiness", summary="Whether the store answers as well")
def get_readiness(request: Request) -> JSONResponse:
    station: Station = request.app.state.station
    try:
        station.now()
    except StationmasterError as problem:
        return JSONResponse({"ready": False, "problem": str(problem)}, status_code=503)
    return JSONResponse({"ready": True, "uploads": request.app.state.takes_uploads})
