"""An installation whose machines are rented from a simulator; its workers and sweepers are killed by real signals."""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from stationmaster.config import load_settings
from stationmaster.control.periodic.provider_bills import reconcile_charges
from stationmaster.control.wiring.build import build_world
from stationmaster.model import Job, JobSpec, Rental, RentalState, State
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.tables import jobs, rentals
from tests.support.chaos.loopback import WorkerForge, is_alive
from tests.support.chaos.storm_recipe import check_nobody_trained_twice, write_storm_recipe
from tests.support.chaos.storm_worker import StormOrder
from tests.support.killing import kill
from tests.support.programs import ROOT, program
from tests.support.vast.simulated_vast import API_KEY, Customer
from tests.support.waiting import until

QUICK = {
    "STATIONMASTER_MONITORING__POLL_INTERVAL": "0.6",
    "STATIONMASTER_MONITORING__WATCH_INTERVAL": "0.4",
    "STATIONMASTER_WORKER__SWEEP": "1",
    "STATIONMASTER_SWEEP__EVERY": "1",
    "STATIONMASTER_SWEEP__GRACE": "0.5",
    "STATIONMASTER_SSH__KEEPALIVE": "1",
}

_QUIET_START_SECONDS = 3.0
_MOST_SLOWNESS = 4.0


class StormForge(WorkerForge):
    """Forks simulators, workers and sweepers; they end with the block, at the latest.

    `slowness` is how many times longer than on a quiet computer things take here just now, by its own start.
    """

    def __enter__(self) -> StormForge:
        began = time.monotonic()
        self._process = subprocess.Popen(
            program("chaos.storm_worker"), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", "the forge did not start"
        self.slowness = min(_MOST_SLOWNESS, max(1.0, (time.monotonic() - began) / _QUIET_START_SECONDS))
        return self

    def start_process(self, order: StormOrder) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(order)) + "\n")
        self._process.stdin.flush()
        return self._kept(int(self._process.stdout.readline()))

    @contextmanager
    def simulator(self, home: Path, **settings: Any) -> Iterator[str]:
        """The URL of a quick simulator in a separate process; its machines end with the block."""
        home.mkdir(parents=True)
        order = StormOrder(role="simulator", log=str(home / "simulator.log"), simulator={"home": str(home), **settings})
        pid = self.start_process(order)
        try:
            until((home / "url").exists, "the simulator")
            yield (home / "url").read_text()
        finally:
            assert is_running(pid), "the simulator has died"
            os.kill(pid, signal.SIGTERM)
            until(lambda: not is_running(pid), "the simulator's end")


@cache
def storm_forge() -> StormForge:
    """The one forge of this process, which ends with it: its start costs more than a whole job on a machine."""
    forge = StormForge().__enter__()
    atexit.register(forge.__exit__, None, None, None)
    return forge


@dataclass(frozen=True, slots=True, kw_only=True)
class RentalSpan:
    """From when until when a rental was live."""

    label: str
    job_id: str
    provider_id: str | None
    begins: float
    ends: float

    def is_met_by(self, strike: dict[str, Any]) -> bool:
        """Whether the fault met this rental while it was live; one that struck no single machine met them all."""
        is_its = strike["label"] in (None, self.label) or str(strike["instance_id"]) == self.provider_id
        return is_its and self.begins <= float(strike["at"]) <= self.ends


class StormStation:
    """A home and a store that use a simulator; the caller opens and closes the simulator."""

    def __init__(
        self,
        folder: Path,
        url: str,
        forge: StormForge,
        pace: Mapping[str, str] = QUICK,
        billed_after_seconds: float = 0.0,  # the simulator knows its charges at once
        /,
        **environ: str,
    ) -> None:
        self.home = folder
        self.journal = folder / "journal"
        self.kills: Counter[tuple[str, str]] = Counter()
        self.workers: list[int] = []
        self._handles: list[int] = []
        self.customer = Customer(url)
        self._forge = forge
        (folder / "simulator").mkdir(parents=True)
        address = {
            "url": url,
            "api_key": API_KEY,
            "rate_limit_scale": 0.0,
            "create_limit_seconds": 1.5,
            "billed_after_seconds": billed_after_seconds,
        }
        (folder / "simulator" / "address.json").write_text(json.dumps(address))
        write_storm_recipe(folder / "recipes")
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(folder),
            "STATIONMASTER_RECIPES": json.dumps([str(folder / "recipes")]),
            **pace,
            **environ,
        }
        self.settings = load_settings(self.environ, folder=folder)
        self.store = Store(Database(self.settings.store_url))

    def submit(self, spec: JobSpec) -> None:
        self.store.jobs.submit(spec)

    def keep_training(self) -> None:
        """From now on no training goes past a checkpoint: however slow this computer is, there is time to act."""
        self._hold.touch()

    def let_finish(self) -> None:
        self._hold.unlink()

    @property
    def _hold(self) -> Path:
        return self.journal.with_name(f"{self.journal.name}.hold")

    def start(self, role: str, **policy: float) -> int:
        order = StormOrder(role=role, log=str(self.home / f"{role}.log"), environ=self.environ, policy=policy)
        pid = self._forge.start_process(order)
        self.workers += [pid] if role == "worker" else []
        with suppress(ProcessLookupError):  # it has left already
            self._handles.append(os.pidfd_open(pid))
        return pid

    def kill(self, pid: int, role: str) -> None:
        """SIGKILL, counted with the states that the jobs were in."""
        states = [job.state.value for job in self.jobs() if job.state is not State.ENDED]
        if is_running(pid):
            kill(pid)
            self.kills.update((role, state) for state in states)
        self.until(lambda: not is_running(pid), f"the {role}'s death")

    def leave(self, pid: int) -> None:
        """Asked to go, as by a person."""
        kill(pid, signal.SIGTERM)
        self.until(lambda: not is_running(pid), "the process's end")

    def job(self, job_id: str) -> Job:
        return self.store.jobs.get(job_id)

    def jobs(self) -> list[Job]:
        return list(self.store.jobs.listed(with_ended=True, limit=10_000))

    def rentals(self) -> list[Rental]:
        return [rental for job in self.jobs() for rental in self.store.rentals.of_job(job.id)]

    def spans(self) -> list[RentalSpan]:
        """Every rental, from its intent on. This and the next two are cheap enough to be looked at all the time."""
        row = rentals.c
        query = sa.select(row.label, row.job_id, row.provider_id, row.requested_at, row.gone_at)
        with self.store.database.read() as connection:
            found = connection.execute(query).all()
        return [
            RentalSpan(
                label=label, job_id=job, provider_id=machine, begins=asked, ends=math.inf if gone is None else gone
            )
            for label, job, machine, asked, gone in found
        ]

    def busy(self) -> int:
        """How many jobs are on their way."""
        query = sa.select(sa.func.count()).where(jobs.c.state != State.ENDED.value)
        with self.store.database.read() as connection:
            return int(connection.execute(query).scalar_one())

    def machines_in(self, states: Sequence[State]) -> list[int]:
        """Machines that are held by jobs in these states."""
        query = sa.select(rentals.c.provider_id).join(jobs, jobs.c.id == rentals.c.job_id)
        held = query.where(rentals.c.state == RentalState.HELD.value, rentals.c.provider_id.is_not(None))
        with self.store.database.read() as connection:
            return [int(found) for found in connection.execute(held.where(jobs.c.state.in_(states))).scalars()]

    def truth(self) -> list[dict[str, Any]]:
        """Every machine of this installation that the simulator ever made, as it really is."""
        made = self.customer.http.get("/simulator/state").json()["instances"]
        return [machine for machine in made if (machine["label"] or "").startswith(self.label_prefix)]

    @property
    def label_prefix(self) -> str:
        return f"sm-{self.store.installation_id}-"

    def credit(self) -> float:
        """By the simulator's own word, which no fault bends."""
        return self.pay(0)

    def pay(self, dollars: float) -> float:
        """What the account has then."""
        paid = self.customer.http.post("/simulator/accounts", json={"api_key": self.customer.key, "credit": dollars})
        return float(paid.json()["credit"])

    def alive(self) -> list[dict[str, Any]]:
        return [machine for machine in self.truth() if machine["exists"]]

    def struck(self) -> list[dict[str, Any]]:
        return list(self.customer.http.get("/simulator/faults").json()["struck"])

    def until(self, condition: Callable[[], Any], what: str, *, seconds: float = 150.0) -> Any:
        return until(condition, what, seconds=seconds, story=self.story)

    def settle(self) -> None:
        """The provider's own charges take the place of our estimates."""
        asyncio.run(self._settle())

    async def _settle(self) -> None:
        world = build_world(self.settings, self.environ, self.store)
        await reconcile_charges(world, at_once=True)
        await world.close()

    def check(self) -> None:
        """What holds after any storm; raises AssertionError with the whole story."""
        try:
            self._check_machines()
            self._check_jobs()
            self._check_money()
            check_nobody_trained_twice(self.journal)
        except AssertionError as broken:
            raise AssertionError(f"{broken}\n{self.story()}") from broken

    def _check_machines(self) -> None:
        assert not self.alive(), "a machine is left"
        rentals = self.rentals()
        assert {rental.state for rental in rentals} <= {RentalState.GONE}, "a rental is not gone"
        named = [rental.provider_id for rental in rentals if rental.provider_id is not None]
        assert len(named) == len(set(named)), f"a machine has two rows: {named}"
        unknown = {str(machine["id"]) for machine in self.truth()} - set(named)
        assert not unknown, f"machines that no rental names: {unknown}"
        for job in self.jobs():
            attempts = [rental for rental in self.store.rentals.of_job(job.id) if not rental.surplus]
            assert len({rental.attempt for rental in attempts}) == len(attempts), "an attempt rented twice on purpose"

    def _check_jobs(self) -> None:
        for job in self.jobs():
            assert job.state is State.ENDED, f"{job.id} is {job.state}"
            events = self.store.events.of_job(job.id)
            assert [event.kind for event in events].count("outcome") == 1, f"{job.id} has not one outcome"
            tripped = [event.payload for event in events if event.kind == "tripped"]
            assert not tripped, f"{job.id} tripped: {tripped}"

    def _check_money(self) -> None:
        self.settle()
        by_id = {rental.provider_id: rental for rental in self.rentals()}
        for machine in self.truth():
            rental = by_id[str(machine["id"])]
            lines = [line for line in self.store.costs.of_job(rental.job_id) if line.rental_label == rental.label]
            assert lines, f"machine {machine['id']} has no cost line"
            assert {line.source for line in lines} == {"provider"}, f"machine {machine['id']}: {lines}"
            ours, theirs = sum(line.amount for line in lines), round(machine["cost"]["total"] * 1e6)
            assert ours == theirs, f"machine {machine['id']} cost {theirs}, our lines say {ours}: {lines}"

    def story(self) -> str:
        """What happened, for the reader of a failed test."""
        lines = [f"{strike['at']:.2f} FAULT {strike['kind']} {strike['operation']} {strike['instance_id']}"
                 for strike in self.struck()]  # fmt: skip
        for job in self.jobs():
            lines += [
                f"{event.at:.2f} {job.id} {event.kind} {event.payload}" for event in self.store.events.of_job(job.id)
            ]
            lines.append(f"    {job.id} {job.state} {job.outcome} {job.reason} {job.explanation}")
        lines.sort()
        lines += [
            str({key: machine[key] for key in ("id", "label", "actual_status", "exists")}) for machine in self.truth()
        ]
        logs = [path.read_text(errors="replace")[-2500:] for path in self.home.glob("*.log")]
        return "\n".join([*lines, *logs])

    def close(self) -> None:
        """End the workers and sweepers that are left, too: the forge outlives the station."""
        for handle in self._handles:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
        self.customer.close()
        self.store.close()


def is_running(pid: int) -> bool:
    """Whether it is alive and still what a forge made; numbers of processes are used again."""
    try:
        return is_alive(pid) and b"storm_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


Hold = Callable[[StormStation], StormStation]


@contextmanager
def holding() -> Iterator[Hold]:
    """Stations are handed to `hold`, which gives them back; all of them are closed, however the test ends."""
    with ExitStack() as stack:
        yield lambda station: stack.enter_context(closing(station))
