"""When workers die for good: the sweeper, and then the machine's own guard, end the bill and keep the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stationmaster.model import Outcome, State
from stationmaster.simulator.harness import simulator_thread
from stationmaster.store.tables import jobs
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation, holding
from tests.support.vast.simulated_vast import quick_settings

_LONG = {"steps": 3000, "pace": 0.1}


@pytest.fixture(scope="module")
def forge() -> Iterator[StormForge]:
    with StormForge() as forge:
        yield forge


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        yield url


@pytest.fixture
def hold() -> Iterator[Hold]:
    with holding() as hold:
        yield hold


def begin(station: StormStation, folder: Path, job_id: str = "job-1", **fields: Any) -> int:
    """A job whose training has saved something; the worker that brought it there is returned alive."""
    station.submit(storm_job(job_id, a_tiny_dataset(folder / "dataset"), journal=station.journal, **_LONG | fields))
    worker = station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job(job_id), "a first checkpoint")
    return worker


def gpu_bill(station: StormStation) -> float:
    return float(sum(machine["cost"]["gpu"] for machine in station.truth()))


def test_with_every_worker_dead_the_sweeper_stops_the_machine_at_the_limit_and_a_later_worker_fetches_the_model(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge))
    worker = begin(station, tmp_path, max_seconds=600.0)
    station.kill(worker, "worker")
    _reach_the_limit(station, "job-1")
    sweeper = station.start("sweeper")
    station.until(lambda: station.alive()[0]["actual_status"] == "exited", "the stop")
    station.customer.advance(3600)
    billed = gpu_bill(station)
    station.customer.advance(3600)
    assert gpu_bill(station) == billed, "a stopped machine's GPU is billed"
    station.kill(sweeper, "sweeper")
    station.start("worker")
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    ended = station.job("job-1")
    assert ended.outcome is Outcome.INCOMPLETE
    assert Path(ended.model.address or "").is_file(), "the model was lost"
    assert station.alive() == []
    station.check()


def test_what_is_safe_is_destroyed_by_the_sweeper_alone(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge))
    station.customer.arm("lying_destroy", times=100_000)
    spec = storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=station.journal, steps=5)
    station.submit(spec)
    worker = station.start("worker")
    station.until(lambda: station.job("job-1").outcome is Outcome.COMPLETED, "the end of the training")
    station.kill(worker, "worker")
    station.customer.http.delete("/simulator/faults")
    assert station.alive()
    _reach_the_limit(station, "job-1")
    sweeper = station.start("sweeper")
    station.until(lambda: station.alive() == [], "the end of the machine")
    station.kill(sweeper, "sweeper")


def test_with_home_gone_for_good_the_guard_stops_the_machine_and_the_model_stays_on_its_disk(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, STATIONMASTER_VASTAI__GUARD_IDLE="8"))
    worker = begin(station, tmp_path, steps=60)
    station.kill(worker, "worker")
    machine = station.alive()[0]
    station.until(lambda: station.alive()[0]["actual_status"] == "exited", "the guard's stop")
    disk = tmp_path / "simulator" / "machines" / str(machine["id"])
    models = [path for path in disk.rglob("job-1.safetensors") if path.stat().st_size > 1000]
    assert models, "the model is not on the disk"
    assert station.alive()[0]["processes"] == []
    station.start("worker")
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    ended = station.job("job-1")
    assert Path(ended.model.address or "").is_file()
    assert ended.attempt == 1, "another machine was rented although the model lay on this one"
    station.check()


def _reach_the_limit(station: StormStation, job_id: str) -> None:
    """The job's hard limit has just passed, as if hours had."""
    with station.store.database.write() as connection:
        connection.execute(sa.update(jobs).where(jobs.c.id == job_id).values(deadline_at=station.store.now() - 1.0))
