"""A store with users and tokens behind a real server, for tests of what a request passes before a route."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from stationmaster.api.app import Service
from stationmaster.api.connections import ConnectionLimits
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.page_files import FOLDER
from stationmaster.config import load_settings
from stationmaster.model import Right
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.station import LocalStation
from stationmaster.station.tokens import NewToken
from tests.support.jobs.prepared_store import put_new_store
from tests.support.servers.api_server import serving


@dataclass(frozen=True, slots=True, kw_only=True)
class GateBench:
    """The single user's tokens: one with all rights, one that only reads."""

    station: LocalStation
    url: str
    token: str
    reading_token: str

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        sent = {**headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
        # There is no TLS here, and loading certificates takes long.
        return httpx.Client(base_url=self.url, headers=sent, timeout=60, verify=False)

    def code(self) -> str:
        return self.station.tokens.create_link("me").code


@contextmanager
def gate_bench(
    home: Path, *, gate: GatePolicy | None = None, limits: ConnectionLimits | None = None, page: Path = FOLDER
) -> Iterator[GateBench]:
    if not (path := home / "stationmaster.db").exists():
        put_new_store(path)
    station = LocalStation(load_settings({"STATIONMASTER_HOME": str(home)}, folder=home), {})
    service = Service(station=station, doorkeeper=LocalDoorkeeper(station.store), page=page)
    try:
        with serving(service, gate=gate, limits=limits) as url:
            yield GateBench(
                station=station,
                url=url,
                token=station.tokens.create(NewToken(name="all", user="me")).secret,
                reading_token=station.tokens.create(
                    NewToken(name="reads", user="me", rights=frozenset({Right.READ}))
                ).secret,
            )
    finally:
        station.close()
