"""Machines held by a bid: whoever stopped one, what is on its disk is not given away before a start was tried."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Outcome, Reason, State
from stationmaster.simulator.harness import simulator_thread
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation, holding
from tests.support.vast.simulated_vast import quick_settings

_BIDS = {"STATIONMASTER_VASTAI__INTERRUPTIBLE": "true"}


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


def begin(station: StormStation, folder: Path, *, steps: int) -> dict[str, Any]:
    """The machine of a job whose training has saved something; its worker is alive."""
    station.submit(storm_job("job-1", a_tiny_dataset(folder / "dataset"), journal=station.journal, steps=steps))
    station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    machine: dict[str, Any] = station.alive()[0]
    return machine


def finish(station: StormStation) -> None:
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job", seconds=90)
    station.check()


def failed_attempts(station: StormStation) -> list[str]:
    events = station.store.events.of_job("job-1")
    return [event.payload["reason"] for event in events if event.kind == "attempt_failed"]


def test_a_bids_machine_that_its_own_guard_stopped_is_started_and_its_model_fetched(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **_BIDS, STATIONMASTER_VASTAI__GUARD_IDLE="6"))
    begin(station, tmp_path, steps=20)
    station.kill(station.workers[-1], "worker")
    station.until(lambda: station.alive()[0]["actual_status"] == "exited", "the guard's stop")
    station.start("worker")
    finish(station)
    ended = station.job("job-1")
    assert (ended.outcome, ended.attempt) == (Outcome.COMPLETED, 1), "the training was done before its machine stopped"
    assert Path(ended.model.address or "").is_file(), "the model was lost"
    assert len(station.truth()) == 1, f"another machine was rented\n{station.story()}"


def test_a_machine_that_was_really_outbid_is_left_for_another_and_its_queued_start_is_taken_back(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **_BIDS))
    taken = begin(station, tmp_path, steps=40)
    station.customer.arm("outbid", instance_id=taken["id"], seconds=3600.0)
    station.until(lambda: failed_attempts(station), "the end of the attempt")
    left = next(machine for machine in station.truth() if machine["id"] == taken["id"])
    assert left["intended_status"] == "stopped", "a queued start may bill at any time"
    finish(station)
    assert failed_attempts(station) == [Reason.OUTBID]
    assert (station.job("job-1").outcome, station.job("job-1").attempt) == (Outcome.COMPLETED, 2)


def test_what_is_on_a_machine_that_starts_again_after_it_was_outbid_comes_home_before_the_next_attempt(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **_BIDS))
    taken = begin(station, tmp_path, steps=40)
    station.customer.arm("outbid", instance_id=taken["id"], seconds=0.0)
    finish(station)
    assert failed_attempts(station) == [Reason.OUTBID]
    assert (station.job("job-1").outcome, station.job("job-1").attempt) == (Outcome.COMPLETED, 2)
    collected = station.job("job-1").collection.checkpoints
    assert [one.attempt for one in collected] == [1]
    assert Path(collected[0].location).is_file(), "the checkpoint of the first attempt was lost"
