"""Everything that the main flow works with, handed in: the store, providers, connections to machines, settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from stationmaster.config import monitoring_of
from stationmaster.control.destinations.destinations import Destinations
from stationmaster.control.flow.batching import BatchedQuery
from stationmaster.control.flow.listings import Listings
from stationmaster.control.flow.policy import Policy
from stationmaster.delivery.bucket import Bucket
from stationmaster.errors import DeliveryBusy, NotFound
from stationmaster.model import ADOPTED_PREFIX, Access, CostLine, Job, JobSpec, Rental
from stationmaster.near_names import did_you_mean
from stationmaster.providers.base import Provider
from stationmaster.recipes.registry import StoredRecipe
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.wishes import recipe_for
from stationmaster.remote.base import Remote
from stationmaster.remote.host import Host
from stationmaster.remote.kept_trackside import KeptTrackside
from stationmaster.settings import MonitoringSettings
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from stationmaster.watch.baseline import RunFacts

Answer = TypeVar("Answer")
Bill = tuple[tuple[Rental, ...], tuple[CostLine, ...]]  # a job's rentals with their cost lines


class Guard(Protocol):
    """The worker's lease on the job being handled."""

    def check(self) -> None:
        """Raises LeaseLost if the lease may have ended, by a clock that runs while the computer is suspended."""


class Rules:
    """A job's recipe, with what the job asks of its machine, and monitoring settings: each is resolved when first
    needed, and only once.

    So a state that needs no recipe works although the recipe was removed.
    """

    def __init__(self, spec: JobSpec, find_recipe: Callable[[str], StoredRecipe], defaults: MonitoringSettings) -> None:
        self._spec, self._find_recipe, self._defaults = spec, find_recipe, defaults

    @cached_property
    def stored(self) -> StoredRecipe:
        found = self._find_recipe(self._spec.recipe)
        ours = recipe_for(self._spec, found.recipe)
        return found if ours is found.recipe else replace(found, recipe=ours)

    @cached_property
    def monitoring(self) -> MonitoringSettings:
        return monitoring_of(self._spec.monitoring, self._defaults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One visit to one job; `now` is the database's time when the job was read, `watched` whether it is followed live.

    `record` writes under the lease in the middle of a long action; what it wrote stays if the action is interrupted.
    """

    job: Job
    now: float
    guard: Guard
    record: Callable[[Write], Awaitable[None]]
    rules: Rules
    watched: bool = False

    @property
    def stored_recipe(self) -> StoredRecipe:
        """The recipe with its files. Raises NotFound where the recipe was removed."""
        return self.rules.stored

    @property
    def recipe(self) -> Recipe:
        return self.rules.stored.recipe

    @property
    def monitoring(self) -> MonitoringSettings:
        """The job's own settings, laid over the installation's."""
        return self.rules.monitoring


async def role_unknown(_token: str) -> bool:
    """Without a Hub the role of a token is unknown, which must not be taken for read-only or for write."""
    raise DeliveryBusy("there is no Hub to ask")


@dataclass(slots=True, kw_only=True)
class World:
    store: Store
    providers: dict[str, Provider]
    connect: Callable[[Access], Remote]
    find_recipe: Callable[[str], StoredRecipe]
    secrets: Callable[[str], str | None]
    home: Path
    trackside: Path
    only_reads: Callable[[str], Awaitable[bool]] = role_unknown  # whether a Hub token is read-only
    policy: Policy = field(default_factory=Policy)
    destinations: Destinations = field(default_factory=Destinations)
    public_key: str | None = None  # grants access to rented machines
    open_bucket: Callable[[str], Bucket] | None = None  # any bucket that the settings' key may read
    reload_providers: Callable[[], Mapping[str, Provider]] = dict  # including those that appeared since the start
    open_adopted: Callable[[str, Callable[[str], Provider]], Provider] | None = None  # machines that are not ours
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "store"))
    #: One at a time: each holds a whole run in memory, and the store's threads must not wait for it.
    analysis_thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "analysis"))
    #: One at a time: a machine decides how much log there is, and only its own job may wait for it.
    reading_thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "reading"))
    listings: Listings = field(init=False)
    rentals: BatchedQuery[str, list[Rental]] = field(init=False)  # by the job's id
    bills: BatchedQuery[str, Bill] = field(init=False)  # by the job's id
    avoided: BatchedQuery[str, frozenset[str]] = field(init=False)  # machines by their provider's name
    past_runs: BatchedQuery[tuple[str, str], list[RunFacts]] = field(init=False)  # by recipe and GPU
    lost_machines: BatchedQuery[None, tuple[int, float]] = field(init=False)  # as the store counts them, of all jobs
    _clock: BatchedQuery[None, float] = field(init=False)
    _remotes: dict[str, Remote] = field(default_factory=dict)
    _kept: dict[str, KeptTrackside] = field(default_factory=dict)
    _recipes: dict[str, StoredRecipe] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.listings = Listings(self.providers)
        self.rentals = BatchedQuery(partial(self.ask_store, _rentals, self.store))
        self.bills = BatchedQuery(partial(self.ask_store, _bills, self.store))
        self.avoided = BatchedQuery(partial(self.ask_store, _avoided, self.store))
        self.past_runs = BatchedQuery(partial(self.ask_store, _past_runs, self.store))
        self.lost_machines = BatchedQuery(partial(self.ask_store, _lost_machines, self.store))
        self._clock = BatchedQuery(partial(self.ask_store, _clock, self.store))

    async def ask_store(self, function: Callable[..., Answer], *args: Any, **kwargs: Any) -> Answer:
        """Make a store call off the event loop's thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, partial(function, *args, **kwargs))

    async def now(self) -> float:
        """The database's time."""
        return await self._clock.of(None)

    def provider(self, name: str) -> Provider:
        if name not in self.providers and name.startswith(ADOPTED_PREFIX) and self.open_adopted is not None:
            self.providers[name] = self.open_adopted(name, self.provider)
        if name not in self.providers:
            self.providers.update(self.reload_providers())
        if name not in self.providers:
            hint = did_you_mean(name, self.providers) or f"use one of: {', '.join(sorted(self.providers))}"
            raise NotFound(f"there is no provider {name}", hint=hint)
        return self.providers[name]

    def recipe(self, reference: str) -> StoredRecipe:
        if reference not in self._recipes:
            self._recipes[reference] = self.find_recipe(reference)
        return self._recipes[reference]

    def remote(self, label: str, access: Access) -> Remote:
        """The connection to a machine, kept open from visit to visit."""
        if label not in self._remotes:
            self._remotes[label] = self.connect(access)
            self._kept[label] = KeptTrackside(self._remotes[label])
        return self._remotes[label]

    def host(self, job: Job, label: str, access: Access) -> Host:
        return Host(
            self.remote(label, access),
            root=f"{access.job_root}/{job.id}",
            time_limit_seconds=self.policy.ssh.answer,
            kept=self._kept[label],
        )

    def rules(self, job: Job) -> Rules:
        return Rules(job.spec, self.recipe, self.policy.monitoring)

    async def forget_remote(self, label: str) -> None:
        remote, kept = self._remotes.pop(label, None), self._kept.pop(label, None)
        if kept is not None:
            await kept.close()
        if remote is not None:
            await remote.close()

    def artifacts(self, job_id: str) -> Path:
        """Where a job's files are kept at home."""
        return self.home / "jobs" / job_id

    async def close(self) -> None:
        for label in list(self._remotes):
            await self.forget_remote(label)
        await self.destinations.close()
        for threads in (self.threads, self.analysis_thread, self.reading_thread):
            threads.shutdown(wait=False, cancel_futures=True)


def _rentals(store: Store, job_ids: frozenset[str]) -> dict[str, list[Rental]]:
    return store.rentals.of_jobs(job_ids)


def _bills(store: Store, job_ids: frozenset[str]) -> dict[str, Bill]:
    rentals, costs = store.rentals.of_jobs(job_ids), store.costs.of_jobs(job_ids)
    return {job_id: (tuple(rentals[job_id]), tuple(costs[job_id])) for job_id in job_ids}


def _avoided(store: Store, providers: frozenset[str]) -> dict[str, frozenset[str]]:
    return {name: store.bad_machines.avoided(name) for name in providers}


def _past_runs(store: Store, kinds: frozenset[tuple[str, str]]) -> dict[tuple[str, str], list[RunFacts]]:
    return {(recipe, gpu): store.runs.facts(recipe, gpu) for recipe, gpu in kinds}


def _lost_machines(store: Store, _all: frozenset[None]) -> dict[None, tuple[int, float]]:
    return {None: store.runs.lost_machines()}


def _clock(store: Store, _all: frozenset[None]) -> dict[None, float]:
    return {None: store.now()}
