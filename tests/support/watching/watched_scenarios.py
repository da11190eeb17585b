"""Trainings on rented machines, each with its own trouble, under one real worker; notifications go to Telegram.

What happens is driven by steps and by what was told, never by the clock: a busy computer makes it slower, not other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stationmaster.model import Job, State, User
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest
from tests.support.chaos.storm_station import QUICK, StormForge, StormStation
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.submitting import submit
from tests.support.servers.messenger_server import MessengerServer
from tests.support.vast.simulated_vast import quick_settings

COMMAND = str(Path(sys.executable).with_name("stationmaster"))
ME, ANN = "4711", "17"
FAULTS = {"cut": "none", "pauses": "none", "crawls": "slow", "hangs": "stall", "saves": "hang_saving", "nans": "nan"}
NAMES = tuple(FAULTS)
OWNED_BY_ANN = "hangs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How long everything takes: seconds for every day, the product's own limits for a night."""

    step_seconds: float
    healthy_steps: int  # before the trouble begins: long enough to know the usual pace
    save_every: int
    endless_steps: int  # of runs that are ended before
    pauses_steps: int
    cut_seconds: float
    cut_steps: int
    patience_seconds: float
    names: Sequence[str] = NAMES  # of the runs that there are
    monitoring: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # monitoring by the run's name
    environ: Mapping[str, str] = field(default_factory=dict)
    pace: Mapping[str, str] = field(default_factory=lambda: QUICK)  # how often the station looks at everything


class WatchedStation:
    """A station at a simulator, with its jobs submitted and its own worker."""

    def __init__(self, scale: Scale, storm: StormStation, server: MessengerServer, folder: Path) -> None:
        self.worker: subprocess.Popen[bytes] | None = None
        self.scale = scale
        self.storm = storm
        self.server = server
        self._folder = folder

    def submit(self, pictures: Path) -> None:
        with closing(LocalStation(self.storm.settings, self.storm.environ)) as station:
            station.store.users.put(User(name="ann", telegram_id=ANN))
            for name in self.scale.names:  # one by one: all at once would all ask for the cheapest machine
                submit(station, self._request(name, pictures))
                self.until(lambda: self._has_machine(name), f"a machine for {name}")  # noqa: B023 (waited for here)

    def job(self, name: str) -> Job:
        return self.storm.job(name)

    def kinds(self, name: str) -> list[str]:
        return [event.kind for event in self.storm.store.events.of_job(name)]

    def until(self, condition: Callable[[], object], what: str) -> None:
        self.storm.until(lambda: condition() or self._is_worker_gone(), what, seconds=self.scale.patience_seconds)
        assert not self._is_worker_gone(), f"the worker has ended before: {what}\n{self.storm.story()}"

    def until_ended(self, name: str) -> Job:
        self.until(lambda: self.job(name).state is State.ENDED, f"the end of {name}")
        return self.job(name)

    def pause(self) -> None:
        """The run that recovers pauses at a step until the stall was reported, then continues."""
        self.until(lambda: (self.job("pauses").progress.step or 0) >= self.scale.healthy_steps, "steps of `pauses`")
        (file,) = (self._folder / "simulator").rglob("pauses/.trackside/training.pid")
        group = os.getpgid(int(file.read_text().split()[0]))
        os.killpg(group, signal.SIGSTOP)
        try:
            self.until(lambda: "stall_flagged" in self.kinds("pauses"), "the pause, flagged as a stall")
        finally:
            os.killpg(group, signal.SIGCONT)

    def cut(self) -> None:
        """The link of the run that is cut falls silent for longer than every limit of home, once it has saved."""
        self.until(lambda: self.storm.store.checkpoints.of_job("cut"), "a first checkpoint of `cut`")
        (rental,) = self.storm.store.rentals.of_job("cut")
        self.storm.customer.arm("partition", instance_id=int(rental.provider_id or 0), seconds=self.scale.cut_seconds)
        self.until(lambda: self.job("cut").unreachable_since is not None, "the silence")

    def titles(self, name: str) -> list[str]:
        """First lines of a job's notifications, in the order of arrival."""
        about = [message for message in self.server.received if f"\nJob: {name}\n" in f"{message.text}\n"]
        wanted = ANN if name == OWNED_BY_ANN else ME
        assert {message.recipient for message in about} <= {wanted, ME}, about
        return [message.text.splitlines()[0] for message in about]

    def text(self, name: str, title: str) -> str:
        (found,) = [
            message.text
            for message in self.server.received
            if message.text.startswith(title) and f"\nJob: {name}\n" in f"{message.text}\n"
        ]
        return found

    def _has_machine(self, name: str) -> bool:
        return any(rental.provider_id for rental in self.storm.store.rentals.of_job(name))

    def _is_worker_gone(self) -> bool:
        return self.worker is None or self.worker.poll() is not None

    def _request(self, name: str, pictures: Path) -> TrainRequest:
        scale = self.scale
        steps = {"pauses": scale.pauses_steps, "cut": scale.cut_steps}.get(name, scale.endless_steps)
        return TrainRequest(
            recipe="tiny-lora@1",
            dataset=pictures,
            id=name,
            name=name,
            owner="ann" if name == OWNED_BY_ANN else None,
            provider="simulator",
            max_hours=8,
            parameters={
                "steps": steps,
                "seconds_per_step": scale.step_seconds,
                "save_every": scale.save_every,
                "sample_every": 100_000,
                "fault": FAULTS[name],
                "fault_at": scale.healthy_steps,
                "python": sys.executable,
            },
            monitoring={
                "reactions": {"nan_loss": "stop"},
                **scale.monitoring,
                **scale.own.get(name, {}),
            },
        )


@contextmanager
def watched_station(scale: Scale, folder: Path) -> Iterator[WatchedStation]:
    """All are on their way, and a worker is at them; afterwards nothing of them is left."""
    with ExitStack() as stack:
        server = stack.enter_context(MessengerServer())
        hosts = 70 * len(scale.names)  # a cheap one for each among them
        url = stack.enter_context(simulator_thread(quick_settings(folder / "simulator", hosts=hosts)))
        environ = {
            **server.environ,
            "STATIONMASTER_NOTIFY__TELEGRAM_ID": ME,
            "STATIONMASTER_LIMITS__MAX_RENTALS": str(len(scale.names)),
            "STATIONMASTER_VASTAI__GUARD_IDLE": "12h",
            **scale.environ,
        }
        storm = stack.enter_context(closing(StormStation(folder / "home", url, StormForge(), scale.pace, **environ)))
        station = WatchedStation(scale, storm, server, folder)
        station.worker = stack.enter_context(_worker(storm))
        station.submit(write_pictures(folder / "pictures"))
        yield station


@contextmanager
def _worker(storm: StormStation) -> Iterator[subprocess.Popen[bytes]]:
    with (storm.home / "worker.log").open("ab") as log:
        worker = subprocess.Popen([COMMAND, "worker"], env=storm.environ, cwd=storm.home, stdout=log, stderr=log)
    try:
        yield worker
    finally:
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(timeout=150)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def in_order(found: Sequence[str], *wanted: str) -> bool:
    """Whether all of `wanted` occur in this order, possibly with others between them."""
    rest = iter(found)
    return all(one in rest for one in wanted)
