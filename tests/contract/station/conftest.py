"""Stations under test: another implementation joins the suite by one entry in STATIONS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.saved_folder import SavedFolder
from tests.support.jobs.station_kinds import STATIONS, USUAL
from tests.support.jobs.submitting import submit

OpenWorld = Callable[..., LocalWorld]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "station_kind" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("stations")
        metafunc.parametrize("station_kind", USUAL if mark is None else mark.args, scope="module")


def opener(request: pytest.FixtureRequest, kind: str, folder: Path) -> OpenWorld:
    """Opens a station of this kind, on one store however often it is opened."""
    make = STATIONS[kind]
    if "postgresql" not in kind:
        return lambda **environ: make(folder, **environ)
    url = request.getfixturevalue("postgres_server").new_store()
    return lambda **environ: make(folder, STATIONMASTER_DATABASE_URL=url, **environ)


@pytest.fixture
def world(request: pytest.FixtureRequest, station_kind: str, tmp_path: Path) -> Iterator[LocalWorld]:
    """A station with a home of its own, and the worker that takes its jobs further."""
    with opener(request, station_kind, tmp_path)() as opened:
        yield opened


@pytest.fixture(scope="module")
def untouched(
    request: pytest.FixtureRequest, station_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalWorld]:
    """A station that a file's tests share, because none of them leaves a job or a user in it."""
    with opener(request, station_kind, tmp_path_factory.mktemp("untouched"))() as opened:
        yield opened
        assert opened.station.jobs.listed(with_ended=True) == []
        assert opened.station.users.listed() == []


@pytest.fixture
def open_world(request: pytest.FixtureRequest, station_kind: str, tmp_path: Path) -> Iterator[OpenWorld]:
    """Opens the station of one home with the environment that a test names, again and again if need be."""
    with ExitStack() as opened:
        make = opener(request, station_kind, tmp_path)
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


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> SavedFolder:
    """An installation on SQLite whose job `done` has been trained to the end."""
    with LocalWorld(tmp_path_factory.mktemp("trained")) as opened:
        _train(opened, pictures)
    return SavedFolder(opened.folder, tmp_path_factory.mktemp("saved") / "trained")


@pytest.fixture(scope="module")
def finished(
    request: pytest.FixtureRequest, station_kind: str, tmp_path_factory: pytest.TempPathFactory, pictures: Path
) -> Iterator[LocalWorld]:
    """A station whose job `done` has been trained to the end; tests of reading share it."""
    if "postgresql" in station_kind:
        with opener(request, station_kind, tmp_path_factory.mktemp("finished"))() as opened:
            _train(opened, pictures)
            yield opened
    else:
        saved: SavedFolder = request.getfixturevalue("trained")
        with opener(request, station_kind, saved.put_back())() as opened:
            yield opened


def _train(world: LocalWorld, pictures: Path) -> None:
    submit(world.station, world.request(pictures, id="done", name="cats"))
    world.work_until_ended("done")
