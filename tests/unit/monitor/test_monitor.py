"""The monitor's cycle: one list call, logs side by side, and the last known state when something fails."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from stationmaster.control.monitoring.monitor import Monitor, Sighting, Sightings
from stationmaster.control.monitoring.monitor_mock import MockSource
from stationmaster.errors import AccessRefused, ProviderBusy, ProviderError, Unreachable
from stationmaster.money import MicroDollars
from tests.support.asynchronous_tests import asynchronous

ONE = Sighting(id="1", status="running", gpu_percent=50.0, cost_per_hour=MicroDollars(3_600_000), started_at=0.0)
TWO = replace(ONE, id="2")
LOG = b"Epoch 1/3\nStep 100: Loss = 2.345\n"


@dataclass
class ScriptedSource:
    """Answers as the test says; counts how often it is asked."""

    seen: Sightings | ProviderError | None = None
    tails: dict[str, bytes | Unreachable] = field(default_factory=dict)
    list_calls: int = 0
    together: int = 0
    most_together: int = 0

    async def machines(self) -> Sightings:
        self.list_calls += 1
        if self.seen is None:
            await asyncio.Event().wait()
        if isinstance(self.seen, ProviderError):
            raise self.seen
        assert self.seen is not None
        return self.seen

    async def log_tail(self, machine: Sighting) -> bytes:
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.together -= 1
        tail = self.tails.get(machine.id, LOG)
        if isinstance(tail, Unreachable):
            raise tail
        return tail


class Watched:
    def __init__(self, source: ScriptedSource, **options: object) -> None:
        self.warnings: list[str] = []
        self.monitor = Monitor(source, warn=self.warnings.append, **options)  # type: ignore[arg-type]


def listed(*machines: Sighting, unreadable: tuple[str, ...] = ()) -> Sightings:
    return Sightings(machines=machines, unreadable=unreadable)


@asynchronous
async def test_a_cycle_lists_once_and_reads_all_logs_side_by_side() -> None:
    source = ScriptedSource(seen=listed(*(replace(ONE, id=str(number)) for number in range(20))))
    snapshot = await Watched(source).monitor.cycle(now=3600.0)
    assert (source.list_calls, source.most_together, len(snapshot.instances)) == (1, 20, 20)
    first = snapshot.instances[0]
    assert (first.step, first.loss, first.epoch, first.total_epochs) == (100, 2.345, 1.0, 3)
    assert first.logs == ("Epoch 1/3", "Step 100: Loss = 2.345")
    assert (first.total_cost, first.runtime_seconds) == (3_600_000, 3600.0)


@asynchronous
async def test_three_mock_machines_give_three_sets_of_metrics_after_one_update() -> None:
    monitor = Monitor(MockSource(clock=lambda: 1_000_000.0), warn=pytest.fail)
    snapshot = await monitor.cycle(now=1_000_000.0)
    assert len(snapshot.instances) == 3
    assert all(each.step and each.loss and each.gpu_percent for each in snapshot.instances)
    assert snapshot.summary.running == 3


@asynchronous
async def test_a_provider_that_does_not_answer_leaves_the_last_known_state_marked_as_old() -> None:
    source = ScriptedSource(seen=listed(ONE))
    watched = Watched(source, api_seconds=0.05)
    fresh = await watched.monitor.cycle(now=10.0)
    for silence in (ProviderBusy("it cannot be reached"), None):
        source.seen = silence
        old = await watched.monitor.cycle(now=20.0)
        assert old.stale
        assert old.instances == (replace(fresh.instances[0], stale=True),)
    assert ["last known state" in words for words in watched.warnings] == [True, True]
    source.seen = listed(ONE)
    again = await watched.monitor.cycle(now=30.0)
    assert (again.stale, again.instances[0].stale, again.instances[0].seen_at) == (False, False, 30.0)


@asynchronous
async def test_a_machine_that_vanished_from_the_list_keeps_its_last_state_and_is_told_once() -> None:
    source = ScriptedSource(seen=listed(ONE, TWO))
    watched = Watched(source)
    await watched.monitor.cycle(now=10.0)
    source.seen = listed(ONE)
    for now in (20.0, 30.0):
        snapshot = await watched.monitor.cycle(now=now)
        assert [(each.id, each.stale, each.step) for each in snapshot.instances] == [
            ("1", False, 100),
            ("2", True, 100),
        ]
    assert len(watched.warnings) == 1
    assert "instance 2 is not in the provider's list" in watched.warnings[0]


@asynchronous
async def test_a_machine_that_was_asked_for_and_never_seen_is_shown_as_unknown() -> None:
    watched = Watched(ScriptedSource(seen=listed(ONE, TWO)), wanted=("2", "9"))
    snapshot = await watched.monitor.cycle(now=10.0)
    assert [(each.id, each.status, each.stale) for each in snapshot.instances] == [
        ("2", "running", False),
        ("9", "unknown", True),
    ]


@asynchronous
async def test_entries_that_make_no_sense_are_told_and_the_others_shown() -> None:
    watched = Watched(ScriptedSource(seen=listed(ONE, unreadable=("instance 7 skipped: id: not a number",))))
    snapshot = await watched.monitor.cycle(now=10.0)
    assert [each.id for each in snapshot.instances] == ["1"]
    assert watched.warnings == ["instance 7 skipped: id: not a number"]


@asynchronous
async def test_a_log_that_cannot_be_read_keeps_what_was_known_and_says_why() -> None:
    source = ScriptedSource(seen=listed(ONE, TWO))
    watched = Watched(source)
    await watched.monitor.cycle(now=10.0)
    source.tails = {"1": Unreachable("no route"), "2": b"Step 200: Loss = 1.5\n"}
    snapshot = await watched.monitor.cycle(now=20.0)
    broken, well = snapshot.instances
    assert (broken.step, broken.logs, broken.problem) == (100, ("Epoch 1/3", "Step 100: Loss = 2.345"), "no route")
    assert (well.step, well.loss, well.total_epochs, well.problem) == (200, 1.5, 3, None)
    assert watched.warnings == ["no log of instance 1: no route"]


@asynchronous
async def test_all_shows_running_machines_and_goes_on_showing_one_that_exits() -> None:
    loading = replace(TWO, status="loading")
    source = ScriptedSource(seen=listed(ONE, loading))
    watched = Watched(source, only_running=True)
    assert [each.id for each in (await watched.monitor.cycle(now=10.0)).instances] == ["1"]
    source.seen = listed(replace(ONE, status="exited"), loading)
    snapshot = await watched.monitor.cycle(now=20.0)
    assert [(each.id, each.health_status().value) for each in snapshot.instances] == [("1", "error")]
    assert snapshot.summary.errors == 1


@asynchronous
async def test_a_machine_that_stops_and_costs_less_does_not_get_cheaper_backwards() -> None:
    source = ScriptedSource(seen=listed(ONE))
    watched = Watched(source)
    await watched.monitor.cycle(now=3600.0)
    source.seen = listed(replace(ONE, status="exited", cost_per_hour=MicroDollars(36_000)))
    snapshot = await watched.monitor.cycle(now=7200.0)
    assert snapshot.instances[0].total_cost == 3_600_000 + 36_000


@asynchronous
async def test_a_counter_of_epochs_is_remembered_when_its_line_has_left_the_tail() -> None:
    source = ScriptedSource(seen=listed(ONE), tails={"1": b"Epoch 2/3\nStep 10/100: Loss = 2.0\n"})
    watched = Watched(source)
    first = (await watched.monitor.cycle(now=10.0)).instances[0]
    source.tails = {"1": b"Step 20/100: Loss = 2.0\nStep 21/100: Loss = 2.0\n"}
    second = (await watched.monitor.cycle(now=20.0)).instances[0]
    assert (first.progress_percentage(), second.progress_percentage()) == pytest.approx((110 / 3, 121 / 3))


@asynchronous
async def test_a_key_that_never_worked_is_an_error_and_one_that_stopped_working_a_warning() -> None:
    source = ScriptedSource(seen=AccessRefused("invalid key"))
    watched = Watched(source)
    with pytest.raises(AccessRefused):
        await watched.monitor.cycle(now=10.0)
    source.seen = listed(ONE)
    await watched.monitor.cycle(now=20.0)
    source.seen = AccessRefused("invalid key")
    assert (await watched.monitor.cycle(now=30.0)).stale


@asynchronous
async def test_only_the_last_ten_lines_are_kept_and_redraws_are_shown_as_a_terminal_would() -> None:
    bars = b"".join(b"\r 10%%|#  | %d/100 [00:01<00:09, loss=1.%d]" % (step, step) for step in range(1, 11))
    tail = b"\n".join(b"line %d" % number for number in range(15)) + b"\n" + bars
    watched = Watched(ScriptedSource(seen=listed(ONE), tails={"1": tail}))
    machine = (await watched.monitor.cycle(now=10.0)).instances[0]
    assert len(machine.logs) == 10
    assert machine.logs[0] == "line 6"
    assert machine.logs[-1] == " 10%|#  | 10/100 [00:01<00:09, loss=1.10]"
    assert (machine.step, machine.total_steps) == (10, 100)
