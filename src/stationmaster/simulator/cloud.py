"""The service behind the API: its parts, permissions, and queries that need several parts."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from stationmaster.event_log import get_logger
from stationmaster.money import MicroDollars
from stationmaster.simulator import api_refusals
from stationmaster.simulator.accounts import Account, Identity
from stationmaster.simulator.billing import charge_until
from stationmaster.simulator.clock import Clock
from stationmaster.simulator.faults import FaultKind, FaultPlan, InjectedFault, Target
from stationmaster.simulator.instances import Instance, SshKey
from stationmaster.simulator.json_rows import MachineTelemetry
from stationmaster.simulator.machines.base import Machines, MachineSpec
from stationmaster.simulator.market import Market, MarketOffer
from stationmaster.simulator.records import Records

log = get_logger("simulator")

_TELEMETRY_SECONDS = 1.0
_FIRST_INSTANCE = 7_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations, in seconds of the simulator's clock."""

    created_seconds: float = 0.2
    loading_seconds: float = 1.0
    restart_seconds: float = 0.5
    ssh_seconds: float = 0.5
    """From "running" until SSH answers: the container runs before its sshd does."""
    log_seconds: float = 0.2


class Cloud:
    """The whole state of the service. One event loop owns it; not thread-safe."""

    def __init__(
        self,
        *,
        clock: Clock,
        market: Market,
        machines: Machines,
        records: Records,
        faults: FaultPlan,
        pace: Pace | None = None,
        seed: int = 0,
    ) -> None:
        self.clock = clock
        self.market = market
        self.machines = machines
        self.records = records
        self.faults = faults
        self.pace = pace or Pace()
        self.draw = random.Random(f"{seed}/cloud/{len(records.instances)}")
        self.tasks: set[asyncio.Task[None]] = set()
        self.booting: set[int] = set()
        self.ticking = asyncio.Lock()
        self._locks: dict[int, asyncio.Lock] = {}
        self._timers: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        self._telemetry: dict[int, tuple[float, MachineTelemetry]] = {}

    def now(self) -> float:
        return self.clock.now()

    def identify(self, token: str | None) -> Identity:
        """The owner of the key; refused if it is unknown or belongs to a destroyed instance."""
        if token is None:
            raise api_refusals.login_required()
        for account in self.records.accounts.values():
            if account.api_key == token:
                return Identity(account_id=account.id)
        for instance in self.existing():
            if instance.api_key == token:
                return Identity(account_id=instance.account_id, instance_id=instance.id)
        raise api_refusals.invalid_key()

    def open_account(self, name: str, api_key: str, paid_in: MicroDollars) -> Account:
        """Create an account with this key; an existing one is returned unchanged."""
        for known in self.records.accounts.values():
            if known.api_key == api_key:
                return known
        account = Account(id=1000 + len(self.records.accounts), name=name, api_key=api_key, paid_in=paid_in)
        self.records.put_account(account)
        return account

    def account(self, identity: Identity) -> Account:
        if identity.instance_id is not None:
            raise api_refusals.beyond_this_key()
        return self.records.accounts[identity.account_id]

    def credit(self, account_id: int) -> MicroDollars:
        """The account's credit now, by the simulator's clock."""
        now = self.now()
        spent = sum(
            charge_until(instance, now).total
            for instance in self.records.instances.values()
            if instance.account_id == account_id
        )
        return MicroDollars(self.records.accounts[account_id].paid_in - spent)

    def existing(self) -> list[Instance]:
        return [instance for instance in self.records.instances.values() if instance.exists]

    def instances_of(self, identity: Identity) -> list[Instance]:
        """The instances that this key may see."""
        return [
            instance
            for instance in self.existing()
            if instance.account_id == identity.account_id and identity.instance_id in (None, instance.id)
        ]

    def instance(self, identity: Identity, instance_id: int) -> Instance:
        """The instance, if this key may manage it; other accounts' instances count as missing."""
        if identity.instance_id not in (None, instance_id):
            raise api_refusals.beyond_this_key()
        instance = self.records.instances.get(instance_id)
        if instance is None or not instance.exists or instance.account_id != identity.account_id:
            raise api_refusals.no_such_instance(instance_id)
        return instance

    def offers(self) -> list[MarketOffer]:
        rented = {instance.offer.machine_id for instance in self.existing()}
        listings: dict[int, int] = {}
        for instance in self.records.instances.values():
            machine_id = instance.offer.machine_id
            listings[machine_id] = listings.get(machine_id, 0) + 1
        return self.market.offers(self.now(), rented=rented, listings=listings)

    def update(self, instance_id: int, **changes: object) -> Instance:
        """Change an instance's record and store it."""
        changed = replace(self.records.instances[instance_id], **changes)  # type: ignore[arg-type]  # names and types match the record
        self.records.put_instance(changed)
        return changed

    def next_instance_id(self) -> int:
        return max(self.records.instances, default=_FIRST_INSTANCE) + self.draw.randint(1, 40)

    def next_key_id(self) -> int:
        known = [key.id for key in self._all_ssh_keys()]
        return max(known, default=90_000) + 1

    def secret(self) -> str:
        """A new random key in the service's format; from the seed, so that runs are reproducible."""
        return hashlib.sha256(self.draw.randbytes(32)).hexdigest()

    def take_fault(self, kind: FaultKind, operation: str, instance: Instance | None = None) -> InjectedFault | None:
        target = Target(operation=operation)
        if instance is not None:
            target = target_of(instance, operation)
        return self.faults.take(kind, target, now=self.now())

    def lock(self, instance_id: int) -> asyncio.Lock:
        """Held while an instance's machine is started, halted or destroyed."""
        return self._locks.setdefault(instance_id, asyncio.Lock())

    def later(self, due: float, action: Callable[[], Awaitable[None]]) -> None:
        """Run `action` when the simulator's clock reaches `due`."""
        self._timers.append((due, action))

    def due_actions(self) -> list[Callable[[], Awaitable[None]]]:
        now = self.now()
        due = [action for moment, action in self._timers if moment <= now]
        self._timers = [timer for timer in self._timers if timer[0] > now]
        return due

    async def sleep(self, seconds: float) -> None:
        """Sleep by the simulator's clock, which may be advanced meanwhile."""
        over = asyncio.Event()

        async def end() -> None:
            over.set()

        self.later(self.now() + seconds, end)
        await over.wait()

    async def telemetry(self, instance: Instance) -> MachineTelemetry:
        """The machine's last report, refreshed at most once a second; stale after a stop, empty before the first."""
        asked_at, known = self._telemetry.get(instance.id, (float("-inf"), MachineTelemetry()))
        if instance.running_since is not None and time.monotonic() - asked_at > _TELEMETRY_SECONDS:
            known = await self.machines.telemetry(instance.id)
            self._telemetry[instance.id] = (time.monotonic(), known)
        return known

    async def note_traffic(self, instance_id: int) -> None:
        """Add the traffic since the last call to the instance's bill."""
        down, up = await self.machines.take_traffic(instance_id)
        if down or up:
            known = self.records.instances[instance_id]
            self.update(
                instance_id, downloaded_bytes=known.downloaded_bytes + down, uploaded_bytes=known.uploaded_bytes + up
            )

    def _all_ssh_keys(self) -> Iterator[SshKey]:
        for account in self.records.accounts.values():
            yield from account.ssh_keys
        for instance in self.records.instances.values():
            yield from instance.ssh_keys


def target_of(instance: Instance, operation: str | None = None) -> Target:
    return Target(
        operation=operation, instance_id=instance.id, label=instance.order.label, status=str(instance.actual or "none")
    )


def machine_spec(instance: Instance) -> MachineSpec:
    offer, order = instance.offer, instance.order
    return MachineSpec(
        id=instance.id,
        marker=instance.marker,
        # Keys such as "-p 8080:8080" are container options, not variables.
        environment=tuple(pair for pair in order.environment if not pair[0].startswith("-")),
        onstart=order.onstart,
        ssh_keys=tuple(key.text for key in instance.ssh_keys),
        api_key=instance.api_key,
        disk_gb=order.disk_gb,
        gpu_name=offer.gpu.name,
        gpu_count=offer.num_gpus,
        gpu_memory_mb=offer.gpu.memory_mb,
        driver_version=offer.driver_version,
        cuda=offer.cuda,
        address=instance.address,
    )
