"""The monitor's loop: few list calls, logs side by side, and nothing that waits for a machine that does not answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stationmaster.control.monitoring.mock import MockMachines
from stationmaster.errors import AccessRefused, ProviderBusy, Unreachable
from tests.support.asynchronous_tests import asynchronous
from tests.support.monitoring.scripted_source import LOG, ONE, TWO, Bench, ScriptedSource, listed

FLEET = tuple(replace(ONE, id=str(number)) for number in range(20))


@asynchronous
async def test_the_first_look_follows_the_listing_and_the_next_one_the_logs() -> None:
    source = ScriptedSource(seen=listed(*FLEET))
    async with Bench(source) as bench:
        await bench.time.pass_by(5.0)
        first, second = bench.looks
        assert (len(first.snapshot.instances), first.complete, second.complete) == (20, False, True)
        assert {each.step for each in first.snapshot.instances} == {None}
        assert {each.step for each in second.snapshot.instances} == {100}
        assert (source.list_calls, source.most_reading, len(source.reads)) == (1, 20, 20)


@pytest.mark.parametrize("every", [1.0, 3.0, 10.0])
@asynchronous
async def test_an_hour_takes_at_most_360_list_calls_whatever_the_interval(every: float) -> None:
    source = ScriptedSource(seen=listed(ONE))
    async with Bench(source, every_seconds=every) as bench:
        await bench.time.pass_by(3599.0)
        assert 355 <= source.list_calls <= 360
        assert len(source.reads) == pytest.approx(3600 / every, rel=0.02)


@asynchronous
async def test_a_hundred_machines_that_change_every_second_make_about_one_look_a_second() -> None:
    bench = Bench(ScriptedSource(), every_seconds=1.0, list_every_seconds=1.0)
    machines = MockMachines(ids=tuple(str(number) for number in range(100)), clock=bench.time.timing.clock)
    bench.monitor._listing = bench.monitor._logs = machines
    async with bench:
        await bench.time.pass_by(30.0)
        assert 28 <= len(bench.looks) <= 33
        last = bench.looks[-1].snapshot
        assert len(last.instances) == 100
        assert last.summary.running > 85


@asynchronous
async def test_a_machine_that_never_answers_delays_neither_the_others_nor_the_listing() -> None:
    source = ScriptedSource(seen=listed(*FLEET), silent={"3"})
    async with Bench(source, every_seconds=1.0) as bench:
        await bench.time.pass_by(2.0)
        shown = {each.id: each.step for each in bench.looks[-1].snapshot.instances}
        assert shown.pop("3") is None
        assert set(shown.values()) == {100}
        await bench.time.pass_by(58.5)
        assert source.list_calls == 7
        assert source.reads.count("3") == 1
        assert source.reads.count("4") >= 60


@asynchronous
async def test_machines_that_fail_are_tried_less_and_less_often_and_at_once_after_a_refresh() -> None:
    source = ScriptedSource(seen=listed(ONE, TWO), logs={"1": Unreachable("no route")})
    async with Bench(source, every_seconds=1.0) as bench:
        await bench.time.pass_by(600.0)
        tries = source.reads.count("1")
        assert 12 <= tries <= 18
        bench.monitor.refresh()
        await bench.time.pass_by(0.5)
        assert source.reads.count("1") == tries + 1
        source.logs = {}
        await bench.time.pass_by(61.0)
        assert (bench.looks[-1].snapshot.instances[0].step, bench.looks[-1].snapshot.instances[0].problem) == (
            100,
            None,
        )
        assert bench.warnings == ["no log of instance 1: no route"]


@asynchronous
async def test_many_dead_machines_leave_room_for_the_others() -> None:
    dead = {str(number) for number in range(60)}
    machines = [replace(ONE, id=str(number)) for number in range(90)]
    source = ScriptedSource(seen=listed(*machines), logs=dict.fromkeys(dead, Unreachable("no route")))
    async with Bench(source, every_seconds=1.0) as bench:
        await bench.time.pass_by(5.0)
        source.silent = dead
        await bench.time.pass_by(120.0)
        source.reads.clear()
        await bench.time.pass_by(10.0)
        assert source.reads.count("75") >= 9
        assert source.most_reading <= 32


@asynchronous
async def test_a_provider_that_does_not_answer_leaves_the_last_known_state_marked_as_old() -> None:
    source = ScriptedSource(seen=listed(ONE))
    async with Bench(source) as bench:
        await bench.time.pass_by(5.0)
        fresh = bench.looks[-1].snapshot
        source.seen = ProviderBusy("it cannot be reached")
        await bench.time.pass_by(10.0)
        old = bench.looks[-1].snapshot
        assert old.stale
        assert old.instances == (replace(fresh.instances[0], stale=True),)
        source.seen = listed(ONE)
        await bench.time.pass_by(10.0)
        again = bench.looks[-1].snapshot
        assert (again.stale, again.instances[0].stale) == (False, False)
        assert again.instances[0].seen_at > old.instances[0].seen_at
        assert bench.warnings == ["it cannot be reached; showing the last known state"]


@asynchronous
async def test_a_listing_that_never_comes_is_given_up_and_asked_for_again() -> None:
    source = ScriptedSource(seen=None)
    async with Bench(source, wanted=("7",), api_seconds=0.05) as bench:
        await bench.time.pass_by(1.0, while_busy=lambda: bench.monitor.is_asking)
        (look,) = bench.looks
        assert (look.snapshot.stale, look.complete) == (True, True)
        assert look.warnings == ("the provider did not answer within 0.05 s; showing the last known state",)
        source.seen = listed(replace(ONE, id="7"))
        await bench.time.pass_by(10.0)
        assert bench.looks[-1].snapshot.instances[0].step == 100


@asynchronous
async def test_a_key_that_never_worked_is_an_error_and_one_that_stopped_working_a_warning() -> None:
    refused = AccessRefused("invalid key")
    bench = Bench(ScriptedSource(seen=refused))
    with pytest.raises(AccessRefused):
        await bench.monitor.run()
    source = ScriptedSource(seen=listed(ONE))
    async with Bench(source) as later:
        await later.time.pass_by(5.0)
        source.seen = refused
        await later.time.pass_by(10.0)
        assert later.looks[-1].snapshot.stale


@asynchronous
async def test_a_refresh_asks_at_once_but_at_most_once_a_second() -> None:
    source = ScriptedSource(seen=listed(ONE))
    async with Bench(source) as bench:
        await bench.time.pass_by(3.0)
        bench.monitor.refresh()
        await bench.time.pass_by(0.1)
        assert (source.list_calls, source.reads.count("1")) == (2, 2)
        for _ in range(50):
            bench.monitor.refresh()
            await bench.time.pass_by(0.1)
        assert source.list_calls <= 8


@asynchronous
async def test_while_paused_nothing_is_asked_and_no_look_comes() -> None:
    source = ScriptedSource(seen=listed(ONE))
    async with Bench(source) as bench:
        await bench.time.pass_by(5.0)
        bench.monitor.set_paused(True)
        before = (len(bench.looks), source.list_calls, len(source.reads))
        await bench.time.pass_by(300.0)
        assert (len(bench.looks), source.list_calls, len(source.reads)) == before
        assert source.forgotten == ["1"], "a machine must not go on sending"
        bench.monitor.set_paused(False)
        await bench.time.pass_by(1.0)
        assert (source.list_calls, len(source.reads)) == (before[1] + 1, before[2] + 1)
        assert len(bench.looks) == before[0] + 1


@asynchronous
async def test_only_what_is_new_in_a_log_is_read_and_cleared_lines_stay_away() -> None:
    source = ScriptedSource(seen=listed(ONE), logs={"1": LOG})
    async with Bench(source) as bench:
        await bench.time.pass_by(5.0)
        bench.monitor.clear_logs()
        source.logs["1"] = LOG + b"Step 200: Loss = 1.5\n"
        await bench.time.pass_by(10.0)
        machine = bench.looks[-1].snapshot.instances[0]
        assert (machine.logs, machine.logged_lines) == (("Step 200: Loss = 1.5",), 3)
        assert (machine.step, machine.loss, machine.total_epochs) == (200, 1.5, 3)


@asynchronous
async def test_a_forgotten_machine_leaves_nothing_open() -> None:
    source = ScriptedSource(seen=listed(ONE, TWO))
    async with Bench(source) as bench:
        await bench.time.pass_by(5.0)
        source.seen = listed(ONE)
        await bench.time.pass_by(3700.0)
        assert source.forgotten == ["2"]
        assert [each.id for each in bench.looks[-1].snapshot.instances] == ["1"]
        assert set(bench.monitor._reading) == {"1"}
