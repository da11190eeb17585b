"""The machines of simulated trainings."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine and what was in use on it before the training began. All memory in GB."""

    platform: str = "discrete"
    card: str = "NVIDIA GeForce RTX 4090"
    card_gb: tuple[float, ...] = (24.0,)
    memory_gb: float = 62.7
    idle_gb: float = 3.2
    """System memory of everything else on the machine."""
    page_cache_gb: float = 10.0
    swap_gb: float = 0.0
    limit_gb: float | None = None
    """The container's limit on system memory."""
    rated_clock: float = 2520.0
    power_limit: float = 450.0

    @property
    def is_contained(self) -> bool:
        return self.limit_gb is not None and self.limit_gb < self.memory_gb

    @property
    def system_size(self) -> float:
        return self.limit_gb if self.limit_gb is not None and self.is_contained else self.memory_gb


RTX_4090 = Machine()
RTX_3060 = Machine(card="NVIDIA GeForce RTX 3060", card_gb=(12.0,), memory_gb=31.2, rated_clock=1777, power_limit=170)
RTX_3090 = Machine(card="NVIDIA GeForce RTX 3090", rated_clock=1695, power_limit=350)
A6000 = Machine(card="NVIDIA RTX A6000", card_gb=(48.0,), memory_gb=125.6, rated_clock=1800, power_limit=300)
H100 = Machine(card="NVIDIA H100 80GB HBM3", card_gb=(79.6,), memory_gb=251.4, rated_clock=1980, power_limit=700)
SPARK = Machine(platform="unified", card="NVIDIA GB10", memory_gb=119.7, idle_gb=5.9, rated_clock=2418, power_limit=140)
MAC = Machine(platform="unified", card="Apple M3 Max", memory_gb=64.0, idle_gb=7.5, rated_clock=1400, power_limit=80)
CPU_SERVER = Machine(platform="cpu", card="", card_gb=(), memory_gb=62.7)
RENTED_4090 = replace(RTX_4090, memory_gb=503.7, idle_gb=210.0, page_cache_gb=180.0, limit_gb=62.0)
TWO_3090 = replace(RTX_3090, card_gb=(24.0, 24.0), memory_gb=125.6)
