"""A seeded market: hosts, their offers, and prices that change each period."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from stationmaster.money import MicroDollars, from_dollars

HOURS_PER_MONTH = 720
"""Derived from the service's prices: 40 GB at $0.15 per GB and month cost $0.0083 per hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuModel:
    name: str
    memory_mb: int
    compute_capability: int
    usd_per_hour: str
    performance: float
    """The service's benchmark value, DLPerf."""


GPUS = (
    GpuModel(name="RTX 3060", memory_mb=12288, compute_capability=860, usd_per_hour="0.09", performance=24.0),
    GpuModel(name="RTX 3090", memory_mb=24576, compute_capability=860, usd_per_hour="0.21", performance=52.0),
    GpuModel(name="RTX 4080", memory_mb=16376, compute_capability=890, usd_per_hour="0.26", performance=76.0),
    GpuModel(name="RTX 4090", memory_mb=24564, compute_capability=890, usd_per_hour="0.36", performance=104.0),
    GpuModel(name="RTX 5090", memory_mb=32607, compute_capability=1200, usd_per_hour="0.55", performance=190.0),
    GpuModel(name="RTX A6000", memory_mb=49140, compute_capability=860, usd_per_hour="0.45", performance=60.0),
    GpuModel(name="L40S", memory_mb=46068, compute_capability=890, usd_per_hour="0.68", performance=118.0),
    GpuModel(name="A100 PCIE", memory_mb=81920, compute_capability=800, usd_per_hour="0.95", performance=120.0),
    GpuModel(name="A100 SXM4", memory_mb=81920, compute_capability=800, usd_per_hour="1.15", performance=130.0),
    GpuModel(name="H100 SXM", memory_mb=81559, compute_capability=900, usd_per_hour="2.10", performance=310.0),
)
_PLACES = ("Quebec, CA", "California, US", "Texas, US", "Sweden, SE", "Germany, DE", "Poland, PL", "Japan, JP")
_DRIVERS = (("535.183.01", 12.2), ("550.144.03", 12.4), ("570.86.10", 12.8), ("580.65.06", 13.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketOffer:
    """One offer at its current price. Its ask id changes each time the machine is listed again."""

    ask_id: int
    machine_id: int
    host_id: int
    gpu: GpuModel
    num_gpus: int
    gpus_in_machine: int
    cpu_cores: int
    cpu_ram_mb: int
    disk_gb: float
    disk_bandwidth: float
    down_mbps: float
    up_mbps: float
    traffic_usd_per_gb: MicroDollars
    storage_usd_per_gb_month: MicroDollars
    gpu_usd_per_hour: MicroDollars
    min_bid_usd_per_hour: MicroDollars
    place: str
    driver_version: str
    cuda: float
    reliability: float
    verified: bool
    datacenter: bool
    static_ip: bool
    ports: int
    contract_seconds: float

    def disk_usd_per_hour(self, disk_gb: float) -> MicroDollars:
        return MicroDollars(round(self.storage_usd_per_gb_month * disk_gb / HOURS_PER_MONTH))


class Market:
    """The offers at a time; the same seed and time give the same offers."""

    def __init__(self, *, seed: int, hosts: int = 120, period_seconds: float = 600.0) -> None:
        self._seed = seed
        self._period_seconds = period_seconds
        self._drawn: tuple[int, list[MarketOffer]] | None = None
        self._hosts = tuple(_host(seed, index) for index in range(hosts))

    def offers(self, now: float, *, rented: Collection[int], listings: Mapping[int, int]) -> list[MarketOffer]:
        """Offers of machines that are not in `rented`; `listings` is how often each was listed before."""
        return [
            _listed(offer, times=listings.get(offer.machine_id, 0))
            for offer in self._priced(self._period(now))
            if offer.machine_id not in rented
        ]

    def has_machine_of(self, ask_id: int) -> bool:
        """Whether the ask id belongs to one of our machines."""
        return any(host.machine_id == ask_id // 1000 for host in self._hosts)

    def _priced(self, period: int) -> list[MarketOffer]:
        """The offers of a period, cached because drawing prices is slow."""
        if self._drawn is None or self._drawn[0] != period:
            listed = [host for host in self._hosts if _is_listed(host, seed=self._seed, period=period)]
            self._drawn = (period, [_priced(host, seed=self._seed, period=period) for host in listed])
        return self._drawn[1]

    def _period(self, now: float) -> int:
        return int(now // self._period_seconds) if self._period_seconds > 0 else 0


def _listed(offer: MarketOffer, *, times: int) -> MarketOffer:
    """The offer of a machine that was listed so often before; most never were, and need no copy."""
    ask_id = offer.machine_id * 1000 + times % 1000
    return offer if offer.ask_id == ask_id else replace(offer, ask_id=ask_id)


def _host(seed: int, index: int) -> MarketOffer:
    draw = random.Random(f"{seed}/host/{index}")
    # The first hosts have each GPU once, verified and reliable, so that no search on a new market is empty.
    plain = index < len(GPUS)
    gpu = GPUS[index] if plain else draw.choice(GPUS)
    in_machine = draw.choice((1, 2, 4, 8))
    num_gpus = 1 if plain else draw.choice([count for count in (1, 2, 4, 8) if count <= in_machine])
    driver, cuda = _DRIVERS[-1] if plain else draw.choice(_DRIVERS)
    cores = draw.choice((16, 32, 64, 96, 128))
    return MarketOffer(
        ask_id=(10_000 + index * 7) * 1000,
        machine_id=10_000 + index * 7,
        host_id=500 + index // 2,
        gpu=gpu,
        num_gpus=num_gpus,
        gpus_in_machine=max(in_machine, num_gpus),
        cpu_cores=cores,
        cpu_ram_mb=cores * draw.choice((2000, 4000)),
        disk_gb=round(draw.uniform(150, 2000), 1),
        disk_bandwidth=round(draw.uniform(500, 6000), 1),
        down_mbps=round(draw.uniform(300, 2000), 1),
        up_mbps=round(draw.uniform(200, 1500), 1),
        traffic_usd_per_gb=from_dollars(draw.choice(("0.0", "0.002", "0.003", "0.01"))),
        storage_usd_per_gb_month=from_dollars(draw.choice(("0.1", "0.15", "0.2"))),
        gpu_usd_per_hour=from_dollars(gpu.usd_per_hour),
        min_bid_usd_per_hour=MicroDollars(0),
        place=_PLACES[index % len(_PLACES)] if plain else draw.choice(_PLACES),
        driver_version=driver,
        cuda=cuda,
        reliability=round(0.995 if plain else draw.uniform(0.85, 0.9995), 4),
        verified=plain or draw.random() < 0.8,
        datacenter=draw.random() < 0.3,
        static_ip=draw.random() < 0.7,
        ports=draw.choice((8, 64, 250)) if plain or draw.random() < 0.9 else 0,
        contract_seconds=(30 if plain else draw.uniform(1, 60)) * 86400.0,
    )


def _priced(host: MarketOffer, *, seed: int, period: int) -> MarketOffer:
    draw = random.Random(f"{seed}/price/{host.machine_id}/{period}")
    rate = MicroDollars(round(host.gpu_usd_per_hour * host.num_gpus * draw.uniform(0.85, 1.25)))
    return replace(
        host,
        gpu_usd_per_hour=rate,
        min_bid_usd_per_hour=MicroDollars(round(rate * draw.uniform(0.45, 0.7))),
    )


def _is_listed(host: MarketOffer, *, seed: int, period: int) -> bool:
    plain = host.machine_id < 10_000 + len(GPUS) * 7
    return plain or random.Random(f"{seed}/listed/{host.machine_id}/{period}").random() < 0.9
