"""Faults of a provider strike live rentals in a fixed order, workers and sweepers die, and nothing is left over.

Faults drawn by chance, with several jobs at once, are in `make chaos` (`tests/chaos/storms.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Job, Outcome, Reason, State
from stationmaster.simulator.faults import FaultKind
from stationmaster.simulator.harness import simulator_thread
from tests.support.capabilities import require
from tests.support.chaos.lied_to import bills_no_more, reach_the_limit
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import StormStation, holding, storm_forge
from tests.support.vast.simulated_vast import quick_settings

JOB = "job-1"
AT_ITS_CREATION = (FaultKind.OFFER_GONE, FaultKind.SLOW_ANSWER, FaultKind.LOST_ANSWER, FaultKind.LIST_LAG)
TO_REQUESTS = (
    FaultKind.SERVER_ERROR,
    FaultKind.RATE_LIMITED,
    FaultKind.DEPRECATED_LIST,
    FaultKind.SHORT_PAGE,
    FaultKind.EMPTY_LIST,
)
TO_ITS_MACHINE = (FaultKind.STATUS_LIES, FaultKind.SSH_REFUSED, FaultKind.PARTITION, FaultKind.CLOCK_SKEW)
GIVEN_UP_SOON = {
    "STATIONMASTER_LIMITS__FETCH": "1s",
    "STATIONMASTER_LIMITS__CLOSING": "1s",
    "STATIONMASTER_SWEEP__ABANDON_AFTER": "1s",
}
AT_ITS_RELEASE = (FaultKind.LYING_DESTROY, FaultKind.SLOW_DESTROY)


@pytest.fixture
def limits() -> dict[str, str]:
    """Further settings of the station."""
    return {}


@pytest.fixture
def station(tmp_path: Path, limits: dict[str, str]) -> Iterator[StormStation]:
    require("sshd")
    with simulator_thread(quick_settings(tmp_path / "simulator", credit_usd=50.0)) as url, holding() as hold:
        yield hold(StormStation(tmp_path / "home", url, storm_forge(), **limits))


def submit(station: StormStation, tmp_path: Path) -> Path:
    """A job whose training ends only once the file exists that is returned."""
    go = tmp_path / "go"
    dataset = a_tiny_dataset(tmp_path / "dataset")
    station.submit(storm_job(JOB, dataset, journal=station.journal, steps=5, pace=0.0, wait_for=go))
    return go


def train(station: StormStation) -> int:
    """The machine, once the training on it has saved its model."""
    station.until(lambda: station.store.checkpoints.of_job(JOB), "a checkpoint")
    (machine,) = station.alive()
    return int(machine["id"])


def strike(station: StormStation, kind: FaultKind, **fields: Any) -> None:
    """The fault, while the job's rental is live."""
    station.customer.arm(kind, **{"seconds": 0.5, **fields})
    station.until(lambda: kind in kinds_struck(station), f"the strike of {kind}")


def kinds_struck(station: StormStation) -> set[str]:
    """Every kind of fault that has met a rental of the job while that was live."""
    spans = station.spans()
    return {struck["kind"] for struck in station.struck() if any(span.is_met_by(struck) for span in spans)}


def ended(station: StormStation) -> Job:
    station.until(lambda: station.job(JOB).state is State.ENDED, "the end of the job")
    station.until(lambda: not station.alive(), "the end of every machine")
    station.check()
    return station.job(JOB)


def test_a_job_completes_in_one_attempt_though_every_fault_that_passes_strikes_and_its_processes_die(
    station: StormStation, tmp_path: Path
) -> None:
    for kind in AT_ITS_CREATION:
        station.customer.arm(kind, operation="create", seconds=0.5)
    go = submit(station, tmp_path)
    worker, sweeper = station.start("worker"), station.start("sweeper")
    machine = train(station)
    for kind in TO_REQUESTS:
        strike(station, kind)
    station.kill(worker, "worker")
    for kind in TO_ITS_MACHINE:
        strike(station, kind, instance_id=machine)
    station.kill(sweeper, "sweeper")
    for kind in AT_ITS_RELEASE:
        station.customer.arm(kind, instance_id=machine, seconds=0.5)
    go.touch()
    station.start("worker")
    station.start("sweeper")
    job = ended(station)
    assert (job.outcome, job.reason, job.attempt) == (Outcome.COMPLETED, Reason.FINISHED, 1), station.story()
    assert Path(job.model.address or "").is_file()
    expected = {*AT_ITS_CREATION, *TO_REQUESTS, *TO_ITS_MACHINE, *AT_ITS_RELEASE}
    assert kinds_struck(station) == expected, station.story()


def test_a_machine_stopped_for_want_of_credit_whose_start_is_queued_gives_up_its_model_once_it_is_paid(
    station: StormStation, tmp_path: Path
) -> None:
    submit(station, tmp_path)
    station.start("worker")
    machine = train(station)
    strike(station, FaultKind.CREDIT_GONE, instance_id=machine)
    station.until(lambda: bills_no_more(station), "the stop")
    station.customer.arm(FaultKind.START_QUEUED, instance_id=machine, seconds=0.5)
    station.pay(50)
    job = ended(station)
    assert {FaultKind.CREDIT_GONE, FaultKind.START_QUEUED} <= kinds_struck(station), station.story()
    assert Path(job.model.address or "").is_file()
    assert job.attempt == 1


@pytest.mark.parametrize("limits", [GIVEN_UP_SOON], ids=["given up soon"])
@pytest.mark.parametrize("kind", [FaultKind.HOST_VANISHES, FaultKind.CONTRACT_ENDS])
def test_a_machine_that_never_comes_back_is_given_up_only_at_the_limit_and_the_loss_is_told(
    station: StormStation, tmp_path: Path, kind: FaultKind
) -> None:
    submit(station, tmp_path)
    station.start("worker")
    strike(station, kind, instance_id=train(station))
    station.until(lambda: station.job(JOB).unreachable_since is not None, "that it is missed")
    assert station.alive(), "given up before its limit"
    reach_the_limit(station)
    job = ended(station)
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.FETCH_FAILED), station.story()
    assert "its model is lost" in str(job.explanation)
