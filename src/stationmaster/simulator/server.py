"""Runs a simulator: cloud, machines, HTTP server and clock, opened and closed together."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from uvicorn.protocols.http.h11_impl import H11Protocol

from stationmaster.errors import ConfigInvalid
from stationmaster.money import from_dollars
from stationmaster.simulator import running
from stationmaster.simulator.api_refusals import ApiRefusal
from stationmaster.simulator.clock import Clock
from stationmaster.simulator.cloud import Cloud, Pace, log
from stationmaster.simulator.faults import FaultPlan, InjectedFault
from stationmaster.simulator.listening import stop_listening
from stationmaster.simulator.machines.api_only import ApiOnlyMachines
from stationmaster.simulator.machines.base import Machines
from stationmaster.simulator.machines.namespaces import NamespaceMachines
from stationmaster.simulator.machines.process import ProcessMachines
from stationmaster.simulator.market import Market
from stationmaster.simulator.middleware import App, Connections, FaultMiddleware
from stationmaster.simulator.rate_limits import RateLimits
from stationmaster.simulator.records import Records
from stationmaster.simulator.routes import account, control, instances, keys, offers

BACKENDS = ("process", "namespaces", "paper")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings:
    """Settings of a simulator; it only writes to `home`."""

    home: Path
    api_key: str
    port: int = 0
    seed: int = 1
    backend: str = "process"
    faults: tuple[InjectedFault, ...] = ()
    credit_usd: float = 100.0
    hosts: int = 120
    market_period_seconds: float = 600.0
    clock_speed: float = 1.0
    rate_limit_scale: float = 1.0
    pace: Pace = field(default_factory=Pace)
    path: str = "/usr/local/bin:/usr/bin:/bin"
    keep: bool = False
    """Accounts, instances and machines survive this simulator; the next one on the same home adopts them."""


class Simulator:
    """`async with Simulator(settings) as simulator:` serves at `simulator.url` until the block ends."""

    def __init__(self, settings: SimulatorSettings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._connections = Connections()
        self._clock = clock or Clock(time.time, speed=settings.clock_speed)
        self._machines = _machines(settings)
        self._sockets: list[socket.socket] = []
        self._loops: list[asyncio.Task[None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return int(self._sockets[0].getsockname()[1])

    async def __aenter__(self) -> Simulator:
        settings = self._settings
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._sockets = [_listen("127.0.0.1", settings.port)]
        await self._machines.open(api_port=self.port, fresh=not settings.keep)
        self._sockets += [_listen(host, self.port) for host in self._machines.api_hosts]
        self._records = Records(settings.home / "simulator.db" if settings.keep else None)
        self.cloud = self._cloud()
        self.cloud.open_account("first", settings.api_key, from_dollars(settings.credit_usd))
        await running.adopt_all(self.cloud)
        await self._serve()
        self._loops.append(asyncio.create_task(running.run(self.cloud)))
        log.info("simulator.ready", url=self.url, backend=settings.backend, seed=settings.seed)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        await self._serving
        self._connections.cut_all()
        for task in (*self._loops, *self.cloud.tasks):
            task.cancel()
        await asyncio.gather(*self._loops, *self.cloud.tasks, return_exceptions=True)
        await self._machines.close(keep=self._settings.keep)
        self._records.close()
        for listening in self._sockets:
            listening.close()

    def _cloud(self) -> Cloud:
        settings = self._settings
        return Cloud(
            clock=self._clock,
            market=Market(seed=settings.seed, hosts=settings.hosts, period_seconds=settings.market_period_seconds),
            machines=self._machines,
            records=self._records,
            faults=FaultPlan(settings.faults, seed=settings.seed, started_at=self._clock.now()),
            pace=settings.pace,
            seed=settings.seed,
        )

    async def _serve(self) -> None:
        scale = self._settings.rate_limit_scale
        app = _build_app(self.cloud, rate_limit_scale=scale, connections=self._connections)
        config = uvicorn.Config(
            app,
            http=_protocol(self._connections),
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=self._sockets))
        await self._server.ready.wait()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and with an event that is set when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            await stop_listening(server)
        await super().shutdown(sockets)


def _protocol(connections: Connections) -> type[asyncio.Protocol]:
    class Protocol(H11Protocol):
        """HTTP whose connections the middleware can drop."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._peer = tuple(transport.get_extra_info("peername")[:2])
            connections.opened(self._peer, transport)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.closed(self._peer)
            super().connection_lost(exc)

    return Protocol


def _machines(settings: SimulatorSettings) -> Machines:
    folder = settings.home / "machines"
    match settings.backend:
        case "process":
            return ProcessMachines(folder, path=settings.path)
        case "namespaces":
            return NamespaceMachines(folder)
        case "paper":
            return ApiOnlyMachines()
    raise ConfigInvalid(f"unknown simulator back end {settings.backend!r}", hint=f"use one of {', '.join(BACKENDS)}")


def _listen(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as problem:
        listening.close()
        raise ConfigInvalid(
            f"cannot listen on port {port} of {host}: {problem.strerror}", hint="choose another port with --port"
        ) from problem
    listening.listen(128)
    return listening


def _build_app(cloud: Cloud, *, rate_limit_scale: float = 0.0, connections: Connections | None = None) -> App:
    """The simulator's API for this cloud; `connections` is only needed to drop answers."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.state.cloud = cloud
    app.state.results = {}
    for part in (offers, keys, instances, account, control):
        app.include_router(part.router)
    app.add_exception_handler(ApiRefusal, _refuse)
    app.add_exception_handler(ConfigInvalid, _explain)
    app.add_exception_handler(HTTPException, _not_here)
    app.add_exception_handler(RequestValidationError, _not_understood)
    limits = RateLimits(scale=rate_limit_scale, monotonic=time.monotonic)
    return FaultMiddleware(app, cloud=cloud, limits=limits, connections=connections or Connections())


async def _refuse(request: Request, problem: Exception) -> JSONResponse:
    assert isinstance(problem, ApiRefusal)
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
