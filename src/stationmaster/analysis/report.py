"""What an analysis gives: a summary, ranked recommendations and the log's errors. The fields that programs read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stationmaster.analysis.levers import Lever

JsonValue = Any


class Health(StrEnum):
    """How a run went."""

    GOOD = "good"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"


class Severity(StrEnum):
    """How much a recommendation matters, most first."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Confidence(StrEnum):
    """How sure a recommendation is: measured in this run, derived from measurements, or likely by experience."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One measured fact behind a recommendation, and the threshold that it crossed where there is one."""

    what: str
    value: JsonValue
    unit: str = ""
    threshold: JsonValue = None

    def as_json(self) -> dict[str, JsonValue]:
        return {"what": self.what, "value": self.value, "unit": self.unit, "threshold": self.threshold}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """One change for the next run. `impact` says what it is expected to gain, `basis` on what that rests."""

    rule: str
    severity: Severity
    lever: Lever
    title: str
    action: str
    impact: str
    config_path: str
    current_value: JsonValue
    recommended_value: JsonValue
    evidence: tuple[Evidence, ...] = ()
    basis: str = ""
    confidence: Confidence = Confidence.MEDIUM

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "severity": self.severity.value,
            "title": self.title,
            "action": self.action,
            "impact": self.impact,
            "config_path": self.config_path,
            "current_value": self.current_value,
            "recommended_value": self.recommended_value,
            "rule": self.rule,
            "lever": self.lever.value,
            "basis": self.basis,
            "confidence": self.confidence.value,
            "evidence": [each.as_json() for each in self.evidence],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LogError:
    """A problem that the log reports, once. Times are the machine's, memory is that of the summary's pool."""

    timestamp: float | None
    level: str
    """ERROR ended the run, spoilt it or lost work; WARNING had no consequence."""
    message: str
    memory_at_time_gb: float | None
    kind: str = "other"
    count: int = 1
    traceback: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "timestamp": self.timestamp,
            "level": self.level,
            "message": self.message,
            "memory_at_time_gb": self.memory_at_time_gb,
            "kind": self.kind,
            "count": self.count,
            "traceback": self.traceback,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The run in six figures. Memory is that of the pool that matters: the GPU's, or the system's where that is it."""

    health_score: Health
    peak_memory_gb: float | None
    total_memory_gb: float | None
    training_completed: bool
    steps_completed: int | None
    duration_minutes: float | None
    memory_pool: str | None = None
    """`gpu`, `system` or `container`."""
    total_steps: int | None = None
    """Asked for."""

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "health_score": self.health_score.value,
            "peak_memory_gb": self.peak_memory_gb,
            "total_memory_gb": self.total_memory_gb,
            "training_completed": self.training_completed,
            "steps_completed": self.steps_completed,
            "duration_minutes": self.duration_minutes,
            "memory_pool": self.memory_pool,
            "total_steps": self.total_steps,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The analysis of one run."""

    job_id: str
    summary: Summary
    recommendations: tuple[Recommendation, ...]
    log_errors: tuple[LogError, ...]
    timeline: Sequence[Mapping[str, JsonValue]] = ()
    """Memory, GPU and events over time, thinned for a chart."""
    notes: tuple[str, ...] = field(default=())
    """What could not be judged, and why."""

    @property
    def health(self) -> Health:
        return self.summary.health_score

    @property
    def first(self) -> Recommendation | None:
        """The recommendation that matters most."""
        return self.recommendations[0] if self.recommendations else None

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "job_id": self.job_id,
            "health": self.health.value,
            "summary": self.summary.as_json(),
            "recommendations": [each.as_json() for each in self.recommendations],
            "log_errors": [each.as_json() for each in self.log_errors],
            "metrics_timeline": [dict(point) for point in self.timeline],
            "notes": list(self.notes),
        }
