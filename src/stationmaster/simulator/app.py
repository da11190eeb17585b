"""The HTTP application: the routes behind the gate, and refusals in the service's shapes."""

from __future__ import annotations

import time
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.cloud import Cloud
from stationmaster.simulator.gate import App, Connections, Gate
from stationmaster.simulator.rate_limits import RateLimits
from stationmaster.simulator.refusals import Refusal
from stationmaster.simulator.routes import account, control, instances, keys, offers


def build_app(cloud: Cloud, *, rate_limit_scale: float = 0.0, connections: Connections | None = None) -> App:
    """The simulator's API over this cloud; `connections` is needed only for answers that get lost."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.cloud = cloud
    app.state.results = {}
    for part in (offers, keys, instances, account, control):
        app.include_router(part.router)
    app.add_exception_handler(Refusal, _refuse)
    app.add_exception_handler(ConfigInvalid, _explain)
    app.add_exception_handler(HTTPException, _not_here)
    app.add_exception_handler(RequestValidationError, _not_understood)
    limits = RateLimits(scale=rate_limit_scale, monotonic=time.monotonic)
    return Gate(app, cloud=cloud, limits=limits, connections=connections or Connections())


async def _refuse(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, Refusal)
    return JSONResponse(problem.body, status_code=problem.status)


async def _explain(request: Request, problem: Exception) -> JSONResponse:
    hint = problem.hint if isinstance(problem, ConfigInvalid) else None
    return _error(400, "invalid_fault", str(problem), hint=hint)


async def _not_here(request: Request, problem: Exception) -> JSONResponse:
    status = problem.status_code if isinstance(problem, HTTPException) else 404
    return _error(status, "not_found", f"{request.method} {request.url.path} is not part of the simulator")


async def _not_understood(request: Request, problem: Exception) -> JSONResponse:
    return _error(400, "invalid_args", f"{request.url.path} is not a valid path or query")


def _error(status: int, code: str, message: str, **extra: Any) -> JSONResponse:
    return JSONResponse({"success": False, "error": code, "msg": message, **extra}, status_code=status)
