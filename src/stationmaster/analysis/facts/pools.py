"""The memory that a run could fill up: the GPU's, the system's, or a container's share of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from stationmaster.analysis.facts.phases import Phases, RunPhase
from stationmaster.series.table import Table

GPU, SYSTEM, CONTAINER = "gpu", "system", "container"
DISCRETE, UNIFIED, CPU = "discrete", "unified", "cpu"

_MOST_OVER = 1.02  # a reading that is further above the total is broken
_PLATEAU_SECONDS = 20.0
_LEAST_PLATEAU = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How much of a pool was in use, with what the loader's workers held of it."""

    at: float
    used_gb: float
    worker_gb: float | None = None
    workers: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """One pool of memory over the run, by time; it has at least one level."""

    name: str
    size_gb: float
    levels: tuple[Level, ...]
    is_measured: bool = True
    """False for a pool that no sample shows: its figures are those of an error message, or only stand for `full`."""

    @property
    def peak(self) -> Level:
        return max(self.levels, key=lambda level: level.used_gb)

    @property
    def share(self) -> float:
        """The highest use of the whole run, as a part of the size."""
        return self.peak.used_gb / self.size_gb

    @property
    def is_gpu(self) -> bool:
        return self.name == GPU

    def nearest(self, time: float) -> Level:
        return min(self.levels, key=lambda level: abs(level.at - time))

    def highest(self, wanted: Callable[[float], bool]) -> float | None:
        """Return the highest use at the wanted times; None if there is no sample of them."""
        return max((level.used_gb for level in self.levels if wanted(level.at)), default=None)

    def base(self, phases: Phases) -> float | None:
        """Return the level on the plateau before the first step, with the weights loaded."""
        first = phases.first_step_at
        if first is None:
            return None
        before = [level for level in self.levels if level.at < first]
        plateau = [level.used_gb for level in before if level.at >= first - _PLATEAU_SECONDS]
        if len(plateau) < _LEAST_PLATEAU:
            plateau = [level.used_gb for level in before[-_LEAST_PLATEAU:]]
        return median(plateau) if plateau else None

    def in_training(self, phases: Phases) -> list[Level]:
        """Return the levels while steps were trained."""
        return [level for level in self.levels if phases.is_settled_training(level.at)]

    def loaded_peak(self, phases: Phases) -> float | None:
        """Return the highest use before the first step."""
        return self.highest(lambda time: phases.at(time) is RunPhase.LOADING)


def platform_of(tables: Mapping[str, Table], info: Mapping[str, str]) -> str:
    """Return what the run ran on: as RunInfo names it, else as its samples show."""
    named = info.get("platform", "").strip().casefold()
    if named in (DISCRETE, UNIFIED, CPU):
        return named
    gpus = tables.get("GpuSample")
    if gpus is None or not len(gpus):
        samples = tables.get("MetricsSample")
        used = samples.values("gpu_memory_used_gb") if samples is not None else []
        return DISCRETE if any(value for value in used) else CPU
    return DISCRETE if any(total for total in gpus.values("memory_total_gb")) else UNIFIED


def gpu_pool(tables: Mapping[str, Table], *, card_gb: float | None) -> Pool | None:
    """Return the memory of the fullest GPU. `card_gb`: a card's size for samples that lack it."""
    table = tables.get("GpuSample")
    if table is None or not len(table):
        return _pool_of_samples_alone(tables.get("MetricsSample"), card_gb)
    by_gpu: dict[int, list[tuple[float, float]]] = {}
    totals: dict[int, list[float]] = {}
    for at, index, used, total in table.tuples("timestamp", "gpu_index", "memory_used_gb", "memory_total_gb"):
        if total is not None and total > 0:
            totals.setdefault(index, []).append(total)
        if used is not None:
            by_gpu.setdefault(index, []).append((at, used))
    pools = []
    for index, readings in by_gpu.items():
        size = median(totals[index]) if index in totals else card_gb
        if size:
            pools.append(_pool(GPU, size, [Level(at=at, used_gb=used) for at, used in readings]))
    found = [pool for pool in pools if pool is not None]
    return max(found, key=lambda pool: pool.share) if found else None


def _pool_of_samples_alone(table: Table | None, card_gb: float | None) -> Pool | None:
    if table is None or not card_gb:
        return None
    readings = table.tuples("timestamp", "gpu_memory_used_gb")
    return _pool(GPU, card_gb, [Level(at=at, used_gb=used) for at, used in readings if used is not None])


def system_pool(tables: Mapping[str, Table], info: Mapping[str, str]) -> Pool | None:
    """Return the system's memory, or the container's where a limit below the total holds."""
    table = tables.get("MetricsSample")
    if table is None or not len(table):
        return None
    totals = [total for total in table.values("total_memory_gb") if total is not None and total > 0]
    limit = _limit(info)
    total = median(totals) if totals else None
    if limit is not None and (total is None or limit < total):
        return _pool(CONTAINER, limit, _own_levels(table))
    return None if total is None else _pool(SYSTEM, total, _levels_of_all(table))


def swap_growth_gb(tables: Mapping[str, Table]) -> float:
    """Return how much swap grew since the first sample; what was in use before means nothing."""
    table = tables.get("MetricsSample")
    if table is None:
        return 0.0
    rows = sorted(
        (at, used) for at, used in table.tuples("timestamp", "swap_used_gb") if used is not None and used >= 0
    )
    return max(used for _, used in rows) - rows[0][1] if rows else 0.0


def _limit(info: Mapping[str, str]) -> float | None:
    try:
        limit = float(info["memory_limit_gb"])
    except (KeyError, ValueError):
        return None
    return limit if limit > 0 else None


def _levels_of_all(table: Table) -> list[Level]:
    columns = ("timestamp", "total_memory_gb", "available_memory_gb", "worker_memory_gb", "worker_count")
    found = []
    for at, total, available, worker_gb, workers in table.tuples(*columns):
        if total is not None and available is not None:
            found.append(Level(at=at, used_gb=total - available, worker_gb=_sound(worker_gb), workers=workers))
    return found


def _own_levels(table: Table) -> list[Level]:
    """The host's figures are other people's: in a container only the training's own processes count."""
    columns = ("timestamp", "main_process_memory_gb", "worker_memory_gb", "worker_count")
    found = []
    for at, main, worker_gb, workers in table.tuples(*columns):
        if main is not None and main >= 0 and (worker_gb is None or worker_gb >= 0):
            found.append(Level(at=at, used_gb=main + (worker_gb or 0.0), worker_gb=worker_gb, workers=workers))
    return found


def _sound(value: float | None) -> float | None:
    return value if value is not None and value >= 0 else None


def _pool(name: str, size_gb: float, levels: Sequence[Level]) -> Pool | None:
    sound = [level for level in levels if 0 <= level.used_gb <= size_gb * _MOST_OVER]
    if not sound:
        return None
    return Pool(name=name, size_gb=size_gb, levels=tuple(sorted(sound, key=lambda level: level.at)))
