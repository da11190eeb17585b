"""What a run's series amount to: first, last, lowest, highest and mean values, the pace, the GPUs, the events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stationmaster.series.large_numbers import mean
from stationmaster.series.run_series import RunSeries, Series
from stationmaster.series.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesSummary:
    """One series in numbers; `count` is that of its values, without the missing ones."""

    name: str
    table: str
    count: int
    first: float
    last: float
    lowest: float
    highest: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSummary:
    """One GPU in numbers; None where it was not measured."""

    index: int
    name: str | None
    memory_peak_gb: float | None
    memory_total_gb: float | None
    utilization_mean_percent: float | None
    temperature_peak_c: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in numbers; None where nothing is known. Times are seconds since 1970 by the machine's clock."""

    began_at: float | None
    last_at: float | None
    steps: int  # how many were recorded
    first_step: int | None
    last_step: int | None
    step_time_median: float | None
    step_time_p95: float | None
    gpus: tuple[GpuSummary, ...]
    memory_peak_gb: float | None  # of the machine, without what it could free at once
    memory_total_gb: float | None
    events: tuple[tuple[str, int], ...]  # kind and how often, in the order of their first
    series: tuple[SeriesSummary, ...]


def summarise_run(run: RunSeries) -> RunSummary:
    """Return the numbers of a run."""
    steps = [int(step) for name in ("StepMetric", "StepValue") for step in _known(run, name, "step")]
    pace = sorted(_known(run, "StepMetric", "step_time_seconds"))
    times = [time for table in run.tables.values() for time in table.numbers("timestamp") if time > 0]
    return RunSummary(
        began_at=min(times, default=None),
        last_at=max(times, default=None),
        steps=len(set(steps)),
        first_step=min(steps, default=None),
        last_step=max(steps, default=None),
        step_time_median=_quantile(pace, 0.5),
        step_time_p95=_quantile(pace, 0.95),
        gpus=_gpus(run.tables.get("GpuSample")),
        memory_peak_gb=_memory_peak(run.tables.get("MetricsSample")),
        memory_total_gb=max(_known(run, "MetricsSample", "total_memory_gb"), default=None),
        events=_events(run.tables.get("TrainingEvent")),
        series=tuple(_summary(series) for series in run.all()),
    )


def _summary(series: Series) -> SeriesSummary:
    known = [value for value in series.values if value == value]
    return SeriesSummary(
        name=series.name,
        table=series.table,
        count=len(known),
        first=known[0],
        last=known[-1],
        lowest=min(known),
        highest=max(known),
        mean=mean(known),
    )


def _gpus(samples: Table | None) -> tuple[GpuSummary, ...]:
    found = []
    for index in sorted(set(samples.values("gpu_index"))) if samples is not None else ():
        own = samples.where("gpu_index", index) if samples is not None else None
        assert own is not None
        busy = _numbers(own, "utilization_percent")
        found.append(
            GpuSummary(
                index=index,
                name=next((name for name in own.values("name") if name), None),
                memory_peak_gb=max(_numbers(own, "memory_used_gb"), default=None),
                memory_total_gb=max(_numbers(own, "memory_total_gb"), default=None),
                utilization_mean_percent=mean(busy) if busy else None,
                temperature_peak_c=max(_numbers(own, "temperature_c"), default=None),
            )
        )
    return tuple(found)


def _memory_peak(samples: Table | None) -> float | None:
    if samples is None:
        return None
    pairs = zip(samples.numbers("total_memory_gb"), samples.numbers("available_memory_gb"), strict=True)
    in_use = [total - available for total, available in pairs]
    return max((value for value in in_use if value == value), default=None)


def _events(events: Table | None) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(events.values("event_type")).items()) if events is not None else ()


def _known(run: RunSeries, table: str, column: str) -> list[float]:
    return _numbers(run.tables[table], column) if table in run.tables else []


def _numbers(table: Table, column: str) -> list[float]:
    return [value for value in table.numbers(column) if value == value]


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which this share of the ordered values is."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
