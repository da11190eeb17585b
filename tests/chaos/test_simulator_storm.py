"""Every fault strikes while machines are rented, workers and sweepers die, and nothing is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.simulator.faults import FaultKind
from tests.support.chaos.simulator_storm import Storm, missing, table
from tests.support.chaos.storm_station import StormForge


# It ends as soon as every fault has struck, after about half a minute; a busy machine is given its time.
@pytest.mark.timeout(1500)
def test_after_a_storm_of_every_fault_nothing_bills_and_the_books_balance(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StormForge() as forge:
        storm = Storm(1, tmp_path, forge, kinds=tuple(FaultKind))
        storm.run(jobs=4, most_seconds=120.0)
    with capsys.disabled():
        print(f"\n{table(storm.tally)}\nkilled: {dict(storm.kills)}")
    assert missing(storm.tally, tuple(FaultKind), times=1) == []
    assert {role for role, _ in storm.kills} == {"worker", "sweeper"}
