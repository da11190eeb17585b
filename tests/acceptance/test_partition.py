"""A machine that nobody can reach in the midst of its training: real network namespaces, really cut."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.model import Outcome, State
from stationmaster.simulator.harness import simulator_thread
from tests.support.capabilities import require
from tests.support.chaos.loopback import is_alive
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.vast.passing_time import let_guard_act_inside
from tests.support.vast.simulated_vast import quick_settings

#: That a cut lasts at least, which is longer than any limit; and until home has told people of the silence.
LEAST_SECONDS = float(os.environ.get("PARTITION_SECONDS") or 4)
LIMITS = {
    "STATIONMASTER_SSH__KEEPALIVE": "0.5",
    "STATIONMASTER_WORKER__LEASE": "4",
    "STATIONMASTER_WORKER__RENEW": "0.5",
    "STATIONMASTER_MONITORING__SILENCE_ALERT": "2",
    "STATIONMASTER_MONITORING__STALL_DETECTION__THRESHOLDS": json.dumps(
        {"min_window": "2s", "near_end_eta": "1s", "near_end_progress": 1}
    ),
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    require("network namespaces")
    require("sshd")
    with simulator_thread(quick_settings(tmp_path / "simulator", backend="namespaces")) as url:
        yield url


def trainer(station: StormStation) -> int:
    """The pid of the training, as this computer numbers it."""

    def found() -> int | None:
        (machine,) = station.alive()
        return next((pid for pid in machine["processes"] if "train.py" in _command(pid)), None)

    return int(station.until(found, "the training's process"))


def kinds_since(station: StormStation, kind: str) -> list[str]:
    """The kinds of all events after the last one of this kind."""
    kinds = [event.kind for event in station.store.events.of_job("job-1")]
    return kinds[len(kinds) - kinds[::-1].index(kind) :]


def has_pace(station: StormStation) -> bool:
    readings = station.store.readings.of_job("job-1")
    return len(readings) > 10 and readings[-1].at - readings[0].at > 1.0


def alerts(station: StormStation) -> set[str]:
    return {alert.kind for alert in station.store.alerts.open("job-1")}


def test_a_cut_longer_than_every_limit_costs_nothing_but_news_and_the_guards_stop_loses_no_model(
    tmp_path: Path, url: str, forge: StormForge, hold: Hold
) -> None:
    """First home is there and waits; then home is gone, and the machine stops itself once it reaches its provider."""
    station = hold(StormStation(tmp_path / "home", url, forge, **LIMITS))
    station.submit(storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=Path("/tmp/journal"), steps=3000))
    worker = station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    station.until(lambda: has_pace(station), "a known pace, without which no stall is seen for long")
    training = trainer(station)
    os.kill(training, signal.SIGSTOP)
    (machine,) = station.alive()
    began = time.monotonic()
    station.customer.strike("partition", machine["id"])  # from its provider it is cut off as well
    station.until(lambda: station.job("job-1").unreachable_since is not None, "the silence")
    station.until(lambda: "silence" in alerts(station), "the word to people")
    station.until(lambda: time.monotonic() - began > LEAST_SECONDS, "a long cut", seconds=2 * LEAST_SECONDS + 1)
    assert station.job("job-1").state is State.EXECUTING
    assert "stall_flagged" not in kinds_since(station, "unreachable"), "silence was taken for a stall"
    station.customer.end_strikes()
    station.until(lambda: "stall_flagged" in kinds_since(station, "state"), "the stall, now that it can be seen")
    assert (station.job("job-1").unreachable_since, station.job("job-1").state) == (None, State.EXECUTING)
    assert len(station.truth()) == 1, f"a second machine was rented\n{station.story()}"

    station.kill(worker, "worker")
    station.customer.strike("partition", machine["id"])
    for number in (signal.SIGUSR1, signal.SIGCONT):  # it saves its model and ends
        os.kill(training, number)
    station.until(lambda: not is_alive(training), "the end of the training")
    let_guard_act_inside(station.alive()[0]["processes"])
    station.customer.end_strikes()
    station.until(lambda: station.alive()[0]["actual_status"] == "exited", "the guard's stop")
    station.start("worker")
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    ended = station.job("job-1")
    assert ended.outcome is Outcome.COMPLETED, "the training was done before its machine was stopped"
    assert Path(ended.model.address or "").is_file(), "the model was lost"
    assert len(station.truth()) == 1, f"a second machine was rented\n{station.story()}"
    station.check()


def _command(pid: Any) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""  # it has ended
