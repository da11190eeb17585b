"""Processes that are stopped and go on later, and a restarted database: nobody believes what is no longer so."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.model import DatasetRef, RentalState, State
from tests.support.chaos.loopback import JOB, LoopbackStation, WorkerForge, is_alive, is_stopped
from tests.support.chaos.machines import fates
from tests.support.chaos.specs import a_picture_dataset
from tests.support.chaos.worker import REFUSED
from tests.support.servers.postgres import PostgresServer

SHORT_LEASE = {"lease_seconds": 2.0, "renew_seconds": 0.3, "look_seconds": 0.2}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetRef:
    return a_picture_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.fixture
def on_postgres(
    tmp_path: Path, forge: WorkerForge, dataset: DatasetRef, postgres_server: PostgresServer
) -> Iterator[LoopbackStation]:
    station = LoopbackStation(tmp_path / "home", dataset, forge, url=postgres_server.new_database())
    yield station
    station.close()


@pytest.fixture
def on_sqlite(tmp_path: Path, forge: WorkerForge, dataset: DatasetRef) -> Iterator[LoopbackStation]:
    station = LoopbackStation(tmp_path / "home", dataset, forge)
    yield station
    station.close()


@pytest.mark.parametrize("wakes_in", [State.TRANSFERRING_DATA, State.ENDED])
def test_a_worker_stopped_before_its_create_makes_at_most_a_surplus_machine(
    wakes_in: State, on_postgres: LoopbackStation
) -> None:
    """It wakes with the request in its hand when another has rented long since: one machine too many, never used."""
    station = on_postgres
    sleeper = station.start_worker(stop_at="before provider.create", **SHORT_LEASE)
    station.until(lambda: is_stopped(sleeper), "the worker's sleep")
    other = station.start_worker(**SHORT_LEASE, stays=True)
    station.until(lambda: has_reached(station, wakes_in), f"a job in {wakes_in}")
    os.kill(sleeper, signal.SIGCONT)
    station.until(lambda: len(fates(station.home)) == 2, "the sleeper's machine")
    surplus = fates(station.home)[-1].provider_id
    station.until(lambda: everything_is_over(station, machines=2), "the end of job and machines")
    leave(station, told=other, by_itself=sleeper)
    station.check()
    lines = {line.rental_label: line for line in station.store.costs.of_job(JOB)}
    assert any(label.endswith(f"#{surplus}") for label in lines), lines
    assert len(lines) == 2
    assert [fate.used for fate in fates(station.home)] == [True, False]


def test_a_job_goes_on_when_postgresql_is_restarted(
    on_postgres: LoopbackStation, postgres_server: PostgresServer
) -> None:
    station = on_postgres
    worker = station.start_worker(**SHORT_LEASE)
    station.until(lambda: station.state() is State.EXECUTING, "a running training")
    postgres_server.restart()
    station.until(lambda: not is_alive(worker), "the worker's end, with the job's")
    assert station.exit_status(worker) == "0", station.log()[-4000:]
    station.check()


def test_on_sqlite_a_second_worker_refuses_while_the_first_is_stopped(on_sqlite: LoopbackStation) -> None:
    station = on_sqlite
    first = station.start_worker(stop_at="before provider.create", **SHORT_LEASE)
    station.until(lambda: is_stopped(first), "the first worker's sleep")
    second = station.start_worker(lock_patience_seconds=0.0, **SHORT_LEASE)
    station.until(lambda: not is_alive(second), "the second worker's refusal")
    assert station.exit_status(second) == str(REFUSED)
    os.kill(first, signal.SIGCONT)
    station.until(lambda: not is_alive(first), "the first worker's end, with the job's")
    assert station.exit_status(first) == "0", station.log()[-4000:]
    station.check()
    assert len(fates(station.home)) == 1


def has_reached(station: LoopbackStation, state: State) -> bool:
    """Whether the job is in that state or beyond: on a busy computer it may have left it between two looks."""
    states = list(State)
    return states.index(station.state()) >= states.index(state)


def everything_is_over(station: LoopbackStation, *, machines: int) -> bool:
    rentals = station.store.rentals.of_job(JOB)
    gone = [rental.state for rental in rentals].count(RentalState.GONE)
    return station.state() is State.ENDED and gone == len(rentals) == machines


def leave(station: LoopbackStation, *, told: int, by_itself: int) -> None:
    """One of them would stay; the other leaves when nothing is left to do, and a signal then might come too late."""
    os.kill(told, signal.SIGTERM)
    workers = (told, by_itself)
    station.until(lambda: not any(map(is_alive, workers)), "the workers' leaving")
    assert [station.exit_status(pid) for pid in workers] == ["0"] * len(workers), station.log()[-4000:]
