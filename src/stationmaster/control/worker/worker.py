"""The lease loop: claims due jobs, takes each one step further, renews what it holds, hands it back when it leaves."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from stationmaster.control.flow.clock import boottime
from stationmaster.control.flow.lease_writer import Pen
from stationmaster.control.flow.world import World
from stationmaster.control.internal_errors import after_trip
from stationmaster.control.messages.notifier import Notifier
from stationmaster.control.periodic.credit import watch_credit
from stationmaster.control.periodic.provider_bills import SETTLED_SECONDS, reconcile_charges
from stationmaster.control.periodic.spend_alert import watch_spending
from stationmaster.control.periodic.sweep import Sweeper
from stationmaster.control.periodic.sweep_rules import SweepPolicy
from stationmaster.control.reconcile import HANDLERS, reconcile
from stationmaster.errors import LeaseLost, StationmasterError, StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import Alert
from stationmaster.money import ZERO, MicroDollars
from stationmaster.store.leases import Lease
from stationmaster.store.writes import Write

log = get_logger("stationmaster.worker")

_SWEEP = "sweep"
_MOST_AT_ONCE = 100  # jobs in one claim; fewer means that nothing more was due, or no slot is free
_STREAM_BEAT_SECONDS = 0.1
_WAIT_SLICE_SECONDS = 0.5  # a worker that is told to go notices within this time


@dataclass(frozen=True, slots=True, kw_only=True)
class Tempo:
    """The loop's own numbers, in seconds."""

    slots: int = 64
    per_provider: Mapping[str, int] = field(default_factory=dict)
    lease: float = 20.0
    renew: float = 5.0
    look: float = 2.0
    sweep: float = 300.0
    settled: float = SETTLED_SECONDS

    @property
    def beat(self) -> float:
        """Jobs that become due within so long are claimed together; nobody waits for what falls due by itself."""
        return min(0.5, self.look / 4)

    @property
    def margin(self) -> float:
        """Handlers are cancelled so long before a lease that could not be renewed ends."""
        return min(2.0, self.lease / 4)


@dataclass(slots=True, eq=False)
class Holding:
    """A job in our hands. `safe_until` is by a clock that goes on while the computer is suspended."""

    lease: Lease
    safe_until: float
    task: asyncio.Task[None] | None = None
    is_streaming: bool = False  # it mostly waits, and so takes no slot

    def check(self) -> None:
        if boottime() >= self.safe_until:
            raise LeaseLost(f"the lease on job {self.lease.job.id} may be over")


class Worker:
    def __init__(
        self,
        world: World,
        tempo: Tempo | None = None,
        *,
        owner: str | None = None,
        sweep_policy: SweepPolicy | None = None,
        notifier: Notifier | None = None,
        low_credit: MicroDollars = ZERO,
    ) -> None:
        self.world = world
        self._notifier = notifier
        self._low_credit = low_credit
        self._sweeper = Sweeper(world, sweep_policy or SweepPolicy())
        self.tempo = tempo or Tempo()
        self.owner = owner or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._pen = Pen(world)
        self._stream_pen = Pen(world, beat_seconds=_STREAM_BEAT_SECONDS)
        self._held: dict[str, Holding] = {}
        self._leaving = asyncio.Event()
        self._nudge = asyncio.Event()
        self._is_relieved = False
        self._settled = 0

    def leave(self) -> None:
        """Stop claiming and go home; `run` returns once every lease is handed back."""
        self._leaving.set()
        self._nudge.set()

    async def run(
        self,
        *,
        until: Callable[[], Awaitable[bool]] | None = None,
        relieved: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Work until told to leave, or until `until` says that there is nothing left to stay for.

        `relieved` is asked before every claim. Once it says that another worker takes the jobs from now on, nothing is
        claimed any more, and `run` returns when the visits under way are over.
        """
        log.info("worker.started", owner=self.owner, slots=self.tempo.slots)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as loops:
                renewing = loops.create_task(self._renew_loop())
                helpers = [
                    loops.create_task(self._wake_loop(loop)),
                    loops.create_task(self._sweep_loop()),
                    *([loops.create_task(self._notifier.run(self.owner))] if self._notifier else []),
                ]
                await self._claim_loop(until, relieved)
                for helper in helpers:
                    helper.cancel()
                await self._finish_visits()
                renewing.cancel()
            if self._notifier and not self._leaving.is_set() and not self._is_relieved:
                await self._tell_the_rest(self._notifier)
        finally:
            await self._go_home()

    async def _tell_the_rest(self, notifier: Notifier) -> None:
        """Nobody stays behind to tell what happened last."""
        try:
            await notifier.tell(self.owner)
        except StoreError as problem:
            log.warning("store.unavailable", problem=str(problem))

    async def work_until_idle(self) -> None:
        """Handle what is due until nothing is; used where no loop should stay behind."""
        while await self._claim() or self._held:
            await asyncio.gather(*(holding.task for holding in self._held.values() if holding.task))

    async def _claim_loop(
        self, until: Callable[[], Awaitable[bool]] | None, relieved: Callable[[], Awaitable[bool]] | None
    ) -> None:
        while not self._leaving.is_set():
            if relieved is not None and await relieved():
                self._is_relieved = True
                return
            try:
                claimed = await self._claim()
                if not claimed and not self._held and until is not None and await until():
                    return
                if claimed < _MOST_AT_ONCE:
                    await self._rest()
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
                await self._rest()

    async def _finish_visits(self) -> None:
        while self._held and not self._leaving.is_set():
            self._nudge.clear()
            await self._nudge.wait()

    async def _rest(self) -> None:
        """Sleep until somebody writes, a job of ours is done, or the next one is due; two seconds at the most."""
        self._nudge.clear()
        due = await self._seconds_until_due()
        try:
            async with asyncio.timeout(min(self.tempo.look, due)):
                await self._nudge.wait()
        except TimeoutError:
            pass

    async def _seconds_until_due(self) -> float:
        """Only what we could claim counts: a job that is due, but not to us, must not make us spin."""
        if self._free_slots() <= 0:
            return self.tempo.look
        try:
            due = await self.world.ask_store(
                self.world.store.jobs.seconds_until_due,
                states=tuple(HANDLERS),
                excluded_providers=self._busy_providers(),
            )
        except StoreError:
            return self.tempo.look
        return self.tempo.look if due is None else max(due, self.tempo.beat)

    async def _claim(self) -> int:
        """Take what is due and fits into the free slots; how much it was."""
        free = self._free_slots()
        if free <= 0:
            return 0
        asked_at = boottime()
        leases = await self.world.ask_store(
            self.world.store.leases.claim,
            self.owner,
            limit=min(free, _MOST_AT_ONCE),
            seconds=self.tempo.lease,
            states=tuple(HANDLERS),
            excluded_providers=self._busy_providers(),
        )
        for lease in leases:
            self._take(lease, asked_at)
        return len(leases)

    def _free_slots(self) -> int:
        return self.tempo.slots - sum(not holding.is_streaming for holding in self._held.values())

    def _has_no_room(self) -> bool:
        return self._free_slots() <= 0 or bool(self._busy_providers())

    def _busy_providers(self) -> list[str]:
        busy = (holding for holding in self._held.values() if not holding.is_streaming)
        held = Counter(holding.lease.job.spec.provider for holding in busy)
        return [name for name, limit in self.tempo.per_provider.items() if held[name] >= limit]

    def _take(self, lease: Lease, asked_at: float) -> None:
        holding = Holding(lease=lease, safe_until=asked_at + self.tempo.lease - self.tempo.margin)
        self._held[lease.job.id] = holding
        holding.task = asyncio.create_task(self._handle(holding), name=f"job {lease.job.id}")

    async def _handle(self, holding: Holding) -> None:
        job = holding.lease.job
        try:
            await reconcile(holding, self.world, self._pen, partial(self._record, holding))
        except asyncio.CancelledError:
            await self._give_back(holding)
        except LeaseLost:
            log.info("lease.lost", job=job.id)
        except StoreError as problem:
            log.warning("store.unavailable", job=job.id, problem=str(problem))
        except Exception as problem:  # noqa: BLE001 (the loop's top: one job's bug must not end the others)
            await self._trip(holding, problem)
        finally:
            had_no_room = self._has_no_room()
            self._held.pop(job.id, None)
            self._settled += 1
            if had_no_room or not self._held:
                self._nudge.set()

    async def _record(self, holding: Holding, write: Write) -> None:
        """Write for a job in the middle of its action: from now on it is a stream, and its place is free for others."""
        if not holding.is_streaming:
            holding.is_streaming = True
            self._nudge.set()
        await self._stream_pen.record(holding.lease, write)

    async def _give_back(self, holding: Holding) -> None:
        """A handler that was interrupted: nothing of it was written, the job is due as it was."""
        try:
            await self.world.ask_store(self.world.store.leases.free, holding.lease)
        except StoreError as problem:
            log.warning("lease.not_given_back", job=holding.lease.job.id, problem=str(problem))

    async def _trip(self, holding: Holding, problem: Exception) -> None:
        """An error that no handler foresaw; no machine is forgotten."""
        job = holding.lease.job
        expected = isinstance(problem, StationmasterError)
        log.error("job.tripped", job=job.id, state=job.state, problem=str(problem), exc_info=not expected)
        said = str(problem) if expected else f"{type(problem).__name__}: {problem}"
        try:
            # What was recorded before the trip stays: the lease's job is older, and would have logs read twice.
            recorded = await self.world.ask_store(self.world.store.jobs.get, job.id)
            seen = replace(recorded, seen_seq=job.desired_seq)
            write = after_trip(seen, said, now=await self.world.now(), policy=self.world.policy)
            await self.world.ask_store(self.world.store.leases.settle, holding.lease, write)
        except StoreError as lost:
            log.warning("job.trip_not_written", job=job.id, problem=str(lost))

    async def _renew_loop(self) -> None:
        while True:
            await asyncio.sleep(self.tempo.renew)
            self._drop_unsafe()
            if not self._held:
                continue
            asked_at, held = boottime(), dict(self._held)
            try:
                renewed = await self.world.ask_store(
                    self.world.store.leases.renew, self.owner, list(held), seconds=self.tempo.lease
                )
            except StoreError as problem:
                log.warning("leases.not_renewed", problem=str(problem))
                self._drop_unsafe()
                continue
            for job_id, holding in held.items():
                found = renewed.get(job_id)
                if found is None or found.token != holding.lease.token:
                    self._interrupt(holding, "taken over")
                    continue
                holding.safe_until = asked_at + self.tempo.lease - self.tempo.margin
                if found.desired_seq != holding.lease.job.desired_seq:
                    self._interrupt(holding, "something else is wanted")
                elif found.deadline_passed and not _was_late(holding.lease):
                    self._interrupt(holding, "the limit was reached")

    def _drop_unsafe(self) -> None:
        """Handlers end before a lease that was not renewed does."""
        for holding in self._held.values():
            if boottime() >= holding.safe_until:
                self._interrupt(holding, "the lease could not be renewed")

    def _interrupt(self, holding: Holding, why: str) -> None:
        if holding.task is not None and not holding.task.done():
            log.info("job.interrupted", job=holding.lease.job.id, why=why)
            holding.task.cancel()

    async def _wake_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Somebody wrote: look at once instead of at the next look."""
        while True:
            try:
                await asyncio.to_thread(self._wait_for_writes, loop)
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
                await asyncio.sleep(self.tempo.look)

    def _wait_for_writes(self, loop: asyncio.AbstractEventLoop) -> None:
        with self.world.store.waker(for_work=True) as waker:
            while not self._leaving.is_set() and not self._is_relieved:
                if waker.wait(_WAIT_SLICE_SECONDS):
                    loop.call_soon_threadsafe(self._nudge.set)

    async def _sweep_loop(self) -> None:
        while True:
            try:
                await self._sweep_if_due()
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
            except Exception as problem:
                log.error("sweep.tripped", problem=str(problem), exc_info=True)
            await asyncio.sleep(min(self.tempo.sweep, 30.0))

    async def _sweep_if_due(self) -> None:
        periodic = self.world.store.periodic
        token = await self.world.ask_store(periodic.claim, _SWEEP, self.owner, seconds=self.tempo.lease * 6)
        if token is None:
            return
        await self._sweeper.sweep()
        for job_id, state in await self.world.ask_store(self.world.store.jobs.unknown_states):
            said = f"job {job_id} is in state {state}, which this version does not know; it is left alone"
            alert = Alert(kind="unknown_state", job_id=job_id, message=said)
            await self.world.ask_store(self.world.store.alerts.raise_unattended, alert)
        await reconcile_charges(self.world, settled_seconds=self.tempo.settled)
        await watch_spending(self.world)
        if self._low_credit:
            await watch_credit(self.world, self._low_credit)
        await self.world.ask_store(periodic.done, _SWEEP, token, again_in=self.tempo.sweep)

    async def _go_home(self) -> None:
        self._leaving.set()  # the thread that waits for writes ends by it, however the loop ended
        tasks = [holding.task for holding in self._held.values() if holding.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self.tempo.margin)
        try:
            await self.world.ask_store(self.world.store.leases.hand_back, self.owner)
        except StoreError as problem:
            log.warning("leases.not_handed_back", problem=str(problem))
        log.info("worker.left", owner=self.owner, settled=self._settled)


def _was_late(lease: Lease) -> bool:
    """Whether the deadline had passed when the job was claimed: its handler knows and needs no interruption."""
    deadline = lease.job.deadline_at
    return deadline is not None and lease.now >= deadline
