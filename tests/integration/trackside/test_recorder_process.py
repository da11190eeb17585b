"""The supervisor's side of the recorder: one at a time, and restarted, but not without end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.killing import kill
from tests.support.machines.trackside_bench import until_dead
from tests.support.waiting import until
from trackside.machine import clock
from trackside.machine.locks import is_locked
from trackside.machine.process import Process
from trackside.root import Root
from trackside.steps.plan import read_plan
from trackside.steps.recorder_process import RecorderProcess
from trackside.steps.tries import Try

STEP = {"name": "train", "argv": ["true"], "training": True}


@pytest.fixture
def root(tmp_path: Path) -> Root:
    made = Root(str(tmp_path))
    (tmp_path / "plan.json").write_text(
        json.dumps({"format": 1, "job": "j", "steps": [STEP, {**STEP, "training": False}]})
    )
    made.make_folders()
    return made


def running(*, step: int = 0, number: int = 1) -> Try:
    moment = clock.now()
    return Try(step, number, moment, Process(1234, "1", moment.boot_id, 1234), None, None, settled=False)


def until_recording(root: Root) -> int:
    lock = Path(root.recorder_lock)
    until(lambda: is_locked(root.recorder_lock) and lock.read_text().endswith("}"), "a recorder")
    return int(json.loads(lock.read_text())["pid"])


def test_a_recorder_that_dies_is_restarted_after_a_pause(root: Root) -> None:
    supervisor = RecorderProcess(root, read_plan(root))
    assert supervisor.keep(running(), moment=100.0)
    first = until_recording(root)
    assert supervisor.keep(running(), moment=101.0)
    kill(first)
    until_dead(first)
    Path(root.recorder_lock).write_text("")
    supervisor.keep(running(), moment=105.0)
    assert not is_locked(root.recorder_lock)
    supervisor.keep(running(), moment=110.0)
    second = until_recording(root)
    assert second != first
    kill(second)
    until_dead(second)
    supervisor.finish()


def test_another_try_has_its_own_recorder_at_once(root: Root) -> None:
    supervisor = RecorderProcess(root, read_plan(root))
    supervisor.keep(running(), moment=100.0)
    first = until_recording(root)
    kill(first)
    until_dead(first)
    Path(root.recorder_lock).write_text("")
    supervisor.keep(running(number=2), moment=100.1)
    kill(until_recording(root))
    supervisor.finish()


def test_while_another_recorder_is_alive_none_is_started(root: Root) -> None:
    first, second = RecorderProcess(root, read_plan(root)), RecorderProcess(root, read_plan(root))
    first.keep(running(), moment=100.0)
    pid = until_recording(root)
    second.keep(running(), moment=100.0)
    assert until_recording(root) == pid
    kill(pid)
    until_dead(pid)
    for process in (first, second):
        process.keep(None, moment=100.0)


def test_a_step_that_is_not_a_training_has_none(root: Root) -> None:
    supervisor = RecorderProcess(root, read_plan(root))
    supervisor.begin(1, 1)
    assert not supervisor.keep(running(step=1), moment=100.0)
    supervisor.finish()
    assert not Path(root.recorder_lock).exists()
