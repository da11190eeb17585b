"""One real training on this computer, whose workers and helpers are killed by real signals."""

from __future__ import annotations

import atexit
import os
import random
import select
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType

from stationmaster.model import DatasetRef, State
from stationmaster.providers.labelled_processes import processes_of
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.chaos.invariants import check_store
from tests.support.chaos.machines import fates
from tests.support.chaos.specs import a_job
from tests.support.chaos.worker import Order, as_line
from tests.support.killing import kill
from tests.support.programs import ROOT, program
from tests.support.waiting import until

JOB = "job-1"
STATES = tuple(state for state in State if state is not State.ENDED)
_PATIENCE_SECONDS = 150.0
# About as many points as a worker passes in each state, so that a kill drawn from them happens.
# Fewer than there are: a worker that finds no such point in its state goes on to the job's end.
_POINTS_IN_STATE = {
    State.QUEUED: 3,
    State.PROVISIONING: 10,
    State.TRANSFERRING_DATA: 20,
    State.EXECUTING: 6,
    State.FETCHING_RESULTS: 6,
    State.FINALIZING: 3,
    State.RELEASING: 6,
}


class WorkerForge:
    """Forks workers from a process that has imported everything; they end with the block, at the latest."""

    def __init__(self) -> None:
        self._handles: list[int] = []

    def __enter__(self) -> WorkerForge:
        self._process = subprocess.Popen(
            program("chaos.worker"), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()

    def start(self, order: Order) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(as_line(order))
        self._process.stdin.flush()
        return self._kept(int(self._process.stdout.readline()))

    def kill_all(self) -> None:
        """What was forked so far; the forge stays."""
        while self._handles:
            handle = self._handles.pop()
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)

    def _kept(self, pid: int) -> int:
        """Keep a handle: by the time everything ends, the pid may belong to another process."""
        for handle in [handle for handle in self._handles if select.select([handle], [], [], 0)[0]]:
            self._handles.remove(handle)  # it has ended
            os.close(handle)
        with suppress(ProcessLookupError):
            self._handles.append(os.pidfd_open(pid))
        return pid


@cache
def worker_forge() -> WorkerForge:
    """The one forge of this process, which ends with it: its start costs more than most workers."""
    forge = WorkerForge().__enter__()
    atexit.register(forge.__exit__, None, None, None)
    return forge


class LoopbackStation:
    """A store and a home with one job, and the kills that it has survived."""

    def __init__(self, folder: Path, dataset: DatasetRef, forge: WorkerForge, *, url: str | None = None) -> None:
        self.home = folder
        self.kills: Counter[tuple[str, str]] = Counter()
        self._forge = forge
        folder.mkdir(parents=True, exist_ok=True)
        self._order = Order(
            url=url or f"sqlite:///{folder / 'store.db'}", home=str(folder), log=str(folder / "worker.log")
        )
        self.store = Store(Database(self._order.url))
        wanted = {"steps": 40, "seconds_per_step": 0.05, "save_every": 20, "sample_every": 40}
        parameters = resolve(find("tiny-lora@1").recipe, wanted)
        self.store.jobs.submit(
            a_job(JOB, folder, recipe="tiny-lora@1", provider="loopback", dataset=dataset, parameters=parameters)
        )

    def start_worker(self, **changes: object) -> int:
        return self._forge.start(replace(self._order, **changes))  # type: ignore[arg-type]

    def kill_worker_in(self, state: State, randomness: random.Random) -> None:
        """A worker that dies at a drawn point of `state`, or in the midst of what follows that point."""
        delay = randomness.choice([0.0, 0.0, randomness.uniform(0.001, 0.08)])
        nth = randomness.randint(1, _POINTS_IN_STATE[state])
        pid = self.start_worker(kill_state=state.value, kill_nth=nth, kill_delay_seconds=delay)
        self.until(lambda: not is_alive(pid), f"the worker's death in {state}")
        if f"in {state.value}\n" in self.log() and not self.exit_status(pid):
            self.kills["worker", state.value] += 1

    def kill_helpers(self, randomness: random.Random) -> None:
        """trackside's supervisor and a shim, in either order, while a worker looks on; then that worker."""
        worker = self.start_worker()
        for kind in randomness.sample(["supervisor", "shim"], 2):
            self._kill_helper(kind)
        state = self.state()
        if is_alive(worker):
            kill(worker)
            self.kills["worker", state.value] += 1
        self.until(lambda: not is_alive(worker), "the worker's death")

    def _kill_helper(self, kind: str) -> None:
        found: list[int] = []

        def there() -> bool:
            found[:] = [pid for pid in self.processes() if process_name(pid) == kind]
            return bool(found) or self.state() not in (State.TRANSFERRING_DATA, State.EXECUTING)

        self.until(there, f"a {kind} process")
        for pid in found[:1]:
            state = self.state()
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            self.kills[kind, state.value] += 1

    def finish(self) -> None:
        """Run a worker that is not killed: it takes the job to its end and leaves."""
        pid = self.start_worker()
        self.until(lambda: not is_alive(pid), "the last worker's end")
        assert self.exit_status(pid) == "0", self.log()[-4000:]

    def check(self) -> None:
        """All that holds after any crash; raises AssertionError."""
        check_store(self.store, JOB)
        assert self.processes() == [], "something is left running"
        machines = self.home / "machines"
        assert [path.name for path in machines.iterdir() if not path.name.startswith(".")] == [], "a machine is left"
        made = fates(self.home)
        rented = {rental.provider_id for rental in self.store.rentals.of_job(JOB)}
        assert {fate.provider_id for fate in made} <= rented, f"a machine without a rental: {made}"
        assert [fate.used for fate in made].count(True) == 1, f"two machines were used: {made}"
        self._check_tries()

    def _check_tries(self) -> None:
        """Each try's log is that of one process: begun once, its steps counted up once."""
        text: dict[str, bytes] = {}
        for _, chunk in self.store.logs.of_job(JOB, limit=100_000):
            text[chunk.stream] = text.get(chunk.stream, b"") + chunk.data
        # The first try of a step may have been killed before it printed anything.
        assert {stream.partition(".")[0] for stream in text} == {"0", "1"}
        for stream, log in text.items():
            opening = b"Running 1 job" if stream.startswith("1.") else b"NumPy "
            assert log.count(opening) <= 1, f"try {stream} was started twice"
        tries = len([stream for stream in text if stream.startswith("1.")])
        assert tries <= 1 + self.kills["shim", State.EXECUTING.value], f"the training ran {tries} times"

    def state(self) -> State:
        return self.store.jobs.get(JOB).state

    def processes(self) -> list[int]:
        """Every process of every machine that was ever made."""
        if not (self.home / "machines.jsonl").exists():
            return []
        return [pid for fate in fates(self.home) for pid in processes_of(fate.provider_id)]

    def until(self, condition: Callable[[], object], what: str) -> None:
        until(condition, what, story=lambda: f"in {self.state()}\n{self.log()[-4000:]}")

    def log(self) -> str:
        path = Path(self._order.log)
        return path.read_text(errors="replace") if path.exists() else ""

    def exit_status(self, pid: int) -> str:
        """The error that ended the worker's process; empty if it was killed."""
        path = Path(f"{self._order.log}.{pid}.exit")
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        self.store.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip()
    except OSError:
        return ""  # ended meanwhile
