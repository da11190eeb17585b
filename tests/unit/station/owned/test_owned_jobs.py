"""One user's jobs and costs: nothing of others, nothing of the server's folders, and no change without the right."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import RIGHTS, Caller, Desired, Request, Right, Role, State
from stationmaster.station.base import Station
from stationmaster.station.costs import Period
from stationmaster.station.owned.station import station_of_caller
from stationmaster.station.wire.jobs import JobDocument
from stationmaster.store import events
from stationmaster.store.writes import NewEvent
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.spine_values import ACCESS, spec
from tests.support.jobs.stored_jobs import change_row, put_trained

ANN = Caller(user="ann", role=Role.USER, rights=RIGHTS[Role.USER])
BOB = Caller(user="bob", role=Role.USER, rights=RIGHTS[Role.USER])
VERA = Caller(user="ann", role=Role.VIEWER, rights=RIGHTS[Role.VIEWER])
READER = Caller(user="ann", role=Role.USER, rights=frozenset({Right.READ}), token="t1")
OPERATOR = Caller(user="me", role=Role.ADMIN, rights=frozenset(Right))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWorld]:
    with LocalWorld(tmp_path_factory.mktemp("owned")) as opened:
        put_trained(opened.store, "abc1", name="cats", owner="ann")
        put_trained(opened.store, "abc2", name="cats", owner="bob", resume_from="/srv/home/jobs/old/a.safetensors")
        opened.store.jobs.submit(spec("abc3", name="dogs"))
        opened.store.jobs.submit(spec("abc4", name="dogs", owner="bob"))
        yield opened


def of(world: LocalWorld, caller: Caller) -> Station:
    return station_of_caller(caller, world.station)


def test_a_name_or_beginning_finds_only_one_s_own_jobs(world: LocalWorld) -> None:
    jobs = of(world, ANN).jobs
    assert (jobs.find("cats").id, jobs.find("abc").id, jobs.find("abc1", owner="ann").id) == ("abc1", "abc1", "abc1")
    for reference, owner in (("abc2", None), ("dogs", None), ("abc3", None), ("abc1", "bob"), ("abc2", "bob")):
        with pytest.raises(NotFound) as refused:
            jobs.find(reference, owner=owner)
        assert str(refused.value) == f"there is no job {reference}"


def test_a_list_has_only_one_s_own_jobs_whoever_is_asked_for(world: LocalWorld) -> None:
    jobs = of(world, BOB).jobs
    assert [job.id for job in jobs.listed(with_ended=True)] == ["abc4", "abc2"]
    assert [view.job.id for view in jobs.views(with_ended=True, owner="bob", limit=1)] == ["abc4"]
    assert list(jobs.listed(with_ended=True, owner="ann")) == []
    assert list(jobs.views(with_ended=True, owner="me")) == []


def test_the_single_user_without_the_role_sees_jobs_without_an_owner(world: LocalWorld) -> None:
    me = Caller(user="me", role=Role.USER, rights=RIGHTS[Role.USER])
    assert [job.id for job in of(world, me).jobs.listed(with_ended=True)] == ["abc3"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda jobs, job_id: jobs.view(job_id),
        lambda jobs, job_id: jobs.view(job_id, watching=True),
        lambda jobs, job_id: next(jobs.watch(job_id)),
        lambda jobs, job_id: jobs.desire(job_id, Desired.CANCEL),
        lambda jobs, job_id: jobs.ask(job_id, Request.SAVE),
        lambda jobs, job_id: jobs.remove(job_id),
        lambda jobs, job_id: jobs.compare(["abc1", job_id]),
        lambda jobs, job_id: jobs.find(job_id),
    ],
)
def test_another_s_job_is_refused_as_one_that_does_not_exist(world: LocalWorld, ask: Callable[..., object]) -> None:
    said = []
    for job_id in ("abc2", "abc3", "abc9"):
        with pytest.raises(NotFound) as refused:
            ask(of(world, ANN).jobs, job_id)
        said.append((str(refused.value).replace(job_id, "JOB"), refused.value.hint))
    assert said[0] == said[1] == said[2]
    assert of(world, ANN).jobs.with_id("abc2") is None
    assert world.store.jobs.get("abc4").desired is Desired.RUN


@pytest.mark.parametrize("caller", [VERA, READER])
def test_who_may_only_look_changes_nothing(world: LocalWorld, caller: Caller) -> None:
    jobs = of(world, caller).jobs
    assert jobs.view("abc1").job.id == "abc1"
    with pytest.raises(Forbidden):
        jobs.remove("abc1")
    with pytest.raises(Forbidden):
        jobs.desire("abc1", Desired.STOP)
    with pytest.raises(Forbidden):
        jobs.ask("abc1", Request.SAMPLE)
    assert world.store.jobs.get("abc1").desired is Desired.RUN


def test_a_user_stops_and_removes_what_is_theirs(world: LocalWorld) -> None:
    world.store.jobs.submit(spec("abc5", name="birds", owner="ann"))
    jobs = of(world, ANN).jobs
    assert jobs.ask("abc5", Request.SAVE).job.saves_asked == 1
    assert jobs.desire("abc5", Desired.STOP).job.desired is Desired.STOP
    change_row(world.store, "abc5", state=State.ENDED.value, outcome="CANCELLED", reason="CANCELLED_BY_USER")
    jobs.remove("abc5")
    assert world.store.jobs.matching("abc5") == []


def test_folders_of_the_server_are_shown_to_administrators_only(world: LocalWorld) -> None:
    hidden = JobDocument.of(of(world, BOB).jobs.view("abc2")).model_dump_json()
    assert "/srv" not in hidden
    assert "/images" not in hidden
    view = of(world, BOB).jobs.view("abc2")
    assert [one.location for one in view.checkpoints] == ["cats.safetensors"]
    assert (view.job.spec.dataset.source, view.job.spec.resume_from) == ("images", "a.safetensors")
    shown = of(world, OPERATOR).jobs.view("abc2")
    assert shown.checkpoints[0].location == "/srv/home/jobs/abc2/cats.safetensors"


def test_what_happened_is_told_without_folders_of_the_server(world: LocalWorld) -> None:
    saved = NewEvent(kind="save_ended", payload={"places": ["/srv/home/a.safetensors"], "files": ["output/a"]})
    with world.store.database.write() as connection:
        events.append(connection, events.rows("abc2", [saved], version=10, now=1.0))
    (mine,) = of(world, BOB).events.of_job("abc2", after_version=9)
    assert mine.payload == {"places": ["a.safetensors"], "files": ["output/a"]}
    assert of(world, OPERATOR).events.of_job("abc2", after_version=9)[0].payload["places"] != ["a.safetensors"]


def test_how_to_reach_a_machine_is_not_told(world: LocalWorld) -> None:
    world.store.jobs.submit(spec("abc6", name="birds", owner="bob"))
    memory = '{"access": {"kind": "local", "root": "/m", "job_root": "/m/jobs", "environment": []}}'
    change_row(world.store, "abc6", state=State.EXECUTING.value, memory=memory)
    assert of(world, OPERATOR).jobs.view("abc6").access is not None
    mine = of(world, BOB).jobs
    assert (mine.view("abc6").access, mine.view("abc6").job.machine.access) == (None, None)
    assert mine.find("abc6").machine.access is None
    assert ACCESS.root not in JobDocument.of(mine.view("abc6")).model_dump_json()


def test_costs_are_those_of_one_s_own_jobs(world: LocalWorld) -> None:
    costs = of(world, ANN).costs
    assert [line.line.job_id for line in costs.lines()] == ["abc1"]
    assert [line.line.job_id for line in costs.lines("abc1")] == ["abc1"]
    assert list(costs.lines(owner="bob")) == []
    with pytest.raises(NotFound, match="there is no job abc2"):
        costs.lines("abc2")


def test_own_jobs_are_compared_with_each_other_only(world: LocalWorld) -> None:
    found = of(world, BOB).jobs.compare(["cats", "dogs"])
    assert [job.id for job in found.jobs] == ["abc2", "abc4"]


def test_the_overview_and_costs_over_time_are_of_one_s_own_jobs_whoever_is_asked_for(world: LocalWorld) -> None:
    bobs, anns = of(world, BOB).overview.look(), of(world, ANN).overview.look(owner="bob")
    assert {row.owner for row in bobs.rows} == {"bob"}
    assert {row.owner for row in anns.rows} == {"ann"}
    everything = of(world, OPERATOR).overview.look()
    assert {row.owner for row in everything.rows} == {None, "ann", "bob"}
    period = Period(start=0.0, seconds=86_400.0, count=1)
    anns_cost = sum(paid.shares.total for paid in of(world, ANN).costs.lines())
    assert 0 < anns_cost < everything.summary.spent_total
    assert anns.summary.spent_total == of(world, ANN).costs.over_time(period, owner="bob").total == anns_cost
    assert of(world, OPERATOR).costs.over_time(period).total == everything.summary.spent_total
    with pytest.raises(NotFound):
        of(world, ANN).costs.budget("bob")
