"""A machine that lies is not paid past the bound: from a stop, or the limit, to the end of the GPU's bill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from stationmaster.lifecycle import is_parked
from stationmaster.model import Desired, Outcome, State
from stationmaster.simulator.harness import simulator_thread
from stationmaster.store.tables import jobs
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation, holding
from tests.support.machines.lying_machine import Lies, corrupt
from tests.support.vast.simulated_vast import quick_settings

FETCH_SECONDS, CLOSING_SECONDS = 12.0, 24.0
BOUND_SECONDS = FETCH_SECONDS + CLOSING_SECONDS
SHORT = {
    "STATIONMASTER_LIMITS__FETCH": f"{FETCH_SECONDS}s",
    "STATIONMASTER_LIMITS__CLOSING": f"{CLOSING_SECONDS}s",
    "STATIONMASTER_SSH__ANSWER": "5s",
}
ALWAYS_MORE: Lies = {"status": {"set": {"more": True, "finished": None}}}
DEAF: Lies = {"stop": {"as": "status"}}
RUDE: Lies = {"stop": {"instead": "no"}}
SILENT: Lies = {"inventory": {"sleep": 600}, "stop": {"sleep": 600}}


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


def lied_to(tmp_path: Path, station: StormStation, lies: Lies, **policy: float) -> Path:
    """A job in the middle of its training, on a machine that begins to lie; the job's folder there."""
    station.submit(storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=station.journal, steps=3000))
    station.start("worker", **policy)
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    (machine,) = station.alive()
    return corrupt(tmp_path / "simulator" / "machines" / str(machine["id"]), lies)


def billed_seconds(station: StormStation) -> float:
    """How long the simulator has billed for GPUs so far."""
    return float(sum(machine["gpu_seconds"] for machine in station.truth()))


def bills_no_more(station: StormStation) -> bool:
    return all(not machine["exists"] or machine["actual_status"] == "exited" for machine in station.truth())


def reach_the_limit(station: StormStation) -> None:
    """The job's hard limit has just passed, as if hours had."""
    with station.store.database.write() as connection:
        connection.execute(sa.update(jobs).where(jobs.c.id == "job-1").values(deadline_at=station.store.now()))


@pytest.mark.parametrize("lies", [ALWAYS_MORE, DEAF, RUDE], ids=["always more", "deaf", "rude"])
def test_a_stop_ends_the_bill_of_a_machine_that_says_it_is_not_done(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold, lies: Lies
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **SHORT))
    lied_to(tmp_path, station, lies)
    before = billed_seconds(station)
    station.store.jobs.desire("job-1", Desired.STOP)
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    assert billed_seconds(station) - before <= BOUND_SECONDS
    ended = station.job("job-1")
    assert ended.outcome is Outcome.INCOMPLETE
    assert Path(ended.memory["model"]).is_file(), "the model was not fetched all the same"
    station.check()


def test_at_the_limit_a_model_that_is_withheld_keeps_its_disk_and_the_gpu_bills_no_more(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **SHORT, STATIONMASTER_SWEEP__ABANDON_AFTER="10s"))
    lied_to(tmp_path, station, {**ALWAYS_MORE, **SILENT})
    before = billed_seconds(station)
    reach_the_limit(station)
    station.until(lambda: bills_no_more(station), "the end of the GPU's bill")
    assert billed_seconds(station) - before <= BOUND_SECONDS
    station.until(lambda: is_parked(station.job("job-1")), "the word to people")
    assert [alert.kind for alert in station.store.alerts.open("job-1")].count("parked") == 1
    assert station.alive(), "the disk with the model is gone"
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end after nobody came")
    assert billed_seconds(station) - before <= BOUND_SECONDS
    assert "its model is lost" in str(station.job("job-1").explanation)
    assert [event.kind for event in station.store.events.of_job("job-1")].count("machine_started") == 0
    station.check()


def test_a_person_s_further_stop_starts_the_machine_once_more_and_brings_the_model_home(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **SHORT))
    folder = lied_to(tmp_path, station, SILENT)
    station.store.jobs.desire("job-1", Desired.STOP)
    station.until(lambda: is_parked(station.job("job-1")) and bills_no_more(station), "the stopped machine")
    (folder / "honest.pyz").replace(folder / "trackside.pyz")
    station.store.jobs.desire("job-1", Desired.STOP)
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    assert Path(station.job("job-1").memory["model"]).is_file()
    station.check()


def test_a_machine_that_something_stops_again_and_again_is_not_started_for_ever(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **SHORT))
    lied_to(tmp_path, station, SILENT, queued_start_seconds=0.2)
    (machine,) = station.alive()

    def stopped_once_more() -> bool:
        if any(each["actual_status"] == "running" for each in station.alive()):
            station.customer.put(int(machine["id"]), state="stopped")
        return is_parked(station.job("job-1"))

    station.until(stopped_once_more, "that it is left as it is")
    assert [event.kind for event in station.store.events.of_job("job-1")].count("machine_started") == 3
    station.store.jobs.desire("job-1", Desired.CANCEL)
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    station.check()
