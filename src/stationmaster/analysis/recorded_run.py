"""All that a run left behind and an analysis reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stationmaster.analysis.configs.base import TrainerConfig
from stationmaster.series.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketOffer:
    """A GPU that can be rented now."""

    gpu: str
    gpu_memory_gb: float
    price_per_hour_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """What home knows beyond this run; all of it may be missing."""

    failures_per_hour: float | None = None
    """How often a machine was lost, per hour of training, over all runs."""
    failure_hours: float = 0.0
    """The hours of training that this figure rests on."""
    offers: tuple[MarketOffer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run: the rows of its job alone, by column, the facts of RunInfo, the log's text and the trainer's config."""

    job_id: str
    tables: Mapping[str, Table]
    info: Mapping[str, str]
    log: str = ""
    config: TrainerConfig | None = None
    experience: Experience = field(default_factory=Experience)
