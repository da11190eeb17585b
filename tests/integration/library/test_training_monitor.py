"""The monitor on its own, over a real process whose log it has never seen from the beginning."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.library import JobInfo, Poll, TrainingMonitor
from stationmaster.remote.fake import ConnectionFault, FakeRemote
from stationmaster.remote.local import LocalRemote
from stationmaster.watch.policy import StallPolicy
from tests.support.asynchronous_tests import asynchronous, until

# Prints a bar like ai-toolkit's: to step 40 at once, then one step per line read from standard input.
TRAINER = """
import sys
def bar(step):
    pace = "[00:%02d<05:00, 2.00it/s, lr: 1.0e-04 loss: %.3e]" % (step % 60, 1 / (step + 1))
    sys.stderr.write("\\rlora: %3d%%|##| %d/400 %s" % (step / 4, step, pace))
    sys.stderr.flush()
for step in range(41):
    bar(step)
for line in sys.stdin:
    bar(int(line))
"""


class Training:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "out").mkdir()
        self.log = (folder / "train.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-c", TRAINER], stdin=subprocess.PIPE, stderr=self.log, start_new_session=True
        )
        (folder / "pid").write_text(str(self.process.pid))

    def go_to(self, step: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{step}\n".encode())
        self.process.stdin.flush()

    def info(self) -> JobInfo:
        names = {"logFile": "train.log", "pidFile": "pid", "outputDir": "out"}
        return JobInfo.from_mapping({key: str(self.folder / name) for key, name in names.items()})

    def monitor(self, policy: StallPolicy | None = None) -> TrainingMonitor:
        remote = LocalRemote(root=self.folder, environment={"PATH": os.environ["PATH"]})
        return TrainingMonitor(remote, self.info(), policy)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.log.close()


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Training]:
    running = Training(tmp_path)
    yield running
    running.end()


async def step_seen(monitor: TrainingMonitor, step: int) -> Poll:
    found = await monitor.poll()
    for _ in range(200):
        if found.parsed.step == step:
            break
        found = await monitor.poll()
    return found


@asynchronous
async def test_a_poll_tells_whether_it_runs_how_far_it_is_and_what_it_saved(training: Training) -> None:
    (training.folder / "out" / "lora_000000030.safetensors").write_bytes(b"x" * 9)
    found = await step_seen(training.monitor(), 40)
    assert found.is_running is True
    assert (found.parsed.step, found.parsed.total_steps) == (40, 400)
    assert [(one.step, one.size) for one in found.checkpoints] == [(30, 9)]
    assert set(found.as_json()) == {"isRunning", "parsed", "stallAnalysis", "checkpoints", "problem"}


@asynchronous
async def test_a_monitor_that_comes_after_goes_on_where_the_first_one_was(training: Training) -> None:
    first = training.monitor()
    await step_seen(first, 40)
    training.go_to(55)
    second = training.monitor()
    second.restore(json.loads(json.dumps(first.state())))
    assert (await step_seen(second, 55)).parsed.step == 55


@asynchronous
async def test_streaming_tells_new_steps_until_it_is_stopped(training: Training) -> None:
    polls: list[Poll] = []
    stop = training.monitor().start_streaming(polls.append, interval_seconds=0.05)
    await until(lambda: any(poll.parsed.step == 40 for poll in polls), what="step 40 streamed")
    training.go_to(77)
    await until(lambda: polls[-1].parsed.step == 77, what="step 77 streamed")
    await stop()


@asynchronous
async def test_the_training_is_ended_with_everything_it_started(training: Training) -> None:
    monitor = training.monitor()
    assert await monitor.stop_training(grace_seconds=5.0) is True
    assert training.process.wait(timeout=30) == -signal.SIGTERM
    assert (await monitor.poll()).is_running is False
    assert await monitor.stop_training() is True  # it is dead already


@asynchronous
async def test_a_machine_that_does_not_answer_says_nothing_about_the_training() -> None:
    remote = FakeRemote()
    remote.fail(ConnectionFault.VANISHED)
    monitor = TrainingMonitor(remote, JobInfo(log_file="/l", pid_file="/p", output_dir="/o"))
    found = await monitor.poll()
    assert found.is_running is None
    assert found.problem is not None
    assert not found.stall.is_stalling


@asynchronous
async def test_a_process_that_only_waits_for_its_parent_is_not_running(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    stat = Path(f"/proc/{ended.pid}/stat")
    await until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "Z", what="a zombie")
    (tmp_path / "pid").write_text(str(ended.pid))
    info = {"log_file": str(tmp_path / "train.log"), "pid_file": str(tmp_path / "pid"), "output_dir": str(tmp_path)}
    monitor = TrainingMonitor(LocalRemote(root=tmp_path, environment={"PATH": os.environ["PATH"]}), info)
    assert (await monitor.poll()).is_running is False
    ended.wait()


@asynchronous
async def test_the_latest_checkpoint_is_that_of_the_highest_step(training: Training) -> None:
    names = [
        "lora_000001000.safetensors",
        "lora_000000900.safetensors",
        "lora_v2.safetensors",
        "lora_step8.safetensors",
    ]
    for age, name in enumerate(names):  # the highest step is the oldest file
        file = training.folder / "out" / name
        file.write_bytes(b"x")
        os.utime(file, (1_700_000_000 + age, 1_700_000_000 + age))
    found = await training.monitor().get_checkpoints()
    assert [(Path(one.path).name, one.step) for one in found] == [
        ("lora_step8.safetensors", 8),
        ("lora_000000900.safetensors", 900),
        ("lora_000001000.safetensors", 1000),
        ("lora_v2.safetensors", None),  # a final save
    ]


@asynchronous
async def test_a_trainer_that_nobody_knows_is_read_by_patterns(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("tick 7 of 90 cost 0.5\nkept as a.bin\n")
    info = JobInfo.from_mapping(
        {
            "logFile": str(tmp_path / "train.log"),
            "pidFile": str(tmp_path / "pid"),
            "outputDir": str(tmp_path),
            "logPatterns": [
                r"tick (?P<step>\d+) of (?P<total_steps>\d+) cost (?P<loss>\S+)",
                {"pattern": r"kept as (?P<checkpoint>\S+)", "phase": "saving"},
            ],
        }
    )
    monitor = TrainingMonitor(LocalRemote(root=tmp_path, environment={"PATH": os.environ["PATH"]}), info)
    read = (await monitor.poll()).parsed
    assert (read.step, read.total_steps, read.loss, list(read.checkpoints)) == (7, 90, 0.5, ["a.bin"])
    with pytest.raises(ConfigInvalid):
        JobInfo.from_mapping({"logFile": "/l", "pidFile": "/p", "outputDir": "/o", "logPatterns": ["("]})
