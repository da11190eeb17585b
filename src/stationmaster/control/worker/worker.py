"""The lease loop: claims due jobs, reconciles each, renews its leases, and hands them back when it stops."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from stationmaster import __version__
from stationmaster.control.flow.clock import boottime
from stationmaster.control.flow.lease_writer import LeaseWriter
from stationmaster.control.flow.world import World
from stationmaster.control.internal_errors import after_internal_error
from stationmaster.control.messages.notifier import Notifier
from stationmaster.control.periodic.table import periodic_table, repeat
from stationmaster.control.reconcile import HANDLERS, reconcile
from stationmaster.control.worker.held_job import HeldJob
from stationmaster.errors import LeaseLost, StationmasterError, StoreError
from stationmaster.event_log import get_logger
from stationmaster.money import ZERO, MicroDollars
from stationmaster.settings import WorkerSettings
from stationmaster.store.leases import Lease

log = get_logger("stationmaster.worker")

_MOST_AT_ONCE = 100  # jobs in one claim; fewer means that nothing more was due, or no slot is free
_STREAM_WRITE_SECONDS = 0.1
_WAIT_SLICE_SECONDS = 0.5  # a worker that is asked to stop notices within this time


class Worker:
    def __init__(
        self,
        world: World,
        *,
        owner: str | None = None,
        notifier: Notifier | None = None,
        low_credit: MicroDollars = ZERO,
    ) -> None:
        self.world = world
        self._notifier = notifier
        self._settings = world.policy.worker
        self._periodic = periodic_table(
            self._settings,
            low_credit=low_credit,
            registers=world.destinations.comfydeploy is not None,
        )
        self.owner = owner or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        write = partial(world.ask_store, world.store.leases.write)
        self._writer = LeaseWriter(write)
        self._stream_writer = LeaseWriter(write, interval_seconds=_STREAM_WRITE_SECONDS)
        self._held: dict[str, HeldJob] = {}
        self._leaving = asyncio.Event()
        self._nudge = asyncio.Event()
        self._is_relieved = False
        self._settled = 0
        self._providers_read_at = -math.inf

    def leave(self) -> None:
        """Stop claiming; `run` returns once every lease is handed back."""
        self._leaving.set()
        self._nudge.set()

    async def run(
        self,
        *,
        until: Callable[[], Awaitable[bool]] | None = None,
        relieved: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """Work until `leave` is called, or until `until` returns True because nothing is left to do.

        `relieved` is called before every claim. Once it returns True, another worker takes the jobs from now on: this
        one claims nothing more, and `run` returns when its running visits are over.
        """
        log.info("worker.started", owner=self.owner, slots=self._settings.slots)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as loops:
                renewing = loops.create_task(self._renew_loop())
                announcing = loops.create_task(self._announce_loop())
                helpers = [
                    loops.create_task(self._wake_loop(loop)),
                    *(loops.create_task(repeat(work, self.world, owner=self.owner)) for work in self._periodic),
                    *([loops.create_task(self._notifier.run(self.owner))] if self._notifier else []),
                ]
                await self._claim_loop(until, relieved)
                for helper in helpers:
                    helper.cancel()
                await self._finish_visits()
                renewing.cancel()
                announcing.cancel()
            if self._notifier and not self._leaving.is_set() and not self._is_relieved:
                await self._send_last_notifications(self._notifier)
        finally:
            await self._hand_back()

    async def _send_last_notifications(self, notifier: Notifier) -> None:
        """Send what happened last: no worker is left to do it later."""
        try:
            await notifier.run_round(self.owner)
        except StoreError as problem:
            log.warning("store.unavailable", problem=str(problem))

    async def work_until_idle(self) -> None:
        """Handle what is due until nothing is, without starting the loops."""
        while await self._claim() or self._held:
            await asyncio.gather(*(held_job.task for held_job in self._held.values() if held_job.task))

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
        """Sleep until something is written, a held job is done or the next one is due; at most one look interval."""
        self._nudge.clear()
        due = await self._seconds_until_due()
        try:
            async with asyncio.timeout(min(self._settings.look, due)):
                await self._nudge.wait()
        except TimeoutError:
            pass

    async def _seconds_until_due(self) -> float:
        """Only jobs that this worker can claim count: a job that is due but not claimable must not make it spin."""
        if self._free_slots() <= 0:
            return self._settings.look
        try:
            due = await self.world.ask_store(
                self.world.store.jobs.seconds_until_due,
                states=tuple(HANDLERS),
                providers=tuple(self.world.providers),
                excluded_providers=self._busy_providers(),
            )
        except StoreError:
            return self._settings.look
        return self._settings.look if due is None else max(due, _beat_seconds(self._settings))

    async def _claim(self) -> int:
        """Claim due jobs for the free slots; returns how many."""
        free = self._free_slots()
        if free <= 0:
            return 0
        await self._look_for_other_providers()
        asked_at = boottime()
        leases = await self.world.ask_store(
            self.world.store.leases.claim,
            self.owner,
            limit=min(free, _MOST_AT_ONCE),
            seconds=self._settings.lease,
            states=tuple(HANDLERS),
            providers=tuple(self.world.providers),
            excluded_providers=self._busy_providers(),
        )
        for lease in leases:
            self._take(lease, asked_at)
        return len(leases)

    async def _look_for_other_providers(self) -> None:
        """If a job waits for a provider that this worker does not have: it may have appeared since, as a simulator."""
        if boottime() - self._providers_read_at < self._settings.look:
            return
        self._providers_read_at = boottime()
        if await self.world.ask_store(self.world.store.jobs.of_other_providers, tuple(self.world.providers)):
            known = set(self.world.providers)
            self.world.providers.update(self.world.reload_providers())
            if known != set(self.world.providers):
                await self._announce()

    async def _announce_loop(self) -> None:
        """Tell other processes that this worker lives. The only worker of a SQLite store is found by its lock."""
        while True:
            try:
                await self._announce()
            except StoreError as problem:
                log.warning("worker.not_announced", problem=str(problem))
            if self.world.store.database.is_sqlite:
                return
            await asyncio.sleep(self._settings.renew)

    async def _announce(self) -> None:
        await self.world.ask_store(
            self.world.store.workers.announce,
            self.owner,
            version=__version__,
            providers=tuple(self.world.providers),
            seconds=self._settings.lease,
        )

    def _free_slots(self) -> int:
        return self._settings.slots - sum(not held_job.is_streaming for held_job in self._held.values())

    def _has_no_room(self) -> bool:
        return self._free_slots() <= 0 or bool(self._busy_providers())

    def _busy_providers(self) -> list[str]:
        busy = (held_job for held_job in self._held.values() if not held_job.is_streaming)
        held = Counter(held_job.lease.job.spec.provider for held_job in busy)
        return [name for name, limit in self._settings.per_provider.items() if held[name] >= limit]

    def _take(self, lease: Lease, asked_at: float) -> None:
        held_job = HeldJob(
            lease=lease,
            safe_until=asked_at + self._settings.lease - _margin_seconds(self._settings),
            writer=self._writer,
            stream_writer=self._stream_writer,
            free_slot=self._nudge.set,
        )
        self._held[lease.job.id] = held_job
        held_job.task = asyncio.create_task(self._handle(held_job), name=f"job {lease.job.id}")

    async def _handle(self, held_job: HeldJob) -> None:
        job = held_job.lease.job
        try:
            await reconcile(held_job, self.world)
        except asyncio.CancelledError:
            await self._give_back(held_job)
        except LeaseLost:
            log.info("lease.lost", job=job.id)
        except StoreError as problem:
            log.warning("store.unavailable", job=job.id, problem=str(problem))
        except Exception as problem:  # noqa: BLE001 (top of the loop: one job's bug must not end the others)
            await self._handle_internal_error(held_job, problem)
        finally:
            had_no_room = self._has_no_room()
            self._held.pop(job.id, None)
            self._settled += 1
            if had_no_room or not self._held:
                self._nudge.set()

    async def _give_back(self, held_job: HeldJob) -> None:
        """Free the lease of an interrupted handler: nothing of its visit was written, the job is due as before."""
        try:
            await self.world.ask_store(self.world.store.leases.free, held_job.lease)
        except StoreError as problem:
            log.warning("lease.not_given_back", job=held_job.lease.job.id, problem=str(problem))

    async def _handle_internal_error(self, held_job: HeldJob, problem: Exception) -> None:
        """Record an unexpected error; the job stays due, so its machine is not forgotten."""
        job = held_job.lease.job
        expected = isinstance(problem, StationmasterError)
        log.error("job.tripped", job=job.id, state=job.state, problem=str(problem), exc_info=not expected)
        message = str(problem) if expected else f"{type(problem).__name__}: {problem}"
        try:
            # What was recorded before the error stays: the lease's job is older, and would have logs read twice.
            recorded = await self.world.ask_store(self.world.store.jobs.get, job.id)
            seen = replace(recorded, seen_seq=job.desired_seq)
            write = after_internal_error(seen, message, now=await self.world.now(), policy=self.world.policy)
            await self.world.ask_store(self.world.store.leases.settle, held_job.lease, write)
        except StoreError as lost:
            log.warning("job.trip_not_written", job=job.id, problem=str(lost))

    async def _renew_loop(self) -> None:
        while True:
            await asyncio.sleep(min(self._settings.renew, self._safe_seconds()))
            self._drop_unsafe()
            if not self._held:
                continue
            asked_at, held = boottime(), dict(self._held)
            try:
                async with asyncio.timeout(self._safe_seconds()):
                    renewed = await self.world.ask_store(
                        self.world.store.leases.renew, self.owner, list(held), seconds=self._settings.lease
                    )
            except (StoreError, TimeoutError) as problem:
                log.warning("leases.not_renewed", problem=str(problem) or "the store did not answer in time")
                self._drop_unsafe()
                continue
            for job_id, held_job in held.items():
                found = renewed.get(job_id)
                if found is None or found.token != held_job.lease.token:
                    self._interrupt(held_job, "taken over")
                    continue
                held_job.safe_until = asked_at + self._settings.lease - _margin_seconds(self._settings)
                if found.desired_seq != held_job.lease.job.desired_seq:
                    self._interrupt(held_job, "something else is wanted")
                elif found.deadline_passed and not _was_late(held_job.lease):
                    self._interrupt(held_job, "the limit was reached")

    def _safe_seconds(self) -> float:
        """How long all handlers that are not interrupted yet may go on if nothing is renewed."""
        now = boottime()
        return min((each.safe_until - now for each in self._held.values() if each.safe_until > now), default=math.inf)

    def _drop_unsafe(self) -> None:
        """Interrupt handlers before a lease that was not renewed expires."""
        for held_job in self._held.values():
            if boottime() >= held_job.safe_until:
                self._interrupt(held_job, "the lease could not be renewed")

    def _interrupt(self, held_job: HeldJob, why: str) -> None:
        if held_job.task is not None and not held_job.task.done():
            log.info("job.interrupted", job=held_job.lease.job.id, why=why)
            held_job.task.cancel()

    async def _wake_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the claim loop as soon as something is written to the store."""
        while True:
            try:
                await asyncio.to_thread(self._wait_for_writes, loop)
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
                await asyncio.sleep(self._settings.look)

    def _wait_for_writes(self, loop: asyncio.AbstractEventLoop) -> None:
        with self.world.store.waker(for_work=True) as waker:
            while not self._leaving.is_set() and not self._is_relieved:
                if waker.wait(_WAIT_SLICE_SECONDS):
                    loop.call_soon_threadsafe(self._nudge.set)

    async def _hand_back(self) -> None:
        self._leaving.set()  # also ends the thread that waits for writes, however the loop ended
        tasks = [held_job.task for held_job in self._held.values() if held_job.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_margin_seconds(self._settings))
        try:
            await self.world.ask_store(self.world.store.leases.free_all_of, self.owner)
            await self.world.ask_store(self.world.store.workers.withdraw, self.owner)
        except StoreError as problem:
            log.warning("leases.not_handed_back", problem=str(problem))
        log.info("worker.left", owner=self.owner, settled=self._settled)


def _was_late(lease: Lease) -> bool:
    """Whether the deadline had passed when the job was claimed: then its handler knows and is not interrupted."""
    deadline = lease.job.deadline_at
    return deadline is not None and lease.now >= deadline


def _beat_seconds(settings: WorkerSettings) -> float:
    """Jobs that become due within this time are claimed together, so that a worker does not wake for each."""
    return min(0.5, settings.look / 4)


def _margin_seconds(settings: WorkerSettings) -> float:
    """Handlers are cancelled this long before a lease that could not be renewed ends."""
    return min(2.0, settings.lease / 4)
