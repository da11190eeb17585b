"""One installation in a folder, behind its HTTP service: faces see it through the API only."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Self

import httpx

from stationmaster.api.app import Service
from stationmaster.station.http.station import HttpStation
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.news import LocalNews
from stationmaster.station.local.station import LocalStation
from stationmaster.station.owned.allowances import Allowances
from stationmaster.station.tokens import NewToken
from tests.support.jobs.local_world import LocalWorld
from tests.support.servers.api_server import serving


class HttpWorld(LocalWorld):
    """The same world; `station` asks real servers in turn, as an administrator."""

    servers = 1

    def __enter__(self) -> Self:
        super().__enter__()
        with ExitStack() as opened:
            self.urls = [self._serve(opened) for _ in range(self.servers)]
            token = self.local.tokens.create(NewToken(name="test", user="me")).secret
            station = HttpStation(self.urls[0], token, transport=_InTurn(self.urls))
            opened.callback(station.close)
            self.station = station
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *about: object) -> None:
        self._opened.close()
        super().__exit__(*about)

    def actor(self, given: str) -> str:
        """A server believes nobody: the actor is whoever the token is of."""
        return "me"

    def _serve(self, opened: ExitStack) -> str:
        """A server with a station of its own: the servers share the store and the home, and nothing else."""
        station = LocalStation(self.settings, self.environ)
        opened.callback(station.close)
        news = LocalNews(station.store)
        opened.callback(news.close)
        service = Service(
            station=station,
            doorkeeper=LocalDoorkeeper(station.store),
            allowances=Allowances.of(self.settings),
            news=news,
        )
        return opened.enter_context(serving(service))


class TwoServersWorld(HttpWorld):
    """Two servers of one store; every request goes to the other one than the request before."""

    servers = 2


class _InTurn(httpx.BaseTransport):
    def __init__(self, urls: list[str]) -> None:
        self._urls = itertools.cycle(httpx.URL(url) for url in urls)
        self._transport = httpx.HTTPTransport(verify=False)  # there is no TLS here; loading certificates takes long

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        chosen = next(self._urls)
        request.url = request.url.copy_with(host=chosen.host, port=chosen.port)
        request.headers["Host"] = f"{chosen.host}:{chosen.port}"
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()
