"""A worker dies, or sleeps through its lease, at every single point of a job's life; the next one finishes the job."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.providers.fake import Trouble
from tests.support.chaos.fake import FakeStation, Template
from tests.support.chaos.points import Killed, KillPoints, first_of_moment, sampled

SLICES = 6  # so that each test ends in time
SAMPLE_OR_SLICE = ["sample", *(pytest.param(part, marks=pytest.mark.slow) for part in range(SLICES))]
_ONE_IN = 12
_FAR_TOO_MANY_POINTS = 1500


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def points(template: Template, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The points of a clean run."""
    station = FakeStation(template, tmp_path_factory.mktemp("points") / "clean")
    passed = KillPoints()
    station.work(passed)
    station.check()
    return passed.names


def test_the_points_of_a_clean_run_are_found_by_code(points: list[str]) -> None:
    for edge in ("provider.create", "provider.destroy", "provider.listing", "remote.run", "remote.push", "remote.pull"):
        assert f"before {edge}" in points
        assert f"after {edge}" in points
    assert points.count("before BEGIN") == points.count("before COMMIT") == points.count("after COMMIT") > 20


@pytest.mark.parametrize("part", SAMPLE_OR_SLICE)
def test_a_job_survives_the_death_of_its_worker_at_every_point(
    part: int | str, points: list[str], template: Template, tmp_path: Path
) -> None:
    for at, name in part_of(points, part):
        station = FakeStation(template, tmp_path / str(at))
        with pytest.raises(Killed):
            station.work(KillPoints(kill_at=at))
        station.let_leases_lapse()
        finish_and_check(station, f"killed at point {at}, {name}")


@pytest.mark.parametrize("trouble", [Trouble.LOSE_CREATE_ANSWER, Trouble.LOSE_CREATE_REQUEST, Trouble.REFUSE_CREATE])
def test_a_job_survives_death_around_a_create_that_went_wrong(
    trouble: Trouble, points: list[str], template: Template, tmp_path: Path
) -> None:
    for at, name in around_the_create(points):
        station = FakeStation(template, tmp_path / str(at))
        station.provider.will(trouble)
        with pytest.raises(Killed):
            station.work(KillPoints(kill_at=at))
        station.let_leases_lapse()
        finish_and_check(station, f"{trouble}, killed at point {at}, {name}")


@pytest.mark.parametrize("part", SAMPLE_OR_SLICE)
def test_a_worker_that_slept_through_its_lease_changes_nothing(
    part: int | str, points: list[str], template: Template, tmp_path: Path
) -> None:
    """Another worker has finished the job meanwhile. The sleeper may still rent a machine; it never uses it."""
    for at, name in part_of(points, part, first=_ONE_IN // 2):
        if name != "before COMMIT":  # else it sleeps with SQLite's only pen in its hand: the other can only wait
            station = FakeStation(template, tmp_path / str(at))
            station.sleep_while_another_works(at)
            finish_and_check(station, f"slept at point {at}, {name}")


def test_a_machine_rented_by_a_sleeper_is_surplus_and_its_late_answer_is_dropped(
    points: list[str], template: Template, tmp_path: Path
) -> None:
    """The one that `fence_mutant.py` must turn red: nothing but the token stands between the sleeper and the job."""
    create = points.index("before provider.create")
    station = FakeStation(template, tmp_path / "split")
    station.sleep_while_another_works(create)
    finish_and_check(station, "slept before the create was sent")
    assert len(station.provider.created) == 2
    assert len(station.machines) == 1, "the surplus machine was logged in to"


@pytest.mark.parametrize("when", ["before provider.create", "after provider.create", "before remote.run"])
def test_a_surplus_machine_is_found_and_destroyed_before_the_machine_is_used(
    when: str, points: list[str], template: Template, tmp_path: Path
) -> None:
    """As a stopped process leaves it: a second machine with the same label, before or after the first is known."""
    station = FakeStation(template, tmp_path / "twins")
    with pytest.raises(Killed):
        station.work(KillPoints(kill_at=points.index(when)))
    station.rent_another()
    station.let_leases_lapse()
    finish_and_check(station, f"a twin appeared {when}")
    first_use = station.calls.index("before remote.run")
    surplus = len(station.provider.created) - 1
    assert station.calls[:first_use].count("after provider.destroy") == surplus


def test_a_listing_of_another_account_before_the_create_does_not_keep_the_job_for_ever(
    template: Template, tmp_path: Path
) -> None:
    """The account noted at the create was wrong; the one that lists the machine is right."""
    station = FakeStation(template, tmp_path / "other")
    station.provider.will(Trouble.LIST_EMPTY)
    finish_and_check(station, "listed for another account")


def part_of(points: list[str], part: int | str, *, first: int = 0) -> list[tuple[int, str]]:
    """`first` is that of the sample, so that two samples have different points."""
    if isinstance(part, int):
        return list(enumerate(points))[part::SLICES]
    return [(at, points[at]) for at in sampled(points, every=_ONE_IN, first=first)]


def around_the_create(points: list[str]) -> list[tuple[int, str]]:
    create = points.index("before provider.create")
    near = range(create - 3, create + 6)
    return [(at, points[at]) for at in near if first_of_moment(points, at) == at]


def finish_and_check(station: FakeStation, what: str) -> None:
    """A new worker takes over; whatever was broken is told with the point that broke it."""
    try:
        passed = KillPoints(kill_at=_FAR_TOO_MANY_POINTS)
        station.work(passed)
        station.calls = passed.names
        station.check()
    except (AssertionError, Killed) as problem:
        raise AssertionError(f"{what}: {problem}") from problem
