"""The HTTP service: its routes, and what every request passes before them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, FastAPI

from stationmaster import __version__
from stationmaster.api.description import DescribedApp
from stationmaster.api.gate.chain import add_gate
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.live.hub import Hub, LiveLimits
from stationmaster.api.page_files import FOLDER, PageFiles
from stationmaster.api.problems import add_problem_handlers
from stationmaster.api.routes import (
    adoptions,
    analyses,
    artifacts,
    audit,
    checks,
    costs,
    credits,
    dataset_files,
    dataset_pictures,
    datasets,
    health,
    history,
    inbox,
    instances,
    jobs,
    machine_metrics,
    metrics,
    models,
    offers,
    overview,
    pages,
    proposals,
    recipes,
    server,
    session,
    tokens,
    uploads,
    users,
)
from stationmaster.control.destinations.upload_tickets import UploadTickets
from stationmaster.station.base import Station
from stationmaster.station.doorkeeper import Doorkeeper
from stationmaster.station.news import News
from stationmaster.station.owned.allowances import NOTHING_MORE, Allowances

ROUTES: tuple[APIRouter, ...] = (
    server.routes,
    inbox.routes,
    audit.routes,
    credits.routes,
    history.routes,
    jobs.routes,
    overview.routes,
    analyses.routes,
    artifacts.routes,
    metrics.routes,
    machine_metrics.routes,
    models.routes,
    costs.routes,
    tokens.routes,
    users.routes,
    proposals.routes,
    adoptions.routes,
    offers.routes,
    recipes.routes,
    datasets.routes,
    dataset_files.routes,
    dataset_pictures.routes,
    instances.routes,
    checks.routes,
)
"""The routes that answer from the station, one entry per noun."""

_OPEN = GatePolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the routes answer from."""

    station: Station
    doorkeeper: Doorkeeper
    allowances: Allowances = NOTHING_MORE  # what users may choose
    gate: GatePolicy = _OPEN
    tickets: UploadTickets | None = None  # without them there are no routes for uploads by machines
    news: News | None = None  # without them there are no live streams
    live_limits: LiveLimits | None = None
    page: Path = FOLDER  # the built page


def build_app(service: Service) -> FastAPI:
    app = DescribedApp(
        title="Stationmaster",
        version=__version__,
        description="Runs trainings on rented GPUs and downloads the models.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.station = service.station
    app.state.allowances = service.allowances
    app.state.doorkeeper = service.doorkeeper
    app.state.is_https = service.gate.is_https
    app.state.live = None if service.news is None else Hub(service.news, service.live_limits)
    app.state.page = PageFiles(service.page)
    app.state.takes_uploads = service.tickets is not None
    add_problem_handlers(app)
    _add_routes(app, health.routes, *ROUTES)
    if service.tickets is not None:
        _add_routes(app, uploads.upload_routes(service.tickets))
    _add_routes(app, session.routes, pages.routes)
    add_gate(app, service.gate, service.doorkeeper)
    return app


def _add_routes(app: FastAPI, *routers: APIRouter) -> None:
    """Add the routes as they are: `include_router` would build each of them again, at the first request."""
    for router in routers:
        app.router.routes.extend(router.routes)
