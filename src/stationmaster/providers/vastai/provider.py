"""The Vast.ai provider, for one account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stationmaster.errors import AccessRefused, ConfigInvalid, NoCapacity, ProviderFault
from stationmaster.estimate import hours_on
from stationmaster.model import Charge, Listing, Machine, Offer, Requirements
from stationmaster.money import MicroDollars
from stationmaster.offers import NoOffer, Ranking, price_cap, rank, why_none
from stationmaster.providers.vastai.client import RentOrder, VastClient
from stationmaster.providers.vastai.machine_status import machine
from stationmaster.providers.vastai.onstart import guard_environment, host_keys_in, onstart_script
from stationmaster.providers.vastai.search import candidate, disk_gb, gib, search_query, wide_query
from stationmaster.providers.vastai.wire import ChargeRow, InstanceRow
from stationmaster.settings import SweepSettings, VastSettings
from stationmaster.settings.machines import DEFAULT_JOB_ROOT

_CHARGE_KINDS = {"bwd": "traffic", "bwu": "traffic"}


@dataclass(frozen=True, slots=True, kw_only=True)
class VastOptions:
    """How machines are chosen and set up.

    `public_key` is authorized on machines; `ssh_key_path` is its private key. It is read when a machine is rented, so
    that offers and machines can be listed without a key pair; it raises ConfigInvalid without one.
    """

    public_key: Callable[[], str]
    ssh_key_path: str
    settings: VastSettings = field(default_factory=VastSettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)
    default_image: str = "vastai/pytorch:@vastai-automatic-tag"
    bid_share: float = 1.1  # of an offer's minimum bid
    search_pages: int = 5
    create_limit_seconds: float = 120.0  # the request's timeout, and the same again for a list that lags
    billed_after_seconds: float = 3600.0  # Vast.ai adds to a machine's bill for a while after its end
    log_attempts: int = 30
    log_interval_seconds: float = 0.3


class VastProvider:
    """Implements Provider and what else a market has: ranks offers, explains their absence, stops, relabels, reports
    keys and money."""

    def __init__(self, client: VastClient, *, options: VastOptions, name: str = "vastai") -> None:
        self.name = name
        self._client = client
        self._options = options
        self._account: str | None = None
        self._faults: dict[int, str] = {}

    @property
    def create_limit_seconds(self) -> float:
        return self._options.create_limit_seconds

    @property
    def billed_after_seconds(self) -> float:
        return self._options.billed_after_seconds

    async def offers(self, want: Requirements) -> list[Offer]:
        return [ranked.offer for ranked in (await self.ranking(want)).chosen]

    async def ranking(self, want: Requirements) -> Ranking:
        """Offers, best first, with the cost of the whole job; and why others were excluded."""
        want, preferences = self._as_rented(want), self._options.settings
        query = search_query(want, preferences, storage_gb=self._storage_gb(want))
        return await self._ranked(query, want, until_price=price_cap(want, preferences))

    async def why_no_offer(self, want: Requirements) -> NoOffer:
        """By a search without filters: the service does not tell how many offers a filter excluded."""
        want = self._as_rented(want)
        return why_none(await self._ranked(wide_query(want, storage_gb=self._storage_gb(want)), want))

    async def _ranked(
        self, query: Mapping[str, Any], want: Requirements, *, until_price: MicroDollars | None = None
    ) -> Ranking:
        options = self._options
        found = await self._client.search(query, pages=options.search_pages, until_price=until_price)
        candidates = [candidate(row, want, provider=self.name, bid_share=options.bid_share) for row in found.rows]
        needed = replace(want, disk_gib=gib(self._storage_gb(want)))
        return replace(rank(candidates, needed, options.settings, hours_on(want)), invalid=found.invalid)

    def _storage_gb(self, want: Requirements) -> float:
        return disk_gb(want, default_gb=self._options.settings.default_disk_gb)

    async def create(self, offer: Offer, *, label: str, want: Requirements) -> str:
        """Rent the offer. If the service refused but rented anyway, the machine counts as failed."""
        options, want = self._options, self._as_rented(want)
        if want.interruptible != (offer.bid_per_hour is not None):
            raise ConfigInvalid("an interruptible machine needs a bid, any other must have none")
        created = await self._client.create(
            int(offer.id),
            RentOrder(
                image=want.image or options.default_image,
                disk_gb=disk_gb(want, default_gb=options.settings.default_disk_gb),
                label=label,
                onstart=onstart_script(self._public_key()),
                environment=_environment(options),
                bid_per_hour=offer.bid_per_hour,
            ),
        )
        if created.fault is not None:
            self._faults[created.instance_id] = created.fault
        return str(created.instance_id)

    def require_key(self) -> None:
        self._options.public_key()

    async def listing(self) -> Listing:
        account = await self.account()
        instances = await self._client.instances()
        return Listing(
            machines=tuple(self._machine(row) for row in instances.rows),
            complete=instances.complete,
            account=account,
        )

    async def describe(self, provider_id: str) -> Machine | None:
        if not _can_exist(provider_id):
            return None
        row = await self._client.instance(int(provider_id))
        return None if row is None else self._machine(row)

    async def destroy(self, provider_id: str) -> None:
        if _can_exist(provider_id):
            await self._client.destroy(int(provider_id))

    async def relabel(self, provider_id: str, label: str) -> None:
        if not _can_exist(provider_id):
            raise NoCapacity(f"there is no instance {provider_id}")
        await self._client.label(int(provider_id), label)

    async def stop(self, provider_id: str) -> None:
        await self._client.stop(int(provider_id))

    async def start(self, provider_id: str) -> bool:
        return await self._client.start(int(provider_id))

    async def log(self, provider_id: str, *, lines: int = 1000) -> str:
        """The last lines of the container's log."""
        options = self._options
        return await self._client.log(
            int(provider_id),
            tail=lines,
            attempts=options.log_attempts,
            interval_seconds=options.log_interval_seconds,
        )

    async def host_keys(self, provider_id: str) -> tuple[str, ...]:
        return host_keys_in(await self.log(provider_id))

    async def account_keys(self) -> tuple[str, ...]:
        return await self._client.account_keys()

    async def add_account_key(self, public_key: str) -> None:
        known = {_key_itself(key) for key in await self.account_keys()}
        if _key_itself(public_key) not in known:
            await self._client.add_account_key(public_key)

    async def attach_key(self, provider_id: str, public_key: str) -> None:
        await self._client.attach_key(int(provider_id), public_key)

    async def let_us_in(self, provider_id: str) -> None:
        await self.attach_key(provider_id, self._public_key())

    @property
    def clock_ahead_seconds(self) -> float | None:
        return self._client.clock_ahead_seconds

    async def credit(self) -> MicroDollars:
        """Raises ProviderFault if the service does not state it: unknown credit is not zero."""
        credit = (await self._client.user()).credit
        if credit is None:
            raise ProviderFault("Vast.ai does not state the account's credit")
        return credit

    async def charges(self, *, since: float, until: float) -> list[Charge]:
        rows = await self._client.charges(since=since, until=until)
        return [charge for row in rows for charge in _charges(row)]

    async def account(self) -> str:
        """The account's id; read once, because a key always belongs to the same account."""
        if self._account is None:
            self._account = str((await self._client.user()).id)
        return self._account

    def _public_key(self) -> str:
        """The public key for a new machine. Raises AccessRefused if the pair is gone."""
        try:
            return self._options.public_key()
        except ConfigInvalid as problem:
            raise AccessRefused(str(problem), hint=problem.hint) from problem

    def _as_rented(self, want: Requirements) -> Requirements:
        return replace(want, interruptible=want.interruptible or self._options.settings.interruptible)

    def _machine(self, row: InstanceRow) -> Machine:
        return machine(
            row,
            key_path=self._options.ssh_key_path,
            job_root=self._options.settings.job_root,
            fault=self._faults.get(row.id),
        )


def _environment(options: VastOptions) -> dict[str, str]:
    """Variables for the machine. The job folder only if it is not the default: a machine may have its own."""
    settings = options.settings
    guard = guard_environment(idle_seconds=settings.guard_idle, abandon_seconds=max(1.0, options.sweep.abandon_after))
    elsewhere = settings.job_root != DEFAULT_JOB_ROOT
    return {**guard, "STATIONMASTER_JOB_ROOT": settings.job_root} if elsewhere else guard


def _can_exist(provider_id: str) -> bool:
    """Whether it is a number, as the service's ids are; anything else would be another path of its API."""
    return provider_id.isascii() and provider_id.isdigit()


def _charges(row: ChargeRow) -> list[Charge]:
    """One charge per kind; a row without items counts as GPU cost."""
    amounts: dict[str, int] = {}
    for item in row.items or ():
        kind = _CHARGE_KINDS.get(item.type or "", item.type or "gpu")
        amounts[kind] = amounts.get(kind, 0) + item.amount
    return [
        Charge(
            provider_id=row.source.removeprefix("instance-"),
            kind=kind,
            amount=MicroDollars(amount),
            started_at=row.start,
            ended_at=row.end,
        )
        for kind, amount in (amounts or {"gpu": row.amount}).items()
    ]


def _key_itself(line: str) -> tuple[str, ...]:
    """Type and key, without the comment."""
    return tuple(line.split()[:2])
