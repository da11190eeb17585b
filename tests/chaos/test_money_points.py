"""A worker dies around every commit that moves credits: whoever follows charges neither twice nor not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.model import Outcome
from stationmaster.providers.fake import Trouble
from stationmaster.remote.fake_trackside import Script
from tests.support.chaos.fake import SCRIPT, Template
from tests.support.chaos.paid_jobs import GIVEN, MOST, PaidStation, points_around_money, template
from tests.support.chaos.points import Killed, KillPoints

CRASHES = replace(SCRIPT, exit_codes={("train", 1): 1}, fails_at=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return template(tmp_path_factory.mktemp("paid"))


@pytest.mark.parametrize(
    ("script", "outcome"), [(SCRIPT, Outcome.COMPLETED), (CRASHES, Outcome.FAILED)], ids=["completes", "crashes"]
)
def test_a_death_around_a_hold_or_a_settlement_changes_no_charge(
    script: Script, outcome: Outcome, made: Template, tmp_path: Path
) -> None:
    points = points_around_money(PaidStation(made, tmp_path / "clean", script=script))
    assert len(points) >= 8, "a hold and a settlement are two commits"
    for at, name in points:
        station = PaidStation(made, tmp_path / str(at), script=script)
        with pytest.raises(Killed):
            station.work(KillPoints(kill_at=at))
        station.let_leases_lapse()
        assert station.finish().outcome is outcome
        assert station.account() == (GIVEN - min(station.cost(1), MOST), 0), f"killed at point {at}, {name}"
        assert len(station.told("settled")) == 1, f"killed at point {at}, {name}"


def test_a_death_between_two_attempts_neither_charges_the_lost_one_nor_holds_twice(
    made: Template, tmp_path: Path
) -> None:
    """No machine comes up at first: settlement and next hold are one commit, and everything around it may die."""
    points = points_around_money(without_a_first_machine(made, tmp_path / "clean"))
    assert len(points) >= 10, "two holds and two settlements, of which two are one commit"
    for at, name in points:
        station = without_a_first_machine(made, tmp_path / str(at))
        with pytest.raises(Killed):
            station.work(KillPoints(kill_at=at))
        station.let_leases_lapse()
        job = station.finish()
        assert (job.outcome, job.attempt) == (Outcome.COMPLETED, 2), name
        assert station.account() == (GIVEN - station.cost(2), 0), f"killed at point {at}, {name}"
        assert [told["charged"] for told in station.told("settled")] == [0, station.cost(2)]


def without_a_first_machine(made: Template, folder: Path) -> PaidStation:
    station = PaidStation(made, folder)
    station.provider.will(Trouble.NEVER_READY)
    station.pace = 5.0  # else most looks only find that it is not ready yet
    return station
