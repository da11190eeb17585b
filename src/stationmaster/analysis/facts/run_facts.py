"""One run as the rules see it: pools, phases, log, losses and how it ended, read once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from stationmaster.analysis.configs.base import TrainerConfig, number
from stationmaster.analysis.facts.ending import Ending, ending_of
from stationmaster.analysis.facts.log_facts import LogFacts, first_time_in, out_of_memory_of, read_log
from stationmaster.analysis.facts.losses import Losses, losses_of_log, losses_of_rows
from stationmaster.analysis.facts.phases import Phases, RunEvent, RunPhase, events_of, phases_of
from stationmaster.analysis.facts.pools import (
    DISCRETE,
    Pool,
    gpu_pool,
    platform_of,
    swap_growth_gb,
    system_pool,
)
from stationmaster.analysis.facts.text_rows import TextRows, text_rows_of
from stationmaster.analysis.facts.troubles import Trouble, troubles_of
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.analysis.report import Severity
from stationmaster.parsers.base import ErrorKind
from stationmaster.series.table import Table

WARNING_SHARE = 0.85
CRITICAL_SHARE = 0.95
CRITICAL_ADVICE_SHARE = 0.90


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Shares of a pool: from which a run's health is a warning, critical, and from which advice is critical."""

    warning: float = WARNING_SHARE
    critical: float = CRITICAL_SHARE
    critical_advice: float = CRITICAL_ADVICE_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """How busy the busiest GPU was while steps were trained."""

    samples: int
    idle: int
    mean_percent: float

    @property
    def idle_share(self) -> float:
        return self.idle / self.samples if self.samples else 0.0


_IDLE_PERCENT = 10.0
_WITHOUT_BF16 = re.compile(r"\b(?:T4|V100|P100|P40|GTX|TITAN|RTX 20\d\d|Quadro RTX)\b", re.IGNORECASE)
_ZONE_SECONDS = 900  # time zones differ by quarters of an hour


class RunFacts:
    """All that rules read. Every figure is worked out on first use."""

    def __init__(self, run: RecordedRun) -> None:
        self.run = run
        # A damaged file may hold keys without a value.
        self.info = {key: value for key, value in run.info.items() if isinstance(value, str)}
        self.config: TrainerConfig | None = run.config
        self.tables: Mapping[str, Table] = run.tables

    # ---- facts of RunInfo

    def info_number(self, key: str) -> float | None:
        return number(self.info.get(key))

    @cached_property
    def framework(self) -> str | None:
        named = self.info.get("framework")
        return named or (self.config.framework if self.config else None)

    @cached_property
    def price_per_hour(self) -> float | None:
        return self.info_number("price_per_hour_usd")

    @cached_property
    def total_steps(self) -> int | None:
        for found in (self.info_number("total_steps"), self.log.total_steps):
            if found:
                return int(found)
        setting = self.config.setting(Lever.STEPS) if self.config else None
        asked = number(setting.value) if setting and setting.is_given else None
        return int(asked) if asked else None

    # ---- log, events, steps

    @cached_property
    def log(self) -> LogFacts:
        named = self.info.get("framework") or (self.config.framework if self.config else None)
        known = named if named in ("ai-toolkit", "kohya") else None
        asked = self.info_number("total_steps")
        return read_log(
            self.run.log,
            framework=known,
            total_steps=int(asked) if asked else None,
            utc_offset=self._utc_offset(),
        )

    def _utc_offset(self) -> float:
        """The log's local time minus UTC; if unknown, the zone that brings its first line to the first row."""
        known = self.info_number("utc_offset_seconds")
        if known is not None:
            return known
        first = first_time_in(self.run.log)
        if first is None or self.row_times is None:
            return 0.0
        return round((first - self.row_times[0]) / _ZONE_SECONDS) * _ZONE_SECONDS

    @cached_property
    def events(self) -> list[RunEvent]:
        return events_of(self.tables.get("TrainingEvent"))

    def events_of_kind(self, kind: str) -> list[RunEvent]:
        return [event for event in self.events if event.kind == kind]

    @cached_property
    def steps(self) -> Table | None:
        table = self.tables.get("StepMetric")
        return table if table is not None and len(table) else None

    @cached_property
    def row_times(self) -> tuple[float, float] | None:
        """The first and the last time of any row."""
        times = [
            time
            for name in ("MetricsSample", "GpuSample", "StepMetric", "TrainingEvent")
            if (table := self.tables.get(name)) is not None
            for time in table.values("timestamp")
        ]
        return (min(times), max(times)) if times else None

    @cached_property
    def phases(self) -> Phases:
        last = self.row_times[1] if self.row_times else math.inf
        return phases_of(self.events, self.steps, last_row_at=last)

    @cached_property
    def steps_completed(self) -> int | None:
        """The highest step that rows or log prove. An event of running out of memory names a step that failed."""
        proven = [int(step) for step in self.steps.values("step")] if self.steps is not None else []
        proven += [event.step for event in self.events if event.step is not None and event.kind != "oom_error"]
        if self.log.steps is not None:
            proven.append(self.log.steps)
        if proven:
            return max(proven)
        return 0 if self.run.log.strip() or self.row_times else None

    @cached_property
    def duration_seconds(self) -> float | None:
        started, ended = self.info_number("started_at"), self.info_number("ended_at")
        if started is not None and ended is not None and ended >= started:
            return ended - started
        return self.row_times[1] - self.row_times[0] if self.row_times else None

    @cached_property
    def training_seconds(self) -> float:
        """How long steps were trained, without loading, sampling and saving."""
        first = self.phases.first_step_at
        if first is None or not math.isfinite(self.phases.ended_at):
            return 0.0
        away = sum(
            min(pause.end, self.phases.ended_at) - pause.start for pause in self.phases.pauses if pause.start >= first
        )
        reloading = sum(end - start for start, end in self.phases.reloads)
        return max(0.0, self.phases.ended_at - first - away - reloading)

    # ---- losses

    @cached_property
    def losses(self) -> Losses | None:
        zero_is_nan = self.framework == "ai-toolkit"
        every = self.info_number("loss_every_steps") or 1
        found = losses_of_rows(self.steps, zero_is_nan=zero_is_nan, every_steps=max(1, int(every)))
        return found or losses_of_log(self.log.losses, zero_is_nan=zero_is_nan)

    @cached_property
    def has_nan(self) -> bool:
        return self.log.has_nan or (self.losses is not None and self.losses.nan_at is not None)

    @cached_property
    def divergence(self) -> float | None:
        return None if self.has_nan or self.losses is None else self.losses.divergence()

    @property
    def is_spoilt(self) -> bool:
        return self.has_nan or self.divergence is not None

    # ---- memory

    @cached_property
    def platform(self) -> str:
        return platform_of(self.tables, self.info)

    @cached_property
    def gpu(self) -> Pool | None:
        """The GPU's pool; None where the system's memory is the only one."""
        if self.platform != DISCRETE:
            return None
        capacities = [out_of_memory_of(error.message).capacity_gb for error in self.log.errors]
        return gpu_pool(self.tables, card_gb=next((capacity for capacity in capacities if capacity), None))

    @cached_property
    def system(self) -> Pool | None:
        return system_pool(self.tables, self.info)

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        return tuple(pool for pool in (self.gpu, self.system) if pool is not None)

    @cached_property
    def training_pool(self) -> Pool | None:
        """The pool that weights and activations are in."""
        return self.gpu if self.platform == DISCRETE else self.system

    @cached_property
    def summary_pool(self) -> Pool | None:
        if self.gpu is None:
            return self.system
        if self.system is None:
            return self.gpu
        full = self.system.share > self.thresholds.warning and self.system.share > self.gpu.share
        return self.system if full else self.gpu

    @cached_property
    def share(self) -> float | None:
        """The highest share of any pool."""
        return max((pool.share for pool in self.pools), default=None)

    @cached_property
    def swap_growth_gb(self) -> float:
        return swap_growth_gb(self.tables)

    @cached_property
    def thresholds(self) -> Thresholds:
        given = {**(self.config.thresholds if self.config else {}), **self._own_thresholds()}
        warning = given.get("memory_warning_threshold")
        advice = CRITICAL_ADVICE_SHARE if warning is None else max(CRITICAL_ADVICE_SHARE, warning)
        return Thresholds(
            warning=WARNING_SHARE if warning is None else warning,
            critical=given.get("memory_critical_threshold", CRITICAL_SHARE),
            critical_advice=advice,
        )

    def _own_thresholds(self) -> dict[str, float]:
        names = ("memory_warning_threshold", "memory_critical_threshold")
        return {name: found for name in names if (found := self.info_number(name)) is not None}

    @cached_property
    def gpu_name(self) -> str | None:
        table = self.tables.get("GpuSample")
        return next((name for name in table.values("name") if name), None) if table is not None else None

    @property
    def gpu_lacks_bf16(self) -> bool:
        return _WITHOUT_BF16.search(self.gpu_name or "") is not None

    @cached_property
    def troubles(self) -> tuple[Trouble, ...]:
        return troubles_of(self)

    @cached_property
    def memory_is_short(self) -> bool:
        """Memory ran out or was filled above what is safe: then a GPU may wait for memory."""
        return any(trouble.severity is Severity.CRITICAL for trouble in self.troubles)

    # ---- GPU load

    @cached_property
    def utilisation(self) -> Utilisation | None:
        """None without readings of the GPU's load while steps were trained."""
        busiest: dict[float, float] = {}
        gpus = self.tables.get("GpuSample")
        if gpus is not None:
            for at, percent in gpus.tuples("timestamp", "utilization_percent"):
                if percent is not None:
                    busiest[at] = max(busiest.get(at, 0.0), percent)
        samples = self.tables.get("MetricsSample")
        if not busiest and samples is not None and self.platform != "cpu":
            for at, percent in samples.tuples("timestamp", "gpu_utilization_percent"):
                if percent is not None:
                    busiest[at] = percent
        training = [percent for at, percent in busiest.items() if self.phases.at(at) is RunPhase.TRAINING]
        if not training:
            return None
        idle = sum(percent <= _IDLE_PERCENT for percent in training)
        return Utilisation(samples=len(training), idle=idle, mean_percent=sum(training) / len(training))

    # ---- the end

    @cached_property
    def ending(self) -> Ending:
        last = self.system.levels[-1].at if self.system is not None else None
        recent = (
            self.system.highest(lambda time: time >= last - 60)
            if self.system is not None and last is not None
            else None
        )
        full = self.system is not None and recent is not None and recent / self.system.size_gb >= CRITICAL_SHARE
        return ending_of(
            info=self.info,
            log=self.log,
            steps=self.steps_completed,
            total_steps=self.total_steps,
            system_was_full=full or self.killed_by_kernel,
            has_training_end=any(event.kind == "training_end" for event in self.events),
        )

    @cached_property
    def text_rows(self) -> TextRows | None:
        """The rows of a language model's dataset; None where they were not measured."""
        context = self.info_number("context_tokens")
        return text_rows_of(self.tables, context=context, batch_size=self.batch_size)

    @cached_property
    def batch_size(self) -> int | None:
        """The batch of the last steps: of the rows, else of the config."""
        rows = self.steps.values("batch_size") if self.steps is not None else []
        measured = [int(size) for size in rows if size]
        if measured:
            return measured[-1]
        started = [event.whole("batch_size") for event in self.events_of_kind("training_start")]
        known = [size for size in started if size]
        if known:
            return known[-1]
        setting = self.config.setting(Lever.BATCH_SIZE) if self.config else None
        found = number(setting.value) if setting else None
        return int(found) if found else None

    @cached_property
    def median_step_seconds(self) -> float | None:
        rows = self.steps.values("step_time_seconds") if self.steps is not None else []
        known = [seconds for seconds in rows if seconds]
        return median(known) if known else None

    @property
    def oom_events(self) -> list[RunEvent]:
        return self.events_of_kind("oom_error")

    @cached_property
    def had_oom(self) -> bool:
        """Out of memory in the log, as an event, or as a kill while the system's memory was full."""
        killed = self.ending.killed_for_memory or self.killed_by_kernel
        return killed or self.gpu_refused_memory or self.log.host_memory_refused

    @cached_property
    def gpu_refused_memory(self) -> bool:
        """An allocation for the training failed, on the card or in the memory that it shares."""
        refused = [event for event in self.oom_events if not event.is_of_kernel]
        return any(error.kind is ErrorKind.OOM for error in self.log.errors) or bool(refused)

    @property
    def killed_by_kernel(self) -> bool:
        """The kernel counted a kill for lack of system memory, also of a peak that fell between two samples."""
        return any(event.is_of_kernel for event in self.oom_events)
