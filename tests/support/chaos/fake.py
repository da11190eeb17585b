"""One job on machines in memory, whose workers can be killed or put to sleep at any point."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import World
from stationmaster.control.periodic.sweep import Sweeper
from stationmaster.control.worker.worker import Worker
from stationmaster.errors import Unreachable
from stationmaster.model import Access, Job, JobSpec, LocalAccess, Offer, Requirements, State
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.registry import find
from stationmaster.remote.base import Remote
from stationmaster.remote.fake import ConnectionFault, FakeRemote
from stationmaster.remote.fake_run import safetensors_bytes
from stationmaster.remote.fake_trackside import FakeTrackside, Script
from stationmaster.settings import MonitoringSettings
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.chaos.invariants import check_store
from tests.support.chaos.points import Clock, FreezePoints, KillPoints, Point, Watched, WatchedDatabase
from tests.support.chaos.specs import a_job, write_chaos_recipe

JOB = "job-1"
SCRIPT = Script(training_steps=4, seconds_per_step=10.0, checkpoint_every=2, measured=True)
POLICY = Policy(
    monitoring=MonitoringSettings(poll_interval=0, watch_interval=0),
    provider_look_seconds=5.0,
    retry_seconds=(5.0,),
    attempt_seconds=(5.0,),
)
_LEASE_IS_OVER_SECONDS = 30.0
_SWEEP_SECONDS = 300.0
_ROUND_SECONDS = 6.0  # nothing is waited for in real time
_TICK_SECONDS = 10.0  # of the machine, between two looks
_MOST_ROUNDS = 300


class Template:
    """A store with one queued job, and the recipe it needs: copied for every run, since making it takes longer.

    Opened stores are kept for the next worker, who sees nothing of it except that the statements are compiled already.
    So there is one run at a time.
    """

    def __init__(self, folder: Path, *, prepare: Callable[[Store, JobSpec], None] | None = None) -> None:
        self.folder = folder
        write_chaos_recipe(folder / "recipes")
        self.recipe = find("chaos@1", folders=(folder / "recipes",))
        (folder / "trackside.pyz").write_bytes(b"trackside")
        store = Store(Database(f"sqlite:///{folder / 'store.db'}"))
        spec = a_job(JOB, folder / "datasets", recipe="chaos@1", provider="fake")
        if prepare is None:
            store.jobs.submit(spec)
        else:
            prepare(store, spec)
        store.close()
        self._live = folder / "live.db"
        self._shelf: list[tuple[WatchedDatabase, Store]] = []

    def lay_out(self) -> None:
        """The store as it was before anything happened."""
        for name in ("live.db-wal", "live.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.copyfile(self.folder / "store.db", self._live)

    @contextmanager
    def opened(self, point: Point, clock: Clock) -> Iterator[Store]:
        """The store of one process."""
        database, store = self._shelf.pop() if self._shelf else self._open()
        database.watch(point, clock)
        try:
            yield store
        finally:
            store.close()
            self._shelf.append((database, store))

    def _open(self) -> tuple[WatchedDatabase, Store]:
        database = WatchedDatabase(f"sqlite:///{self._live}", KillPoints())
        return database, Store(database)


class LiveMachine:
    """A machine in memory that answers only while its provider has it."""

    def __init__(self, provider: FakeProvider, provider_id: str, script: Script, *, tick_seconds: float) -> None:
        self._provider = provider
        self._id = provider_id
        self.remote = FakeRemote()
        self.trackside = FakeTrackside(self.remote, script=script, tick_seconds=tick_seconds)

    def __getattr__(self, attribute: str) -> object:
        if self._id not in self._provider.machines:
            raise Unreachable(f"machine {self._id} does not answer")
        return getattr(self.remote, attribute)

    async def close(self) -> None:
        """Nothing is held open, on a machine that is gone as on any other."""


class FakeStation:
    """What stays when a worker dies: the store's file, the provider's machines, and what runs on them."""

    def __init__(self, template: Template, folder: Path, *, policy: Policy = POLICY, script: Script = SCRIPT) -> None:
        folder.mkdir(parents=True)
        self.policy = policy
        self.script = script
        self.most_rounds = _MOST_ROUNDS
        self.template = template
        self.folder = folder
        template.lay_out()
        self.clock = Clock()
        self.provider = FakeProvider()
        self.machines: dict[str, LiveMachine] = {}
        self.calls: list[str] = []
        self.remote_faults: tuple[ConnectionFault, ...] = ()  # each happens once, in this order
        self.pace = 1.0  # how many times longer a round is, at home and on the machine: a long training has fewer
        self._workers = 0

    def work(self, point: Point) -> None:
        """One worker until the job has ended, and its sweep; raises Killed where `point` does."""
        asyncio.run(self._work(point))

    def sleep_while_another_works(self, at: int) -> None:
        """One worker freezes at a point; another finishes the job; then the first wakes and goes on, none the wiser."""
        sleeper = FreezePoints(freeze_at=at)
        with ThreadPoolExecutor(1) as thread:
            working = thread.submit(self.work, sleeper)
            try:
                while not sleeper.reached.wait(0.01) and not working.done():
                    pass
                self.let_leases_lapse()
                self.work(KillPoints())
            finally:
                sleeper.wake()
            problem = working.exception(60)
        assert problem is None, f"the sleeper, after {sleeper.names[-1]}: {problem}"

    def let_leases_lapse(self) -> None:
        self.clock.advance(_LEASE_IS_OVER_SECONDS)

    def rent_another(self) -> None:
        """What a process that slept before its create does when it wakes: one more machine with the job's label."""
        with self.store() as store:
            label = store.rentals.of_job(JOB)[0].label
        offer = Offer(id="fake-offer", provider="fake", price_per_hour=self.provider.price_per_hour)
        asyncio.run(self.provider.create(offer, label=label, want=Requirements()))

    def destinations(self, _point: Point) -> Destinations:
        """Where models go besides home: nowhere."""
        return Destinations()

    def store(self) -> AbstractContextManager[Store]:
        """The store as another process sees it."""
        return self.template.opened(KillPoints(), self.clock)

    def check(self) -> None:
        """All that holds after any crash; raises AssertionError."""
        with self.store() as store:
            check_store(store, JOB)
            measured = store.series.read(JOB, "StepMetric")[1].values("step")
            known = {rental.provider_id for rental in store.rentals.of_job(JOB)}
        assert measured == list(range(1, SCRIPT.training_steps + 1)), "a measured step is missing or there twice"
        assert self.provider.machines == {}, "a machine is left"
        assert {machine.provider_id for machine in self.provider.created} <= known, "a machine that nobody pays for"
        tries = [machine.trackside.tries_started() for machine in self.machines.values()]
        assert all(count == 1 for started in tries for count in started.values()), f"a try was started twice: {tries}"
        assert sum(bool(started) for started in tries) == 1, "two machines were used"
        model = self.folder / "home" / "jobs" / JOB / "model.safetensors"
        assert model.read_bytes() == safetensors_bytes(SCRIPT.training_steps)

    async def _work(self, point: Point) -> None:
        self._workers += 1
        # A worker that is killed has no thread left that reads the store.
        with (
            self.template.opened(point, self.clock) as store,
            ThreadPoolExecutor(2) as threads,
            ThreadPoolExecutor(1) as analysis_thread,
        ):
            world = World(
                store=store,
                providers={"fake": Watched(self.provider, "provider", point)},
                connect=partial(self._connect, point=point),
                find_recipe=lambda _reference: self.template.recipe,
                secrets=lambda _name: None,
                home=self.folder / "home",
                trackside=self.template.folder / "trackside.pyz",
                policy=self.policy,
                destinations=self.destinations(point),
                threads=threads,
                analysis_thread=analysis_thread,
            )
            await self._until_ended(Worker(world, owner=f"worker-{self._workers}"), world)

    async def _until_ended(self, worker: Worker, world: World) -> None:
        for _ in range(self.most_rounds):
            await worker.work_until_idle()
            job: Job = await world.ask_store(world.store.jobs.get, JOB)
            if job.state is State.ENDED:
                await self._sweep_until_quiet(world)
                return
            self.clock.advance(self.pace * _ROUND_SECONDS)
        raise AssertionError(f"still in {job.state} after {self.most_rounds} rounds: {job}")

    async def _sweep_until_quiet(self, world: World) -> None:
        for _ in range(10):
            report = await Sweeper(world).sweep()
            if not report.findings and not await world.ask_store(world.store.rentals.not_gone):
                return
            self.clock.advance(_SWEEP_SECONDS)
        raise AssertionError("the sweep does not come to an end")

    def _connect(self, access: Access, *, point: Point) -> Remote:
        assert isinstance(access, LocalAccess)
        provider_id = Path(access.root).name
        if provider_id not in self.machines:
            ticks = self.pace * _TICK_SECONDS
            self.machines[provider_id] = LiveMachine(self.provider, provider_id, self.script, tick_seconds=ticks)
            for fault in self.remote_faults:
                self.machines[provider_id].remote.fail(fault)
        return Watched(self.machines[provider_id], "remote", point)
