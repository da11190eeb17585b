"""A model that cannot be fetched in time stays on the disk of a stopped machine, and people decide about it."""

from __future__ import annotations

from pathlib import Path

from stationmaster.lifecycle import is_parked
from stationmaster.model import Desired, State
from tests.support.chaos.lied_to import (
    ALWAYS_MORE,
    BOUND_SECONDS,
    SHORT,
    SILENT,
    billed_seconds,
    bills_no_more,
    lied_to,
    reach_the_limit,
)
from tests.support.chaos.storm_station import Hold, StormForge, StormStation


def test_at_the_limit_a_model_that_is_withheld_keeps_its_disk_and_the_gpu_bills_no_more(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    station = hold(StormStation(tmp_path / "home", url, forge, **SHORT, STATIONMASTER_SWEEP__ABANDON_AFTER="5s"))
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
    assert Path(station.job("job-1").model.address or "").is_file()
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
