"""One installation in a folder, behind its HTTP service: faces see it through the API only."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from stationmaster.api.app import Service
from stationmaster.station.http.station import HttpStation
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.tokens import NewToken
from tests.support.jobs.local_world import LocalWorld
from tests.support.servers.api_server import serving


class HttpWorld(LocalWorld):
    """The same world; `station` asks a real server, as an administrator."""

    def __enter__(self) -> Self:
        super().__enter__()
        with ExitStack() as opened:
            service = Service(station=self._local, doorkeeper=LocalDoorkeeper(self._local.store))
            self.url = opened.enter_context(serving(service))
            token = self._local.tokens.create(NewToken(name="test", user="me")).secret
            station = HttpStation(self.url, token)
            opened.callback(station.close)
            self.station = station
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *about: object) -> None:
        self._opened.close()
        super().__exit__(*about)
