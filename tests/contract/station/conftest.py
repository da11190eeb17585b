"""Stations under test: another implementation joins the suite by one entry in STATIONS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest

from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.submitting import submit

Opener = Callable[..., AbstractContextManager[LocalWorld]]

STATIONS: dict[str, Opener] = {"local": LocalWorld, "http": HttpWorld}


@pytest.fixture(params=sorted(STATIONS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalWorld]:
    """A station with a home of its own, and the worker that takes its jobs further."""
    with STATIONS[request.param](tmp_path) as opened:
        yield opened


@pytest.fixture(params=sorted(STATIONS))
def open_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., LocalWorld]]:
    """Opens the station of one home with the environment that a test names, again and again if need be."""
    with ExitStack() as opened:
        yield lambda **environ: opened.enter_context(STATIONS[request.param](tmp_path, **environ))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module", params=sorted(STATIONS))
def finished(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pictures: Path
) -> Iterator[LocalWorld]:
    """A station whose job `done` has been trained to the end; tests of reading share it."""
    with STATIONS[request.param](tmp_path_factory.mktemp("finished")) as opened:
        submit(opened.station, opened.request(pictures, id="done", name="cats"))
        opened.work_until_ended("done")
        yield opened
