"""How much room measured values take."""

from __future__ import annotations

from stationmaster.series.codec import encode
from tests.support.series.simulated_run import simulated_run

_HOURS = 2
_GPUS = 20
_GB_A_MONTH = 2.5  # stated in the settings


def test_a_month_of_twenty_busy_gpus_stays_under_its_budget() -> None:
    an_hour = sum(len(encode(table)) for table in simulated_run(_HOURS)) / _HOURS
    assert an_hour * 24 * 30 * _GPUS / 1e9 < _GB_A_MONTH
