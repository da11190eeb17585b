"""The HTTP service's routes, put together from what is handed in."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from stationmaster import __version__
from stationmaster.api.uploads import upload_routes
from stationmaster.control.destinations.upload_tickets import UploadTickets
from stationmaster.errors import StationmasterError
from stationmaster.store.store import Store


def build_app(store: Store, *, tickets: UploadTickets | None) -> FastAPI:
    """The HTTP service; without `tickets` it has no routes for uploads by machines."""
    app = FastAPI(title="Stationmaster", version=__version__, docs_url=None, redoc_url=None)
    app.add_exception_handler(StationmasterError, _refused)

    # HEAD as well: that is how many load balancers ask.
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", summary="The process answers")
    def healthz() -> dict[str, object]:
        return {"ok": True, "version": __version__}

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", summary="The store answers as well")
    def readyz() -> JSONResponse:
        try:
            store.now()
        except StationmasterError as problem:
            return JSONResponse({"ready": False, "problem": str(problem)}, status_code=503)
        return JSONResponse({"ready": True, "uploads": tickets is not None})

    if tickets is not None:
        app.include_router(upload_routes(tickets))
    return app


def _refused(_request: Request, problem: Exception) -> JSONResponse:
    """The one place where errors become answers."""
    assert isinstance(problem, StationmasterError)
    headers = {"WWW-Authenticate": "Bearer"} if problem.http_status == HTTPStatus.UNAUTHORIZED else None
    return JSONResponse({"error": str(problem), "hint": problem.hint}, status_code=problem.http_status, headers=headers)
