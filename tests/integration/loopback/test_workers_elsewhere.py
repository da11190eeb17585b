"""Workers of a shared store on other hosts: a command starts none of its own while they serve its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.station.local.station import LocalStation
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.command_line import stationmaster
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.spine_values import spec
from tests.support.servers.postgres import PostgresServer


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new_store()


@pytest.fixture
def elsewhere(url: str) -> Iterator[Store]:
    """The store as a worker on another host sees it."""
    with closing(Store(Database(url))) as store:
        yield store


def announce(store: Store, *providers: str, seconds: float = 600.0) -> None:
    store.workers.announce("other-host-1", version="1.0", providers=providers, seconds=seconds)


def test_a_job_that_a_worker_elsewhere_serves_starts_none_here(url: str, elsewhere: Store, tmp_path: Path) -> None:
    announce(elsewhere, "loopback")
    environ = {"STATIONMASTER_HOME": str(tmp_path / "home"), "STATIONMASTER_DATABASE_URL": url}
    pictures = write_pictures(tmp_path / "pictures")
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "mine", "--yes")
    done = stationmaster(*words, environ=environ)
    assert done.returncode == 0, done.stderr
    assert "worker started" not in done.stdout + done.stderr
    assert not (tmp_path / "home" / "worker.lock").exists()
    assert elsewhere.jobs.get("mine").spec.provider == "loopback"


def test_a_worker_elsewhere_counts_while_it_lives_and_has_the_provider(
    url: str, elsewhere: Store, tmp_path: Path
) -> None:
    with LocalWorld(tmp_path, STATIONMASTER_DATABASE_URL=url) as world:
        assert isinstance(world.station, LocalStation)
        processes = world.station.processes
        elsewhere.jobs.submit(spec("a", provider="loopback"))
        assert not processes.is_served_elsewhere(), "there is none"
        announce(elsewhere, "vastai")
        assert not processes.is_served_elsewhere(), "it has another provider"
        announce(elsewhere, "vastai", "loopback")
        assert processes.is_served_elsewhere()
        announce(elsewhere, "loopback", seconds=-1.0)
        assert not processes.is_served_elsewhere(), "it has been silent for too long"
