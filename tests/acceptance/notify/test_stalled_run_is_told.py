"""A real training stalls under a real worker, with scaled limits: its owner reads it in Telegram, to the letter."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings
from stationmaster.model import State
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest
from tests.support.commands.command_line import command_server
from tests.support.jobs.local_world import write_pictures
from tests.support.servers.messenger_server import MessengerServer
from tests.support.waiting import until

PATIENCE_SECONDS = 120.0
NAME = "cats <b>*_"
THRESHOLDS = {
    "min_window": "4s",  # many steps, which are long beside what a busy computer adds to them
    "patience_steps": 10,
    "patience_lines": 2,
    "near_end_eta": "1s",
    "resume_span": "1s",
    "resume_window": "2s",
    "start_limit": "20s",
}
STALLED = {"steps": 120, "seconds_per_step": 0.15, "save_every": 30, "fault": "stall", "fault_at": 69}
QUICK = {"steps": 40, "seconds_per_step": 0, "save_every": 20}

STALL = re.compile(
    r"""⚠️ Training Stall Detected

Job: cats <b>\*_
Progress: 6\d/120 \(5\d(\.\d+)?%\)
Issue: ETA not converging \([^\n]*no new step since step 6\d[^\n]*[^.]\)

Auto-terminating in 0\.03 minutes unless progress resumes\.
Latest checkpoint: step 60"""
)
TERMINATED = """\
🛑 Training Terminated

Job: cats <b>*_
Reason: Stall detected, grace period expired
Final checkpoint: step {saved}
Model will be uploaded as incomplete."""


@pytest.fixture(scope="module")
def server() -> Iterator[MessengerServer]:
    with MessengerServer() as started:
        yield started
    assert started.wrong == []


@pytest.fixture(scope="module")
def station(server: MessengerServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStation]:
    """A home with a worker of its own; afterwards no process of it is left."""
    folder = tmp_path_factory.mktemp("told")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(folder / "home"),
        "STATIONMASTER_WORKER__LOOK": "0.2",
        "STATIONMASTER_NOTIFY__TELEGRAM_ID": "4711",
        **server.environ,
    }
    pictures = write_pictures(folder / "pictures")
    with closing(LocalStation(load_settings(environ, folder=folder), environ)) as opened:
        stall = {"thresholds": THRESHOLDS}
        monitoring = {"gracePeriod": 2000, "poll_interval": 0.5, "save_timeout": 2, "stallDetection": stall}
        submit(opened, pictures, "stalls", NAME, STALLED, monitoring)
        submit(opened, pictures, "finishes", "dogs", QUICK, {"poll_interval": 0.2})
        command = [command_server().own_command, "worker"]
        worker = subprocess.Popen(command, env=environ, cwd=folder, stderr=subprocess.DEVNULL)
        try:
            yield opened
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(timeout=150)
            for rental in opened.store.rentals.not_gone():
                for pid in processes_of(rental.label):
                    os.kill(pid, signal.SIGKILL)


def submit(
    station: LocalStation,
    pictures: Path,
    job_id: str,
    name: str,
    parameters: dict[str, Any],
    monitoring: dict[str, Any],
) -> None:
    request = TrainRequest(
        recipe="tiny-lora@1", dataset=pictures, id=job_id, name=name, parameters=parameters, monitoring=monitoring
    )
    station.proposals.submit(station.proposals.propose(request).id)


def messages_about(server: MessengerServer, name: str) -> list[str]:
    return [text for text in server.texts() if f"\nJob: {name}\n" in f"{text}\n"]


def told(server: MessengerServer, station: LocalStation, job_id: str, name: str, *, last: str) -> list[str]:
    """What arrived about a job once it has ended and its last message is there."""
    until(lambda: station.jobs.view(job_id).job.state is State.ENDED, what=f"{job_id} ended")
    until(lambda: any(text.startswith(last) for text in messages_about(server, name)), what=f"told: {last}")
    return messages_about(server, name)


def test_a_stall_and_its_end_arrive_to_the_letter(station: LocalStation, server: MessengerServer) -> None:
    texts = told(server, station, "stalls", NAME, last="🟡 Training ended early")
    titles = [text.splitlines()[0] for text in texts]
    stall, terminated = titles.index("⚠️ Training Stall Detected"), titles.index("🛑 Training Terminated")
    assert STALL.fullmatch(texts[stall]), texts[stall]
    saved = max(one.step or 0 for one in station.jobs.view("stalls").checkpoints)  # it saves once more when it is ended
    assert texts[terminated] == TERMINATED.format(saved=saved)
    assert titles[0] == "🚂 Training started"
    assert titles[-1] == "🟡 Training ended early"
    assert stall < terminated
    assert titles.count("📈 Training at 50%") == 1
    assert len(titles) == len(set(texts)), "something was told twice"


def test_a_finished_training_tells_what_came_of_it(station: LocalStation, server: MessengerServer) -> None:
    texts = told(server, station, "finishes", "dogs", last="✅ Training completed")
    (completed,) = [text for text in texts if text.startswith("✅ Training completed")]
    lines = dict(line.split(": ", 1) for line in completed.splitlines()[2:])
    assert lines["Steps"] == "40/40 (100%)"
    assert float(lines["Final loss"]) > 0
    assert Path(lines["Model"]).is_file()
    assert lines["Cost"] == "$0.00"
    assert not any("Stall" in text for text in texts)


def test_everything_that_was_sent_is_in_the_inbox_too(station: LocalStation, server: MessengerServer) -> None:
    told(server, station, "stalls", NAME, last="🟡 Training ended early")
    kept = [note.text for note in station.store.inbox.of_user("me")]
    assert set(server.texts()) <= set(kept)
