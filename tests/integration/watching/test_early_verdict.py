"""Real trainings beside a real recorder: one that sleeps is flagged by proof, one that spins or only rests is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.states.executing.log_watch import read_log
from stationmaster.model import Watching
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.status import Since, parse_status
from stationmaster.settings import MonitoringSettings
from stationmaster.watch.escalation import FLAGGED, StallEvent
from tests.support.jobs.spine_values import job
from tests.support.jobs.tiny_lora_runs import command, write_images
from tests.support.machines.trackside_bench import Bench, bench
from tests.support.waiting import until

STEPS = 100_000
# A window of 20 s, of which proof needs 12; without proof, the patience of endless steps passes first.
MONITORING = MonitoringSettings.model_validate(
    {"stall_detection": {"thresholds": {"min_window": "20s", "patience_steps": 1_000_000, "collapse_hold": "1h"}}}
)
SPINS = """
import time
for step in range(200):
    print(f"Step {step}: Loss = 0.5", flush=True)
    time.sleep(0.02)
while True:  # a third of a core, to leave some for other tests
    busy_until = time.monotonic() + 0.1
    while time.monotonic() < busy_until:
        pass
    time.sleep(0.2)
"""


class WatchedTraining:
    """A training under trackside, and the stall watch over its statuses."""

    def __init__(self, machine: Bench, argv: list[str]) -> None:
        self.machine = machine
        self.events: list[StallEvent] = []
        self._job = job("j", watching=Watching())
        machine.plan({"name": "train", "argv": argv, "training": True}, monitoring={"interval_seconds": 0.5})
        machine.start()

    def look(self) -> None:
        since = Since.from_json(self._job.watching.since)
        status = parse_status(self.machine.status({**since.to_json(), "grain": 0.5}))
        found = read_log(self._job, status, framework="auto", monitoring=MONITORING, now=status.wall)
        watching = replace(found.watching, since=since.after(status).to_json())
        self._job = replace(self._job, watching=watching, progress=found.progress)
        self.events += [found.event] if found.event else []

    def story(self) -> str:
        """What the watch knows of the machine."""
        return str((self._job.watching.watch or {}).get("stillness"))

    def seconds_without_a_step(self) -> float:
        return float((self._job.watching.watch or {})["idle"])


@pytest.fixture
def trainings(tmp_path: Path) -> Iterator[dict[str, WatchedTraining]]:
    pictures = write_images(tmp_path / "pictures")
    pyz = build_pyz(tmp_path)

    def tiny_lora(name: str, *options: str) -> list[str]:
        steps = (f"--steps={STEPS}", f"--save-every={STEPS}", f"--sample-every={STEPS}")
        return command(pictures, tmp_path / "output" / name, *steps, *options)

    commands: dict[str, list[str]] = {
        "sleeps": tiny_lora("sleeps", "--fault=stall", "--fault-at=40", "--seconds-per-step=0.05"),
        "rests": tiny_lora("rests", "--seconds-per-step=4"),
        "spins": [sys.executable, "-c", SPINS],
    }
    with ExitStack() as stack:
        yield {
            name: WatchedTraining(stack.enter_context(bench(tmp_path / name, pyz=pyz, is_forked=True)), argv)
            for name, argv in commands.items()
        }


def test_only_the_training_that_provably_does_nothing_is_flagged_early(
    trainings: dict[str, WatchedTraining],
) -> None:
    def all_looked() -> Any:
        for training in trainings.values():
            training.look()
        hangs = trainings["spins"].seconds_without_a_step() > 12.0
        return hangs and trainings["sleeps"].events

    (flag,) = until(all_looked, "the flag of the training that sleeps", story=trainings["sleeps"].story)
    assert flag.kind == FLAGGED
    assert flag.analysis.is_early
    assert "nothing read or written" in flag.analysis.reason
    assert "asleep" in flag.analysis.reason
    assert trainings["spins"].events == []
    assert trainings["rests"].events == []
