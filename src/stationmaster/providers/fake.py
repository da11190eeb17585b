"""A provider in memory, for tests: it can be made to fail in every relevant way."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum

from stationmaster.errors import AccessRefused, AnswerLost, NoCapacity, ProviderBusy, ProviderFault
from stationmaster.model import Access, Listing, LocalAccess, Machine, MachineStatus, Offer, Requirements
from stationmaster.money import MicroDollars

_PRICE_PER_HOUR = MicroDollars(360_000)


class Trouble(StrEnum):
    """A failure that the fake can produce; each is used once per count."""

    LOSE_CREATE_ANSWER = "LOSE_CREATE_ANSWER"  # the machine is created, the answer is lost
    LOSE_CREATE_REQUEST = "LOSE_CREATE_REQUEST"  # no machine is created, and no answer comes
    REFUSE_CREATE = "REFUSE_CREATE"  # the offer is gone
    REFUSE_KEY = "REFUSE_KEY"  # any call
    BUSY = "BUSY"  # any call
    NO_OFFERS = "NO_OFFERS"
    NEVER_READY = "NEVER_READY"  # the next machine stays in CREATING
    IGNORE_DESTROY = "IGNORE_DESTROY"  # reports success, does nothing
    FAIL_DESTROY = "FAIL_DESTROY"
    LIST_PARTIALLY = "LIST_PARTIALLY"  # omits machines and reports that the list is incomplete
    LIST_EMPTY = "LIST_EMPTY"  # answers for another account
    FAIL_LISTING = "FAIL_LISTING"
    FAIL_DESCRIBE = "FAIL_DESCRIBE"
    QUEUE_START = "QUEUE_START"  # a start is only queued


@dataclass
class FakeProvider:
    """Machines are ready at once and cost `price_per_hour`. `most_alive` remembers the peak per label."""

    name: str = "fake"
    account: str = "fake-account"
    price_per_hour: MicroDollars = _PRICE_PER_HOUR
    create_limit_seconds: float = 0.0
    capacity: int = 1_000_000
    machines: dict[str, Machine] = field(default_factory=dict)
    created: list[Machine] = field(default_factory=list)
    troubles: Counter[Trouble] = field(default_factory=Counter)
    most_alive: Counter[str] = field(default_factory=Counter)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def will(self, trouble: Trouble, times: int = 1) -> None:
        """Produce `trouble` the next `times` times."""
        self.troubles[trouble] += times

    def vanish(self, provider_id: str) -> None:
        """Remove the machine without a request."""
        self.machines.pop(provider_id, None)

    async def offers(self, want: Requirements) -> list[Offer]:
        self._check_any_call()
        if self._trouble(Trouble.NO_OFFERS):
            return []
        if want.max_price_per_hour is not None and self.price_per_hour > want.max_price_per_hour:
            return []
        return [
            Offer(id="fake-offer", provider=self.name, price_per_hour=self.price_per_hour, gpu="Fake 24 GB", gpus=1)
        ]

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        self._check_any_call()
        if self._trouble(Trouble.REFUSE_CREATE) or len(self.machines) >= self.capacity:
            raise NoCapacity("the offer is no longer available")
        if self._trouble(Trouble.LOSE_CREATE_REQUEST):
            raise AnswerLost("the connection was lost")
        machine = self._make(label)
        if self._trouble(Trouble.LOSE_CREATE_ANSWER):
            raise AnswerLost("the connection was lost")
        return machine.provider_id

    async def listing(self) -> Listing:
        self._check_any_call()
        if self._trouble(Trouble.FAIL_LISTING):
            raise ProviderFault("the listing contradicts itself")
        if self.machines and self._trouble(
            Trouble.LIST_EMPTY
        ):  # without machines, the next one would belong to that account
            return Listing(machines=(), complete=True, account="somebody-else")
        if self._trouble(Trouble.LIST_PARTIALLY):
            return Listing(machines=(), complete=False, account=self.account)
        return Listing(machines=tuple(self.machines.values()), complete=True, account=self.account)

    async def describe(self, provider_id: str) -> Machine | None:
        self._check_any_call()
        if self._trouble(Trouble.FAIL_DESCRIBE):
            raise ProviderFault("the answer has no machine in it")
        return self.machines.get(provider_id)

    async def destroy(self, provider_id: str) -> None:
        self._check_any_call()
        if self._trouble(Trouble.FAIL_DESTROY):
            raise ProviderFault("the machine could not be destroyed")
        if not self._trouble(Trouble.IGNORE_DESTROY):
            self.machines.pop(provider_id, None)

    async def relabel(self, provider_id: str, label: str) -> None:
        self._check_any_call()
        if provider_id not in self.machines:
            raise NoCapacity(f"there is no machine {provider_id}")
        self.machines[provider_id] = replace(self.machines[provider_id], label=label)

    async def stop(self, provider_id: str) -> None:
        self._check_any_call()
        self._set_status(provider_id, MachineStatus.STOPPED)

    async def start(self, provider_id: str) -> bool:
        self._check_any_call()
        if self._trouble(Trouble.QUEUE_START):
            return False
        self._set_status(provider_id, MachineStatus.RUNNING)
        return True

    def access(self, provider_id: str) -> Access:
        """The machine's access; tests provide the matching fake remote."""
        return LocalAccess(root=f"/fake/{provider_id}", job_root=f"/fake/{provider_id}/jobs")

    def _make(self, label: str) -> Machine:
        number = next(self._numbers)
        never_ready = self._trouble(Trouble.NEVER_READY)
        machine = Machine(
            provider_id=f"m{number}",
            label=label,
            status=MachineStatus.CREATING if never_ready else MachineStatus.RUNNING,
            created_at=float(number),
            price_per_hour=self.price_per_hour,
            gpu="Fake 24 GB",
        )
        if not never_ready:
            machine = replace(machine, accesses=(self.access(machine.provider_id),))
        self.machines[machine.provider_id] = machine
        self.created.append(machine)
        self.most_alive[label] = max(self.most_alive[label], self._alive(label))
        return machine

    def _set_status(self, provider_id: str, status: MachineStatus) -> None:
        if provider_id in self.machines:
            self.machines[provider_id] = replace(self.machines[provider_id], status=status)

    def _alive(self, label: str) -> int:
        return sum(machine.label == label for machine in self.machines.values())

    def _check_any_call(self) -> None:
        if self._trouble(Trouble.REFUSE_KEY):
            raise AccessRefused("the key is not accepted")
        if self._trouble(Trouble.BUSY):
            raise ProviderBusy("too many requests", retry_after_seconds=0.0)

    def _trouble(self, trouble: Trouble) -> bool:
        if self.troubles[trouble] <= 0:
            return False
        self.troubles[trouble] -= 1
        return True
