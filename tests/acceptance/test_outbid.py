"""Machines held by a bid: whoever stopped one, what is on its disk is not given away before a start was tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stationmaster.model import Outcome, Reason, State
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.vast.passing_time import let_guard_act

_BIDS = {"STATIONMASTER_VASTAI__INTERRUPTIBLE": "true"}


def begin(station: StormStation, folder: Path) -> dict[str, Any]:
    """The machine of a job whose training has saved something, and goes no further; its worker is alive."""
    station.keep_training()
    station.submit(storm_job("job-1", a_tiny_dataset(folder / "dataset"), journal=station.journal, steps=10))
    station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    machine: dict[str, Any] = station.alive()[0]
    return machine


def finish(station: StormStation) -> None:
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    station.check()


def test_with_home_gone_for_good_the_guard_stops_the_machine_and_a_later_worker_starts_it_and_fetches_the_model(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **_BIDS))
    machine = begin(station, tmp_path)
    disk = tmp_path / "simulator" / "machines" / str(machine["id"])
    station.kill(station.workers[-1], "worker")
    station.let_finish()
    let_guard_act(disk)
    station.until(lambda: station.alive()[0]["actual_status"] == "exited", "the guard's stop")
    assert station.alive()[0]["processes"] == []
    assert [path for path in disk.rglob("job-1.safetensors") if path.stat().st_size > 1000], "no model on the disk"
    station.start("worker")
    finish(station)
    ended = station.job("job-1")
    assert (ended.outcome, ended.attempt) == (Outcome.COMPLETED, 1), "the training was done before its machine stopped"
    assert Path(ended.model.address or "").is_file(), "the model was lost"
    assert len(station.truth()) == 1, f"another machine was rented\n{station.story()}"


def test_what_is_on_a_machine_that_starts_again_after_it_was_outbid_comes_home_before_the_next_attempt(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **_BIDS))
    taken = begin(station, tmp_path)
    station.customer.arm("outbid", instance_id=taken["id"], seconds=0.0)
    station.until(lambda: station.job("job-1").attempt == 2, "a further attempt")
    station.let_finish()
    finish(station)
    events = station.store.events.of_job("job-1")
    assert [event.payload["reason"] for event in events if event.kind == "attempt_failed"] == [Reason.OUTBID]
    assert (station.job("job-1").outcome, station.job("job-1").attempt) == (Outcome.COMPLETED, 2)
    collected = station.job("job-1").collection.checkpoints
    assert [one.attempt for one in collected] == [1]
    assert Path(collected[0].location).is_file(), "the checkpoint of the first attempt was lost"
