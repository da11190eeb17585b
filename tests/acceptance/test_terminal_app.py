"""The terminal app as a person uses it: in a real terminal, on real trainings of a simulated Vast.ai."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from stationmaster.model import Desired, Outcome, Reason, State
from tests.support.jobs.local_world import write_pictures
from tests.support.terminal.tmux import RESTORED, Tmux
from tests.support.vast.simulator_service import Service, simulator_service

_COMMAND = str(Path(sys.executable).with_name("stationmaster"))
_THRESHOLDS = {
    "min_window": "3s",
    "patience_steps": 8,
    "patience_lines": 2,
    "near_end_eta": "1s",
    "resume_span": "1s",
    "resume_window": "2s",
    "start_limit": "20s",
}
_MONITORING = {
    "gracePeriod": 600_000,
    "poll_interval": 0.5,
    "save_timeout": 2,
    "stallDetection": {"thresholds": _THRESHOLDS},
}
_STEPS = {"seconds_per_step": 0.1, "save_every": 20, "sample_every": 100_000}
_TRAININGS = {
    "stuck": {**_STEPS, "steps": 4000, "fault": "stall", "fault_at": 45},
    "cats": {**_STEPS, "steps": 120},
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with simulator_service(tmp_path) as service:
        yield service
        service.until(lambda: not service.alive(), "the end of all machines")


def begin(service: Service, name: str, folder: Path) -> None:
    """Start a training and wait for its machine: several at once would race for the same offer."""
    parameters = _TRAININGS[name]
    dataset = str(folder / "pictures")
    job = {"recipe": "tiny-lora@1", "dataset": dataset, "parameters": parameters, "monitoring": _MONITORING}
    (folder / f"{name}.yaml").write_text(json.dumps(job))
    done = service.run("train", str(folder / f"{name}.yaml"), "--id", name, "--name", name, "--yes")
    assert done.returncode == 0, done.stderr
    service.until(lambda: any(each.provider_id for each in service.store.rentals.of_job(name)), "its machine")


def test_two_trainings_are_watched_and_the_one_that_stalls_is_stopped(service: Service, tmp_path: Path) -> None:
    write_pictures(tmp_path / "pictures")
    with Tmux(environ=service.environ, cwd=tmp_path, columns=140, rows=40) as terminal:
        terminal.start(_COMMAND, "watch")
        terminal.until_shown("nothing to show yet")
        for name in _TRAININGS:
            begin(service, name, tmp_path)
            terminal.until_screen(partial(shows, id=name, status="training"), f"{name} in training")
        terminal.until_screen(partial(shows, id="stuck", status="stalled"), "the stall")
        terminal.press("/")
        terminal.type("stuck")
        terminal.press("Enter")
        terminal.until_shown("1 of 2")
        terminal.press("Enter")
        terminal.until_shown("stalled: ", "loss", "memory")
        terminal.press("Escape")
        terminal.until_shown("1 of 2")
        terminal.press("x")
        terminal.until_shown("Stop stuck?")
        assert service.job("stuck").desired is Desired.RUN, "nothing happens before the answer"
        terminal.press("y")
        terminal.until_screen(partial(shows, id="stuck", status="stopped"), "its end")
        terminal.press("Escape")
        terminal.until_screen(partial(shows, id="cats", status="done"), "the end of the other one")
        terminal.press("q")
        assert terminal.exit_code() == 0
        assert terminal.modes() == RESTORED
    service.until(lambda: all(service.job(name).state is State.ENDED for name in _TRAININGS), "the end of both")
    stopped = service.job("stuck")
    assert (stopped.outcome, stopped.reason) == (Outcome.INCOMPLETE, Reason.STOPPED_BY_USER)
    assert service.job("cats").outcome is Outcome.COMPLETED


def shows(screen: Sequence[str], *, id: str, status: str) -> bool:
    """Whether the row of this training has this status."""
    return any(line.lstrip(" ●▲✖·").startswith(f"{id} ") and status in line for line in screen)
