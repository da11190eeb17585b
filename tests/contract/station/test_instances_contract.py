"""Machines as every face sees them: looked at, swept, and ended by a person who has counted them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from stationmaster.errors import UserError
from stationmaster.model import Desired, Outcome, Requirements, State
from stationmaster.money import ZERO, MicroDollars, from_dollars
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.station.instances import Act, Fleet, Instances, Report
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.jobs.submitting import submit

OpenWorld = Callable[..., LocalWorld]
_FOREIGN, _OTHERS = "somebody-else", "sm-ab12cd34-theirs-1"


def rent(world: LocalWorld, *labels: str, price_per_hour: MicroDollars = ZERO) -> None:
    """Machines that no job of this installation knows of."""
    provider = LoopbackProvider(world.settings.home / "machines", environment={}, price_per_hour=price_per_hour)
    (offer,) = asyncio.run(provider.offers(Requirements()))
    for label in labels:
        asyncio.run(provider.create(offer, label=label, want=Requirements()))


def stray(world: LocalWorld) -> str:
    return f"sm-{world.store.installation_id}-nobody-1"


def labels(instances: Instances) -> set[str]:
    return {finding.machine.label for finding in instances.look().findings}


def labels_of(world: LocalWorld, fleet: Fleet) -> set[str]:
    return {machine.label for machine in world.station.instances.machines_of(fleet)}


@pytest.fixture
def three(open_world: OpenWorld) -> LocalWorld:
    """A machine of ours that nobody needs, one of another installation, one that is not Stationmaster's."""
    world = open_world(STATIONMASTER_SWEEP__GRACE="0")
    rent(world, stray(world), _OTHERS, _FOREIGN)
    return world


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[LocalWorld]:
    """A station whose job `busy` has a machine, for tests that leave it both."""
    settings = {"STATIONMASTER_LOOPBACK__PRICE_PER_HOUR": "36", "STATIONMASTER_SWEEP__GRACE": "0"}
    with HttpWorld(tmp_path_factory.mktemp("busy"), **settings) as world:
        with_machine(world, pictures)
        yield world


def test_a_look_tells_what_would_be_done_and_does_nothing(three: LocalWorld) -> None:
    ours = stray(three)
    for _ in range(2):
        report = three.station.instances.look()
        verdicts = {finding.machine.label: finding.verdict.act for finding in report.findings}
        assert verdicts[ours] is Act.ALERT
        assert verdicts[_FOREIGN] is Act.LEAVE
        assert verdicts.keys() == {ours, _OTHERS, _FOREIGN}
        assert not any(finding.done for finding in report.findings)
        assert (report.gone, report.problems) == ([], [])


def test_what_machines_cost_is_told_for_each_and_for_all(busy: LocalWorld) -> None:
    rent(busy, _FOREIGN, price_per_hour=from_dollars("7200"))
    report = busy.station.instances.look()
    costs = {finding.job_id: finding.cost for finding in report.findings}
    (line,) = busy.store.costs.of_job("busy")
    assert 0 < costs["busy"] <= line.so_far(now=busy.store.now())
    assert costs[None] > 0, "by its price and age: no job has it"
    assert report.cost == sum(costs.values())
    assert report.price_per_hour == from_dollars("7236")


def test_without_machines_there_is_nothing_to_tell(world: LocalWorld) -> None:
    assert world.station.instances.look() == Report(findings=[], gone=[], problems=[])


@every_station
def test_a_sweep_ends_what_an_earlier_one_has_told_of_and_nothing_else(three: LocalWorld) -> None:
    instances = three.station.instances
    assert not any(finding.done for finding in instances.sweep().findings)
    assert {finding.verdict.act for finding in instances.look().findings} == {Act.DESTROY, Act.LEAVE}
    assert labels(instances) == {stray(three), _OTHERS, _FOREIGN}
    assert {finding.machine.label for finding in instances.sweep().findings if finding.done} == {stray(three)}
    assert labels(instances) == {_OTHERS, _FOREIGN}


def test_a_machine_that_a_job_needs_outlives_a_sweep(busy: LocalWorld) -> None:
    for _ in range(2):
        (finding,) = [each for each in busy.station.instances.sweep().findings if each.machine.label != _FOREIGN]
        assert (finding.verdict.act, finding.done, finding.job_id) == (Act.LEAVE, False, "busy")


def test_a_provider_that_does_not_answer_is_told_beside_the_others(open_world: OpenWorld) -> None:
    world = open_world(VASTAI_API_KEY="key", VASTAI_API_BASE_URL="http://127.0.0.1:1")
    rent(world, _FOREIGN)
    report = world.station.instances.look()
    assert [finding.machine.label for finding in report.findings] == [_FOREIGN]
    assert [problem.partition(":")[0] for problem in report.problems] == ["vastai"]


@pytest.mark.parametrize(
    ("fleet", "others"),
    [
        (Fleet(installation="ab12cd34"), {_OTHERS}),
        (Fleet(installation="ab12cd34", with_foreign=True), {_OTHERS}),
        (Fleet(installation="nobody"), set()),
    ],
)
def test_machines_of_another_installation_are_meant_by_its_name(
    three: LocalWorld, fleet: Fleet, others: Collection[str]
) -> None:
    assert labels_of(three, fleet) == others


def test_without_a_name_this_installation_s_machines_are_meant_and_others_only_if_asked_for(three: LocalWorld) -> None:
    assert labels_of(three, Fleet()) == {stray(three)}
    assert labels_of(three, Fleet(with_foreign=True)) == {stray(three), _OTHERS, _FOREIGN}


def test_nothing_ends_and_no_job_is_cancelled_where_the_number_is_wrong(busy: LocalWorld) -> None:
    before = labels(busy.station.instances)
    machines = busy.station.instances.machines_of(Fleet())
    for count in (0, len(machines) + 1):
        with pytest.raises(UserError, match=f"{count} was typed, but there are {len(machines)}"):
            busy.station.instances.destroy(machines, count=count)
    assert labels(busy.station.instances) == before
    assert busy.station.jobs.find("busy").desired is Desired.RUN


@every_station
def test_machines_that_were_counted_end_and_their_jobs_rent_no_others(world: LocalWorld, pictures: Path) -> None:
    with_machine(world, pictures)
    rent(world, _OTHERS, _FOREIGN)
    machines = world.station.instances.machines_of(Fleet())
    ended = world.station.instances.destroy(machines, count=1)
    assert ended.cancelled == ("busy",)
    assert [finding.done for finding in ended.report.findings if finding.job_id] == [True]
    assert labels(world.station.instances) == {_OTHERS, _FOREIGN}
    world.work_until_ended("busy")
    assert world.station.jobs.find("busy").outcome is Outcome.CANCELLED
    assert labels(world.station.instances) == {_OTHERS, _FOREIGN}


def test_a_machine_without_a_job_ends_by_its_installation_s_name(three: LocalWorld) -> None:
    machines = three.station.instances.machines_of(Fleet(installation="ab12cd34"))
    assert three.station.instances.destroy(machines, count=1).cancelled == ()
    assert _OTHERS not in labels(three.station.instances)
    assert _FOREIGN in labels(three.station.instances)


def with_machine(world: LocalWorld, pictures: Path) -> None:
    """A job called `busy` that trains on a machine, and would for long."""
    submit(world.local, world.request(pictures, id="busy", parameters={"steps": 5000, "seconds_per_step": 0.05}))
    world.work_until(lambda: world.store.jobs.get("busy").state is State.EXECUTING, what="a training")
