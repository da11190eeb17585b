"""A machine that says it is not done is not paid past the bound: from a stop to the end of the GPU's bill."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.model import Desired, Outcome, State
from tests.support.chaos.lied_to import (
    ALWAYS_MORE,
    BOUND_SECONDS,
    DEAF,
    RUDE,
    SHORT,
    billed_seconds,
    lied_to,
)
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.machines.lying_machine import Lies


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
    assert Path(ended.model.address or "").is_file(), "the model was not fetched all the same"
    station.check()
