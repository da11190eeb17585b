"""Jobs, their costs and their comparison, from rows that workers would have written."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from stationmaster.errors import AlreadyEnded, IllegalMove, NotFound, UserError
from stationmaster.model import Alert, Desired, Job, Request, State
from stationmaster.station.costs import of_removed_job
from stationmaster.station.jobs import job_cursor
from stationmaster.store import events
from stationmaster.store.writes import NewEvent
from tests.contract.station.conftest import opener
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.spine_values import label, spec
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.stored_jobs import change_row, cost_of, machine_of, put_trained


@pytest.fixture(scope="module")
def people(
    request: pytest.FixtureRequest, station_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalWorld]:
    """Jobs of three people; tests that only look share them."""
    with opener(request, station_kind, tmp_path_factory.mktemp("people"))() as world:
        store = world.store
        put_trained(store, "abc1", name="one", owner="ann", parameters={"steps": 20, "rank": 8})
        put_trained(store, "abc2", name="two", owner="bob", parameters={"steps": 30, "rank": 8, "note": "x"})
        store.jobs.submit(spec("mine", name="cats/dogs"))
        store.jobs.submit(spec("anns", name="two", owner="ann"))
        store.jobs.submit(spec("runs", name="runs"))
        change_row(store, "runs", state=State.EXECUTING.value, attempt=1)
        store.rentals.put_without_lease(machine_of("runs", held_at=store.now() - 100))
        store.costs.put_without_lease(cost_of("runs", started_at=2_000.0, ended_at=3_000.0))
        store.alerts.raise_without_lease(Alert(kind="silence", message="no answer", job_id="runs"))
        yield world


def without_internals(job: Job) -> tuple[object, ...]:
    return (job.id, job.spec.name, job.spec.owner, job.state, job.outcome, job.progress, job.version)


@every_station
def test_a_job_is_found_by_id_name_or_beginning_among_all_or_those_of_one_person(people: LocalWorld) -> None:
    jobs = people.station.jobs
    assert jobs.find("abc1").spec.owner == "ann"
    assert jobs.find("two").id == "anns", "the newest of that name"
    assert jobs.find("two", owner="bob").id == "abc2"
    assert jobs.find("abc", owner="bob").id == "abc2"
    assert jobs.find("cats/dogs", owner="me").id == "mine", "a job without an owner is the single user's"
    for reference, owner in (("abc1", "bob"), ("mine", "ann"), ("one", "nobody")):
        with pytest.raises(NotFound, match=f"there is no job {reference}"):
            jobs.find(reference, owner=owner)


@every_station
@pytest.mark.parametrize("reference", ["", ".", "..", "a/b", "x" * 500, "nul\0", "%2e", "?", "#", "é" * 60])
def test_no_text_that_names_no_job_does_harm(people: LocalWorld, reference: str) -> None:
    with pytest.raises(NotFound):
        people.station.jobs.find(reference)
    assert people.station.jobs.with_id(reference) is None
    with pytest.raises(NotFound):
        people.station.jobs.view(reference)


@every_station
def test_only_a_whole_id_is_an_id(people: LocalWorld) -> None:
    jobs = people.station.jobs
    found = jobs.with_id("abc1")
    assert found is not None
    assert found.id == "abc1"
    for reference in ("abc", "one", "nobody"):
        assert jobs.with_id(reference) is None
        with pytest.raises(NotFound):
            jobs.view(reference)
        with pytest.raises(NotFound):
            jobs.desire(reference, Desired.CANCEL)
        with pytest.raises(NotFound):
            jobs.remove(reference)


@every_station
def test_a_view_has_all_that_belongs_to_the_job(people: LocalWorld) -> None:
    view = people.station.jobs.view("abc1")
    assert (view.shown, view.stage, view.cost) == ("COMPLETED", "completed", 360_000)
    assert (view.job.progress.loss, view.rented_seconds) == (0.25, 3_600.0)
    assert [rental.provider_id for rental in view.rentals] == ["m-abc1"]
    assert [(line.rental_label, line.amount) for line in view.costs] == [(label("abc1"), 360_000)]
    assert [(one.step, one.verified_at) for one in view.checkpoints] == [(20, 5_000.5)]
    assert [alert.message for alert in people.station.jobs.view("runs").alerts] == ["no answer"]


@every_station
def test_jobs_are_listed_newest_first_by_state_and_by_person(people: LocalWorld) -> None:
    jobs = people.station.jobs
    assert [job.id for job in jobs.listed(with_ended=True)] == ["runs", "anns", "mine", "abc2", "abc1"]
    assert [job.id for job in jobs.listed(with_ended=False)] == ["runs", "anns", "mine"]
    assert [job.id for job in jobs.listed(with_ended=True, owner="ann")] == ["anns", "abc1"]
    assert [job.id for job in jobs.listed(with_ended=True, owner="me")] == ["runs", "mine"]
    assert [job.id for job in jobs.listed(with_ended=True, state=State.ENDED, owner="bob")] == ["abc2"]
    assert [job.id for job in jobs.listed(with_ended=False, state=State.EXECUTING)] == ["runs"]
    assert list(jobs.listed(with_ended=True, owner="nobody")) == []


@every_station
def test_the_views_of_a_list_are_those_of_its_jobs(people: LocalWorld) -> None:
    views = people.station.jobs.views(with_ended=True)
    listed = people.station.jobs.listed(with_ended=True)
    assert [without_internals(view.job) for view in views] == [without_internals(job) for job in listed]
    for view in views:
        alone = people.station.jobs.view(view.job.id)
        assert (view.costs, view.rentals, view.checkpoints, view.alerts, view.cost) == (
            alone.costs, alone.rentals, alone.checkpoints, alone.alerts, alone.cost,
        )  # fmt: skip


@every_station
def test_pages_hold_every_job_once_though_jobs_are_added_meanwhile(world: LocalWorld) -> None:
    for number in range(7):
        world.store.jobs.submit(spec(f"job{number}"))
    for job_id in ("job2", "job3", "job4"):  # a page ends among jobs of the same moment
        change_row(world.store, job_id, created_at=world.store.jobs.get("job3").created_at)
    inside = world.local.jobs
    found: list[str] = []
    after: str | None = None
    for number in itertools.count(10):
        page = world.station.jobs.listed(with_ended=True, limit=2, after=after)
        if not page:
            break
        found += [job.id for job in page]
        after = job_cursor(inside.find(page[-1].id))
        world.store.jobs.submit(spec(f"job{number}"))
    assert found == ["job6", "job5", "job2", "job3", "job4", "job1", "job0"]
    with pytest.raises(UserError, match="not the cursor"):
        world.station.jobs.listed(with_ended=True, after="nonsense")


def test_a_list_longer_than_a_page_of_the_server_comes_whole(world: LocalWorld) -> None:
    for number in range(105):
        world.store.jobs.submit(spec(f"job{number}"))
    assert len({job.id for job in world.station.jobs.listed(with_ended=True, limit=1000)}) == 105
    assert len(world.station.jobs.listed(with_ended=True, limit=102)) == 102


@every_station
def test_watching_shows_a_job_until_it_has_ended_and_asks_the_worker_to_look_often(world: LocalWorld) -> None:
    world.store.jobs.submit(spec("mine"))
    change_row(world.store, "mine", state=State.EXECUTING.value)
    views = world.station.jobs.watch("mine")
    first = next(views)
    assert first.job.state is State.EXECUTING
    assert world.store.watchers.is_watched("mine")
    unchanged = next(views)
    assert (unchanged.job, unchanged.now > first.now) == (first.job, True)
    change_row(world.store, "mine", state=State.ENDED.value, outcome="FAILED", reason="STEP_FAILED")
    assert [view.shown for view in views] == ["FAILED"]
    with pytest.raises(NotFound):
        next(iter(world.station.jobs.watch("nobody")))


@every_station
def test_looking_once_makes_no_worker_look_often(people: LocalWorld) -> None:
    people.station.jobs.view("runs")
    assert not people.store.watchers.is_watched("runs")


@every_station
def test_what_a_training_is_asked_for_is_counted_and_answered(world: LocalWorld) -> None:
    world.store.jobs.submit(spec("mine"))
    for times, request in ((1, Request.SAVE), (2, Request.SAVE), (1, Request.SAMPLE)):
        wanted = world.station.jobs.ask("mine", request)
        assert wanted.job.times_asked(request) == times
        assert "as soon as it starts" in wanted.note
    world.station.jobs.desire("mine", Desired.STOP)
    with pytest.raises(IllegalMove, match="already stopping"):
        world.station.jobs.ask("mine", Request.SAVE)


def test_an_ended_job_can_only_be_removed(world: LocalWorld) -> None:
    put_trained(world.store, "mine")
    with pytest.raises(AlreadyEnded, match="already COMPLETED"):
        world.station.jobs.ask("mine", Request.SAVE)
    with pytest.raises(AlreadyEnded, match="already COMPLETED"):
        world.station.jobs.desire("mine", Desired.CANCEL_KEEP)
    world.station.jobs.remove("mine")
    assert world.station.jobs.with_id("mine") is None


@pytest.mark.parametrize("desired", [Desired.STOP, Desired.CANCEL, Desired.CANCEL_KEEP])
def test_a_job_that_ends_in_the_queue_is_said_to_have_rented_nothing(world: LocalWorld, desired: Desired) -> None:
    world.store.jobs.submit(spec("mine"))
    note = world.station.jobs.desire("mine", desired).note
    assert note == "the job ends before it began; nothing was rented"


def test_a_job_that_waits_for_a_machine_is_not_said_to_have_one(world: LocalWorld) -> None:
    world.store.jobs.submit(spec("mine"))
    change_row(world.store, "mine", state=State.PROVISIONING.value, attempt=1)
    assert "if a machine was rented for it" in world.station.jobs.desire("mine", Desired.STOP).note


@every_station
def test_costs_are_split_by_what_happened_and_stay_when_the_job_is_removed(world: LocalWorld) -> None:
    store = world.store
    put_trained(store, "mine")
    put_trained(store, "anns", owner="ann")
    with store.database.write() as connection:
        for version, kind, at in ((10, "training_started", 1_000.0), (11, "state", 2_800.0)):
            new = NewEvent(kind=kind, payload={"from": "EXECUTING"})
            events.append(connection, events.rows("mine", [new], version=version, now=at))
    (mine,) = world.station.costs.lines("mine")
    assert (mine.shares.training, mine.shares.stalled, mine.shares.idle, mine.shares.setup) == (180_000, 0, 180_000, 0)
    assert (mine.line.rate_per_hour, mine.line.source) == (360_000, "estimate")
    assert [line.line.job_id for line in world.station.costs.lines()] == ["anns", "mine"]
    world.station.jobs.remove("mine")
    (kept,) = world.station.costs.lines(owner="me")
    assert kept.line.job_id.startswith("mine~")
    assert kept.shares == mine.shares
    for reference in ("mine", kept.line.job_id):
        assert of_removed_job(world.station.costs.lines(), reference) == [kept]
    for other in ("min", "anns", "mine~"):
        assert of_removed_job(world.station.costs.lines(), other) == []
    assert [line.line.job_id for line in world.station.costs.lines(owner="ann")] == ["anns"]
    assert list(world.station.costs.lines(owner="nobody")) == []


@every_station
def test_jobs_are_compared_by_what_differs_and_what_came_of_it(people: LocalWorld) -> None:
    found = people.station.jobs.compare(["abc1", "two", "abc2"])
    assert [job.id for job in found.jobs] == ["abc1", "anns", "abc2"]
    assert found.differing == {"note": (None, None, "x"), "rank": (8, None, 8), "steps": (20, None, 30)}
    assert found.same_parameters == 0
    pair = people.station.jobs.compare(["abc1", "abc2"])
    assert (pair.differing, pair.same_parameters) == ({"note": (None, "x"), "steps": (20, 30)}, 1)
    first = pair.jobs[0]
    assert (first.shown, first.gpu, first.hours, first.cost, first.quoted_cost) == (
        "COMPLETED", "RTX 4090", 1.0, 360_000, 360_000,
    )  # fmt: skip
    assert (first.step, first.total_steps, first.first_loss, first.last_loss) == (20, 20, 1.5, 0.25)
    assert first.dataset == "images", "not the folders before it"


def test_what_cannot_be_compared_is_refused_in_words(people: LocalWorld) -> None:
    for references, words in ((["abc1", "one"], "itself"), (["abc1"], "two to 10"), (["abc1"] * 11, "two to 10")):
        with pytest.raises(UserError, match=words):
            people.station.jobs.compare(references)
    with pytest.raises(NotFound, match="nobody"):
        people.station.jobs.compare(["abc1", "nobody"])
