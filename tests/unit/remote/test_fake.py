"""The machine in memory fails exactly as it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.numpy

from stationmaster.errors import HostKeyRefused, Unreachable
from stationmaster.remote.base import Completed
from stationmaster.remote.fake import Call, ConnectionFault, FakeRemote
from stationmaster.remote.fake_run import FakeRun, Script, safetensors_bytes
from stationmaster.remote.fake_trackside import FakeTrackside
from stationmaster.remote.host import Host
from stationmaster.remote.status import Since
from tests.support.asynchronous_tests import asynchronous, names_in


class Counting:
    """A machine whose `count` counts."""

    def __init__(self) -> None:
        self.remote = FakeRemote()
        self.executed = 0
        self.remote.on("count", self._count)

    def _count(self, call: Call) -> Completed:
        self.executed += 1
        return Completed(exit_status=0, stdout=b"done")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (ConnectionFault.REFUSED, Unreachable),
        (ConnectionFault.VANISHED, Unreachable),
        (ConnectionFault.CUT_BEFORE, Unreachable),
        (ConnectionFault.HANG, Unreachable),
        (ConnectionFault.HOST_KEY_CHANGED, HostKeyRefused),
    ],
)
@asynchronous
async def test_before_the_deed_nothing_is_executed(fault: ConnectionFault, error: type[Exception]) -> None:
    machine = Counting()
    machine.remote.fail(fault)
    with pytest.raises(error):
        await machine.remote.run(["count"], timeout=0.01)
    assert machine.executed == 0
    assert (await machine.remote.run(["count"], timeout=1)).exit_status == 0


@asynchronous
async def test_a_cut_after_the_deed_loses_only_the_answer(tmp_path: Path) -> None:
    machine = Counting()
    (tmp_path / "file").write_bytes(b"x")
    machine.remote.fail(ConnectionFault.CUT_AFTER, times=4)
    assert await machine.remote.run(["count"], timeout=1) == Completed(exit_status=None)
    with pytest.raises(Unreachable):
        await machine.remote.push(tmp_path / "file", "/there")
    with pytest.raises(Unreachable):
        await machine.remote.pull("/there", tmp_path / "back", size=1)
    with pytest.raises(Unreachable):
        await machine.remote.stat("/there")
    assert (machine.executed, machine.remote.files) == (1, {"/there": b"x"})
    assert names_in(tmp_path) == ["file"]


@asynchronous
async def test_a_fault_can_be_meant_for_one_word_and_last_until_healed() -> None:
    machine = Counting()
    machine.remote.fail(ConnectionFault.VANISHED, times=None, only="stat")
    assert (await machine.remote.run(["count"], timeout=1)).exit_status == 0
    for _ in range(3):
        with pytest.raises(Unreachable):
            await machine.remote.stat("/x")
    machine.remote.heal()
    assert await machine.remote.stat("/x") is None


def test_its_checkpoints_are_real_safetensors_files() -> None:
    opened = safetensors.numpy.load(safetensors_bytes(250))
    assert [(name, tensor.shape) for name, tensor in opened.items()] == [("lora.weight", (2,))]


PLAN: dict[str, Any] = {
    "job": "cat",
    "steps": [
        {"name": "check", "argv": ["true"]},
        {
            "name": "train",
            "argv": ["t"],
            "training": True,
            "tries": 2,
            "backoff_seconds": [60.0],
            "expect": ["m.safetensors"],
        },
    ],
    "outputs": [{"pattern": "out/*.safetensors", "kind": "checkpoint"}, {"pattern": "samples/*", "kind": "sample"}],
}


def started(script: Script) -> FakeRun:
    run = FakeRun(root="/job", script=script, files={"/job/plan.json": json.dumps(PLAN).encode()}, mtimes={})
    assert run.read_plan()
    run.start(1000.0, {})
    return run


def step_states(run: FakeRun, now: float) -> list[tuple[str, int]]:
    return [(step["state"], step["try"]) for step in run.status(now, since=None)["steps"]]


def test_progress_follows_the_clock_and_nothing_else() -> None:
    run = started(Script(training_steps=100, checkpoint_every=40, sample_every=50, other_step_seconds=10.0))
    assert step_states(run, 1005.0) == [("running", 1), ("pending", 0)]
    for _ in range(3):
        assert step_states(run, 1010.0 + 79.0) == [("done", 1), ("running", 1)]
        assert [output["path"] for output in run.outputs()][:1] == ["out/cat_000000040.safetensors"]
    assert step_states(run, 1110.0) == [("done", 1), ("done", 1)]
    assert [(output["path"], output["mtime"]) for output in run.outputs()][:2] == [
        ("out/cat_000000040.safetensors", 1050.0),
        ("out/cat_000000080.safetensors", 1090.0),
    ]
    assert sum(output["kind"] == "sample" for output in run.outputs()) == 2
    assert run.finished == {"result": "done", "step": None, "exit_code": None, "at": 1110.0}


def test_after_a_reboot_the_try_is_unknown_and_the_next_one_waits_for_a_start_and_its_pause() -> None:
    run = started(Script())
    run.reboot(1050.0)
    after = run.status(1051.0, since=None)
    assert (after["boot_id"], after["supervisor"]["alive"], after["training_alive"]) == ("boot-2", False, False)
    assert (after["steps"][1]["failure"], after["steps"][1]["exit_known"]) == ("unknown_exit", False)
    assert step_states(run, 2000.0) == [("done", 1), ("pending", 1)]
    run.start(2000.0, {})
    assert step_states(run, 2001.0) == [("done", 1), ("running", 2)]
    assert run.tries_started == {("check", 1): 1, ("train", 1): 1, ("train", 2): 1}


def test_a_hanging_training_lives_and_says_nothing_more() -> None:
    run = started(Script(hangs_at=30))
    first = len(run.status(1030.0, since={})["log"][1]["data"])
    later = run.status(100_000.0, since={})
    assert (later["training_alive"], len(later["log"][1]["data"])) == (True, first)


@asynchronous
async def test_one_machine_serves_many_jobs_and_counts_their_tries() -> None:
    remote = FakeRemote()
    trackside = FakeTrackside(remote, tick_seconds=500.0)
    hosts = [Host(remote, root=f"/jobs/{n}") for n in range(3)]
    for host in hosts:
        remote.files[host.path("trackside.pyz")] = b""
        await host.put_plan(PLAN)
        await host.start()
    for host in hosts:
        assert (await host.status(Since())).finished is not None
    assert set(trackside.tries_started().values()) == {1}
    assert len(trackside.tries_started()) == 6
    assert trackside.run("/jobs/1").finished is not None


@asynchronous
async def test_a_machine_without_trackside_answers_as_python_does() -> None:
    remote = FakeRemote()
    FakeTrackside(remote)
    done = await remote.run(["python3", "/job/trackside.pyz", "--root", "/job", "status"], timeout=1)
    assert done.exit_status == 2
    assert b"can't open file" in done.stderr
