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

USUAL = ("http", "local")
"""Whom a test without a mark asks: the answer of the local station, and the same one after its way over HTTP."""

every_station = pytest.mark.stations(*STATIONS)
"""For what another database or another server could change: queries, locks, and whatever a server might remember."""

over_http = pytest.mark.stations("http")
"""For what a worker does: the job is the same whoever asked for it, and this is the longest way to ask."""
