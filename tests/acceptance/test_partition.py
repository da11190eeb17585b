"""A machine that nobody can reach in the midst of its training: real network namespaces, really cut."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.model import Outcome, State
from stationmaster.simulator.harness import simulator_thread
from tests.support.capabilities import require
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation, holding
from tests.support.vast.simulated_vast import quick_settings

CUT_SECONDS = 10.0
LIMITS = {
    "STATIONMASTER_SSH__KEEPALIVE": "0.5",
    "STATIONMASTER_WORKER__LEASE": "2",
    "STATIONMASTER_WORKER__RENEW": "0.5",
    "STATIONMASTER_MONITORING__SILENCE_ALERT": "2",
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    require("network namespaces")
    require("sshd")
    with simulator_thread(quick_settings(tmp_path / "simulator", backend="namespaces")) as url:
        yield url


@pytest.fixture
def hold() -> Iterator[Hold]:
    with holding() as hold:
        yield hold


def cut_of(forge: StormForge) -> tuple[float, dict[str, str]]:
    """How long the machine is cut off, and home's limits, all of which are shorter: also "no progress for 2 h"."""
    seconds = float(os.environ.get("PARTITION_SECONDS") or CUT_SECONDS * forge.slowness)
    return seconds, {**LIMITS, "STATIONMASTER_SWEEP__STUCK": str(0.8 * seconds)}


def in_training(station: StormStation, folder: Path, *, steps: int) -> dict[str, object]:
    """The machine of a job whose training has saved something."""
    station.submit(storm_job("job-1", a_tiny_dataset(folder / "dataset"), journal=Path("/tmp/journal"), steps=steps))
    station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    return station.alive()[0]


def test_a_cut_longer_than_every_limit_of_home_costs_nothing_but_news(tmp_path: Path, url: str, hold: Hold) -> None:
    with StormForge() as forge:
        cut_seconds, limits = cut_of(forge)
        settings = {**limits, "STATIONMASTER_VASTAI__GUARD_IDLE": "3600"}
        station = hold(StormStation(tmp_path / "home", url, forge, **settings))
        machine = in_training(station, tmp_path, steps=int(cut_seconds * 10) + 150)
        station.customer.arm("partition", instance_id=machine["id"], seconds=cut_seconds)
        began = time.monotonic()
        station.until(lambda: station.job("job-1").unreachable_since is not None, "the silence")
        station.until(
            lambda: station.job("job-1").state is State.ENDED, "the end of the job", seconds=3 * cut_seconds + 90
        )
        assert time.monotonic() - began > cut_seconds
        assert station.job("job-1").outcome is Outcome.COMPLETED
        assert len(station.truth()) == 1, f"a second machine was rented\n{station.story()}"
        station.check()


def test_a_cut_longer_than_the_guards_limit_stops_the_machine_and_its_model_is_fetched_later(
    tmp_path: Path, url: str, hold: Hold
) -> None:
    with StormForge() as forge:
        cut_seconds, limits = cut_of(forge)
        settings = {**limits, "STATIONMASTER_VASTAI__GUARD_IDLE": str(8 * forge.slowness)}
        station = hold(StormStation(tmp_path / "home", url, forge, **settings))
        machine = in_training(station, tmp_path, steps=60)
        station.customer.arm("partition", instance_id=machine["id"], seconds=cut_seconds)
        station.kill(station.workers[-1], "worker")  # the machine is cut off from its provider, too, and home is away
        station.until(
            lambda: station.alive()[0]["actual_status"] == "exited", "the guard's stop", seconds=3 * cut_seconds + 90
        )
        station.start("worker")
        station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job", seconds=90)
        ended = station.job("job-1")
        assert ended.outcome is Outcome.COMPLETED, "the training was done before its machine was stopped"
        assert Path(ended.model.address or "").is_file(), "the model was lost"
        assert len(station.truth()) == 1, f"a second machine was rented\n{station.story()}"
        station.check()
