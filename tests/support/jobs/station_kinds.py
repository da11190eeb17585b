"""The stations that a promise of `tests/contract/station` is kept by, and which of them a test asks."""

from __future__ import annotations

import pytest

from tests.support.jobs.http_world import HttpWorld, TwoServersWorld
from tests.support.jobs.local_world import LocalWorld

STATIONS: dict[str, type[LocalWorld]] = {
    "http": HttpWorld,
    "local": LocalWorld,
    "two-servers-postgresql": TwoServersWorld,
}
"""Their order is that of the parameters, so that tests of one station follow each other."""

USUAL = ("http",)
"""Whom a test without a mark asks: the server, whose answer is that of the local station behind it."""

every_station = pytest.mark.stations(*STATIONS)
"""For what another database or another server could change: queries, locks, and whatever a server might remember."""

here_and_over_http = pytest.mark.stations("http", "local")
"""For what the client of a server does in another way than the local station: files that it sends or fetches."""
