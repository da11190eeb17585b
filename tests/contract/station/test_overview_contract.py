"""The overview of jobs and their costs over time, from rows that workers would have written."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from stationmaster.errors import NotFound, UserError
from stationmaster.model import Alert, Outcome, Progress, StepReading
from stationmaster.money import MicroDollars
from stationmaster.station.costs import Part, Period, SplitBy, period_until
from stationmaster.station.users import UserChanges
from stationmaster.store import events, readings
from stationmaster.store.codec import progress_to_text
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent
from tests.contract.station.conftest import opener
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.stored_jobs import change_row, cost_of, machine_of, put_trained

_HOUR = 3600.0
_RATE = MicroDollars(360_000)


def write_losses(store: Store, job_id: str, losses: dict[int, float | None], *, attempt: int = 1) -> None:
    made = [StepReading(attempt=attempt, at=1_000.0 + step, step=step, loss=loss) for step, loss in losses.items()]
    with store.database.write() as connection:
        readings.append(connection, readings.rows(job_id, made))


def make_run(store: Store, job_id: str, *, now: float, **fields: object) -> None:
    """A job that trains: half of its 4,000 steps are done, and one of them had a very high loss."""
    store.jobs.submit(spec(job_id, name=job_id, **fields))
    vitals = {"gpus": [[[now - 60, 10.0, 1024, 24576], [now, 90.0, 18432, 24576]], [[now, 50.0, 2048, 24576]]]}
    change_row(
        store,
        job_id,
        state="EXECUTING",
        attempt=1,
        progress=progress_to_text(Progress(step=2_000, total_steps=4_000, loss=0.1, steps_per_second=4.0, at=now)),
        memory=json.dumps({"vitals": vitals}),
    )
    held = machine_of(job_id, held_at=now - _HOUR)
    store.rentals.put_without_lease(held)
    store.costs.put_without_lease(cost_of(job_id, started_at=now - _HOUR))
    losses: dict[int, float | None] = {step: 1.0 / (1 + step / 100) for step in range(0, 2_000, 5)}
    write_losses(store, job_id, {**losses, 1_000: 42.0, 1_010: None})


@pytest.fixture(scope="module")
def people(
    request: pytest.FixtureRequest, station_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalWorld]:
    """Jobs of two people; tests that only look share them."""
    with opener(request, station_kind, tmp_path_factory.mktemp("people"))() as world:
        store, now = world.store, world.store.now()
        put_trained(store, "old1", name="old", owner="ann")
        put_trained(store, "old2", name="old", owner="bob")
        change_row(store, "old2", outcome=Outcome.FAILED.value, explanation="the disk was full")
        store.jobs.submit(spec("waits", name="waits", owner="bob"))
        make_run(store, "runs", now=now)
        make_run(store, "stuck", now=now, owner="ann")
        stall = "stalled: no step for 12 min, usually 2 s (will be stopped in 3 min unless progress resumes)"
        store.alerts.raise_without_lease(Alert(kind="stall", message=stall, job_id="stuck"))
        store.jobs.submit(spec("seeks", name="seeks", owner="bob"))
        change_row(store, "seeks", state="PROVISIONING", attempt=1, state_since=now - 60)
        with store.database.write() as connection:
            waiting = NewEvent(
                kind="waiting_for_offer", payload={"agreed": "RTX 4090 under $0.40/h", "offered": "$0.47/h"}
            )
            events.append(connection, events.rows("seeks", (waiting,), version=2, now=now))
        yield world


@every_station
def test_unfinished_jobs_come_first_then_the_newest_ended_ones(people: LocalWorld) -> None:
    overview = people.station.overview.look()
    assert [row.id for row in overview.rows] == ["seeks", "stuck", "runs", "waits", "old2", "old1"]
    assert [row.id for row in people.station.overview.look(ended_limit=1).rows][-1] == "old2"
    assert [row.id for row in people.station.overview.look(ended_limit=0, owner="bob").rows] == ["seeks", "waits"]


@every_station
def test_a_row_has_what_a_line_shows_of_a_training(people: LocalWorld) -> None:
    row = next(row for row in people.station.overview.look().rows if row.id == "runs")
    assert (row.shown, row.recipe, row.provider, row.gpu) == ("EXECUTING", "tiny-lora@1", "fake", "RTX 4090")
    assert (row.progress.step, row.progress.total_steps, row.progress.loss) == (2_000, 4_000, 0.1)
    assert (row.use.percent, row.use.memory_used_gib, row.use.memory_total_gib) == (70.0, 18.0, 24.0)
    assert row.price_per_hour == _RATE
    assert abs(row.cost - _RATE) < 20_000
    assert (row.quoted, row.max_spend, row.needs) == (360_000, 1_440_000, None)


@every_station
def test_the_trend_of_the_loss_is_short_keeps_a_spike_and_grows(world: LocalWorld) -> None:
    store, now = world.store, world.store.now()
    make_run(store, "runs", now=now)

    def trend() -> tuple[float, ...]:
        return world.station.overview.look().rows[0].loss_trend

    first = trend()
    assert 30 <= len(first) <= 60
    assert (max(first), first[0]) == (42.0, 1.0)
    write_losses(store, "runs", {3_000: 0.001})
    change_row(store, "runs", progress=progress_to_text(Progress(step=3_000, total_steps=4_000, at=now + 1)))
    second = trend()
    assert len(second) <= 60
    assert (max(second), second[-1]) == (42.0, 0.001)
    write_losses(store, "runs", {0: 9.0, 10: 8.0}, attempt=2)
    change_row(store, "runs", attempt=2, progress=progress_to_text(Progress(step=10, total_steps=4_000, at=now + 2)))
    assert trend() == (9.0, 8.0), "a further attempt has a trend of its own"


@every_station
def test_a_sentence_says_why_a_job_needs_a_person(people: LocalWorld) -> None:
    needs = {row.id: row.needs for row in people.station.overview.look().rows if row.needs is not None}
    assert set(needs) == {"stuck", "seeks"}
    assert needs["stuck"].kind == "stall"
    assert needs["stuck"].sentence.startswith("Stalled: no step for 12 min, usually 2 s (will be stopped in 3 min")
    assert needs["stuck"].since is not None, "three minutes from when?"
    assert needs["seeks"].kind == "waiting_for_offer"
    assert "RTX 4090 under $0.40/h" in needs["seeks"].sentence


@every_station
def test_the_summary_counts_jobs_and_money(people: LocalWorld) -> None:
    now = people.store.now()
    summary = people.station.overview.look(today_from=now - _HOUR / 2).summary
    assert (summary.running, summary.queued, summary.unfinished) == (3, 1, 4)
    assert (summary.needing, summary.failed) == (2, 1)
    assert summary.price_per_hour == 2 * _RATE
    assert abs(summary.spent_today - _RATE) < 20_000, "half an hour of two machines"
    assert abs(summary.spent_total - 4 * _RATE) < 20_000, "an hour of two machines, and two that are gone"
    assert (summary.gpu_percent, summary.memory_percent) == (70.0, 75.0)


@every_station
def test_what_failed_today_counts_also_where_it_is_not_listed(people: LocalWorld) -> None:
    overviews, now = people.station.overview, people.store.now()
    assert overviews.look(ended_limit=0, today_from=now - _HOUR).summary.failed == 1
    assert overviews.look(today_from=now + _HOUR).summary.failed == 0, "it ended before that day"
    assert overviews.look(owner="ann", today_from=now - _HOUR).summary.failed == 0, "it is of another user"


@every_station
def test_costs_over_time_add_up_and_count_running_machines_until_now(people: LocalWorld) -> None:
    now = people.store.now()
    long_ago = people.station.costs.over_time(Period(start=0.0, seconds=_HOUR, count=3))
    assert sum(long_ago.amounts) == 2 * _RATE
    assert long_ago.amounts == (2 * 260_000, 2 * 100_000, 0), "from second 1000 to 4600"
    assert long_ago.split == ()
    recent = people.station.costs.over_time(period_until(now, Part.HOUR), split_by=SplitBy.JOB)
    assert abs(recent.total - 2 * _RATE) < 20_000
    assert {name for names in recent.split for name in names} == {"runs", "stuck"}
    by_provider = people.station.costs.over_time(period_until(now, Part.DAY), split_by=SplitBy.PROVIDER, owner="ann")
    assert {name for names in by_provider.split for name in names} == {"fake"}
    assert abs(by_provider.total - _RATE) < 20_000


@every_station
def test_a_budget_counts_what_was_spent_and_what_running_jobs_are_expected_to_cost(people: LocalWorld) -> None:
    for name in ("ann", "bob"):
        people.local.users.add(name, UserChanges())
    anns = people.station.costs.budget("ann")
    assert (anns.user, anns.daily_limit) == ("ann", None)
    assert anns.committed >= _RATE - 20_000, "an hour of one machine that still runs"
    bobs = people.station.costs.budget("bob")
    assert bobs.committed == spec("any").quote.cost_expected, "one seeks a machine, one waits, one ended long ago"
    assert (anns.hourly_alert, anns.max_rentals) == (MicroDollars(10_000_000), 2)
    with pytest.raises(NotFound):
        people.station.costs.budget("nobody")


def test_a_period_of_too_many_parts_or_none_is_refused() -> None:
    for start in (0.0, 2_000_000.0 * _HOUR):
        with pytest.raises(UserError):
            period_until(1_000_000 * _HOUR, Part.HOUR, start=start)
