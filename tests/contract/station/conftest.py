"""Stations under test: another implementation joins the suite by one entry in STATIONS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.jobs.http_world import HttpWorld, TwoServersWorld
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

STATIONS: dict[str, type[LocalWorld]] = {
    "local": LocalWorld,
    "http": HttpWorld,
    "two-servers-postgresql": TwoServersWorld,
}

OpenWorld = Callable[..., LocalWorld]


def opener(request: pytest.FixtureRequest, folder: Path) -> OpenWorld:
    """Opens the station that the fixture's parameter names, on one store however often it is opened."""
    kind = STATIONS[request.param]
    if "postgresql" not in request.param:
        return lambda **environ: kind(folder, **environ)
    url = request.getfixturevalue("postgres_server").new_store()
    return lambda **environ: kind(folder, STATIONMASTER_DATABASE_URL=url, **environ)


@pytest.fixture(params=sorted(STATIONS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalWorld]:
    """A station with a home of its own, and the worker that takes its jobs further."""
    with opener(request, tmp_path)() as opened:
        yield opened


@pytest.fixture(params=sorted(STATIONS))
def open_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenWorld]:
    """Opens the station of one home with the environment that a test names, again and again if need be."""
    with ExitStack() as opened:
        make = opener(request, tmp_path)
        yield lambda **environ: opened.enter_context(make(**environ))


@pytest.fixture
def local_world(tmp_path: Path) -> Iterator[LocalWorld]:
    """The station of this computer, for what is not asked of a server."""
    with LocalWorld(tmp_path) as opened:
        yield opened


@pytest.fixture
def open_local_world(tmp_path: Path) -> Iterator[OpenWorld]:
    """As `open_world`, for what is not asked of a server."""
    with ExitStack() as opened:
        yield lambda **environ: opened.enter_context(LocalWorld(tmp_path, **environ))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module", params=sorted(STATIONS))
def finished(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pictures: Path
) -> Iterator[LocalWorld]:
    """A station whose job `done` has been trained to the end; tests of reading share it."""
    with opener(request, tmp_path_factory.mktemp("finished"))() as opened:
        submit(opened.station, opened.request(pictures, id="done", name="cats"))
        opened.work_until_ended("done")
        yield opened
