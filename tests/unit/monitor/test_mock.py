"""Made-up machines: every state occurs, they are the same for the same seed, and they are marked as made up."""

from __future__ import annotations

import asyncio
import gc

from stationmaster.control.monitoring.instance_metrics import InstanceHealth, InstanceMetrics, Snapshot
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.mock import MockMachines, Role
from stationmaster.control.monitoring.notices import NoticeKind
from tests.support.asynchronous_tests import asynchronous
from tests.support.monitoring.scripted_source import Bench, ScriptedSource


async def looks_at(*ids: str, seconds: float = 5.0, seed: int = 1) -> list[MonitorLook]:
    bench = Bench(ScriptedSource(), every_seconds=1.0, list_every_seconds=1.0, made_up=True, wanted=ids)
    machines = MockMachines(ids=ids, clock=bench.time.timing.clock, seed=seed)
    bench.monitor._listing = bench.monitor._logs = machines
    async with bench:
        await bench.time.pass_by(seconds)
    return bench.looks


@asynchronous
async def test_three_machines_give_three_sets_of_metrics_after_one_update() -> None:
    looks = await looks_at("1", "2", "3", seconds=0.5)
    snapshot = looks[-1].snapshot
    assert len(snapshot.instances) == snapshot.summary.running == 3
    for each in snapshot.instances:
        assert None not in (each.step, each.total_steps, each.epoch, each.loss, each.gpu_percent, each.memory_percent)
        assert each.health_status() is InstanceHealth.HEALTHY
        assert each.cost_per_hour > 0
        assert len(each.logs) == 10


@asynchronous
async def test_every_state_that_a_face_shows_occurs() -> None:
    looks = await looks_at(seconds=300.0)
    assert all(look.snapshot.made_up for look in looks)
    first, last = looks[1].snapshot, looks[-1].snapshot
    by_role = {Role(each.label.removeprefix("mock-")): each for each in last.instances}
    assert set(by_role) == set(Role)
    health = {role: each.health_status().value for role, each in by_role.items()}
    assert health[Role.TRAINING] == "healthy"
    assert {health[role] for role in (Role.IDLE, Role.OVERUSED, Role.DIVERGING, Role.STALLED)} == {"warning"}
    assert (health[Role.EXITED], health[Role.LOADING], health[Role.CREATED]) == ("error", "neutral", "neutral")
    assert by_role[Role.GONE].stale
    assert by_role[Role.SILENT].problem
    assert (by_role[Role.NO_LOSS].loss, by_role[Role.NO_LOSS].progress_percentage()) == (None, None)
    assert by_role[Role.FINISHED].progress_percentage() == 100.0
    assert by_role[Role.STALLED].logs == _of(first, Role.STALLED).logs
    assert by_role[Role.TRAINING].logs != _of(first, Role.TRAINING).logs
    kinds = {notice.kind for look in looks for notice in look.notices}
    assert kinds == set(NoticeKind)


@asynchronous
async def test_the_same_seed_gives_the_same_machines_and_another_one_others() -> None:
    once, again, other = [(await looks_at(seed=seed))[-1].snapshot for seed in (1, 1, 2)]
    assert once == again
    assert once.instances != other.instances


@asynchronous
async def test_each_of_a_hundred_machines_changes_every_second_unless_it_stands_still() -> None:
    ids = tuple(str(number) for number in range(100))
    looks = await looks_at(*ids, seconds=10.0)
    before, after = looks[-2].snapshot, looks[-1].snapshot
    changed = sum(old != new for old, new in zip(before.instances, after.instances, strict=True))
    assert (len(after.instances), changed >= 90) == (100, True)


@asynchronous
async def test_a_long_time_leaves_nothing_behind() -> None:
    bench = Bench(ScriptedSource(), every_seconds=10.0, made_up=True)
    machines = MockMachines(ids=("1", "2", "3"), clock=bench.time.timing.clock)
    bench.monitor._listing = bench.monitor._logs = machines
    async with bench:
        await bench.time.pass_by(600.0)
        bench.looks.clear()
        gc.collect()
        objects, tasks = len(gc.get_objects()), len(asyncio.all_tasks())
        await bench.time.pass_by(1800.0)
        assert len(bench.looks) >= 179
        bench.looks.clear()
        gc.collect()
        assert (len(gc.get_objects()) - objects < 150, len(asyncio.all_tasks())) == (True, tasks)


def _of(snapshot: Snapshot, role: Role) -> InstanceMetrics:
    return next(each for each in snapshot.instances if each.label == f"mock-{role}")
