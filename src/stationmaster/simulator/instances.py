"""Instances as the service stores them: one frozen record each, replaced on every change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from stationmaster.money import MicroDollars
from stationmaster.simulator.market import MarketOffer


class ActualStatus(StrEnum):
    """The container's last reported status; None before the first report."""

    CREATED = "created"
    LOADING = "loading"
    RUNNING = "running"
    EXITED = "exited"
    OFFLINE = "offline"


class WantedState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period in which the GPU was billed at one rate; still open if `end` is None."""

    usd_per_hour: MicroDollars
    start: float
    end: float | None = None

    def seconds_until(self, moment: float) -> float:
        return max(0.0, min(moment, self.end if self.end is not None else moment) - self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshKey:
    id: int
    text: str
    created_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A machine's SSH addresses: its direct port, and the service's proxy."""

    direct_host: str
    direct_port: int
    proxy_host: str
    proxy_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceOrder:
    """The order that created the instance."""

    image: str
    label: str | None
    disk_gb: float
    environment: tuple[tuple[str, str], ...]
    onstart: str | None
    runtype: str
    bid_usd_per_hour: MicroDollars | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    id: int
    account_id: int
    offer: MarketOffer
    order: InstanceOrder
    api_key: str
    marker: str
    created_at: float
    end_at: float
    ready_at: float
    wanted: WantedState = WantedState.RUNNING
    contract: WantedState = WantedState.RUNNING
    scheduled: WantedState = WantedState.RUNNING
    actual: ActualStatus | None = None
    status_message: str | None = None
    running_since: float | None = None
    billed: tuple[Period, ...] = ()
    downloaded_bytes: int = 0
    uploaded_bytes: int = 0
    address: Address | None = None
    ssh_keys: tuple[SshKey, ...] = ()
    destroy_at: float | None = None
    destroyed_at: float | None = None
    stuck: bool = False
    hidden_until: float = 0.0
    outbid_until: float = 0.0
    told_status: ActualStatus | None = None
    told_until: float = 0.0

    @property
    def gpu_usd_per_hour(self) -> MicroDollars:
        bid = self.order.bid_usd_per_hour
        return self.offer.gpu_usd_per_hour if bid is None else bid

    @property
    def disk_usd_per_hour(self) -> MicroDollars:
        return self.offer.disk_usd_per_hour(self.order.disk_gb)

    @property
    def exists(self) -> bool:
        return self.destroyed_at is None

    def shown_status(self, now: float) -> ActualStatus | None:
        """The status that the API shows; a fault may replace it for some time."""
        return self.told_status if self.told_status is not None and now < self.told_until else self.actual

    def came_up(self, now: float, address: Address) -> Instance:
        """The instance running, with its GPU billed from `now` on."""
        image = self.order.image.replace(":", "_")
        return replace(
            self,
            actual=ActualStatus.RUNNING,
            contract=WantedState.RUNNING,
            status_message=f"success, running {image}/{self.order.runtype.split()[0].split('_')[0]}",
            running_since=now,
            billed=(*self.billed, Period(usd_per_hour=self.gpu_usd_per_hour, start=now)),
            address=address,
        )

    def went_down(self, now: float, *, message: str, wanted: WantedState = WantedState.STOPPED) -> Instance:
        """The instance stopped: the GPU is no longer billed, the disk still is."""
        return replace(
            self.stopped_billing(now),
            wanted=wanted,
            contract=WantedState.STOPPED,
            scheduled=wanted,
            # After a failed start the status stays created or loading; only the three states show it.
            actual=ActualStatus.EXITED if self.actual in (ActualStatus.RUNNING, ActualStatus.OFFLINE) else self.actual,
            status_message=message,
            running_since=None,
        )

    def bidding(self, bid: MicroDollars, now: float) -> Instance:
        """The instance with another bid from `now` on; earlier periods keep their price."""
        changed = replace(self, order=replace(self.order, bid_usd_per_hour=bid))
        if self.running_since is None:
            return changed
        billed = (*self.stopped_billing(now).billed, Period(usd_per_hour=bid, start=now))
        return replace(changed, billed=billed)

    def stopped_billing(self, now: float) -> Instance:
        closed = tuple(replace(period, end=now) if period.end is None else period for period in self.billed)
        return replace(self, billed=closed)
