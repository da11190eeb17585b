"""Analyses of trainings."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, Field

from stationmaster.analysis.report import Report
from stationmaster.analysis.stored_report import report_from_json, report_to_json
from stationmaster.station.analysis import Analysis
from stationmaster.station.wire.document import Document, Instant


class EvidenceDocument(Document):
    """One measured fact behind a recommendation."""

    what: str = Field(examples=["peak GPU memory"])
    value: Any
    unit: str = Field(default="", examples=["GB"])
    threshold: Any = None
    """What the value crossed, where there is such a limit."""


class RecommendationDocument(Document):
    """One change for the next run."""

    severity: str = Field(examples=["warning"])
    """`critical`, `warning` or `info`."""
    title: str
    action: str
    """What to change."""
    impact: str
    """The expected gain."""
    config_path: str = Field(examples=["parameters.batch_size"])
    current_value: Any
    recommended_value: Any
    rule: str
    """The rule that found it."""
    lever: str
    """The setting, whatever its trainer calls it."""
    basis: str
    """What the expected gain rests on."""
    confidence: str = Field(examples=["high"])
    """`high`, `medium` or `low`."""
    evidence: tuple[EvidenceDocument, ...]


class LogErrorDocument(Document):
    """A problem that the log reports, once."""

    timestamp: float | None
    """Seconds since 1970 by the machine's clock."""
    level: str = Field(examples=["ERROR"])
    """`ERROR`: ended the training, spoilt it or lost work; `WARNING`: had no consequence."""
    message: str
    memory_at_time_gb: float | None
    kind: str
    count: int
    """How often it occurs."""
    traceback: str | None


class ReportSummaryDocument(Document):
    """The run in a few figures. GB is 2³⁰ bytes."""

    health_score: str = Field(examples=["good"])
    """`good`, `warning`, `critical` or `unknown`."""
    peak_memory_gb: float | None
    """Of the memory that matters; see `memory_pool`."""
    total_memory_gb: float | None
    training_completed: bool
    steps_completed: int | None
    duration_minutes: float | None
    memory_pool: str | None
    """`gpu`, `system` or `container`."""
    total_steps: int | None
    """That were asked for."""


class TimelinePointDocument(Document):
    """Memory at one time, or an event: fields that do not apply are left out."""

    model_config = ConfigDict(frozen=True, extra="allow", use_attribute_docstrings=True)

    timestamp: float | None = None
    """Seconds since 1970 by the machine's clock."""
    memory_gb: float | None = None
    memory_percent: float | None = None
    event: str | None = None
    step: int | None = None


class ReportDocument(Document):
    """The analysis of a run."""

    job_id: str
    health: str = Field(examples=["good"])
    """`good`, `warning`, `critical` or `unknown`."""
    summary: ReportSummaryDocument
    recommendations: tuple[RecommendationDocument, ...]
    """What to change, most important first."""
    log_errors: tuple[LogErrorDocument, ...]
    metrics_timeline: tuple[TimelinePointDocument, ...]
    """Memory and events over time, thinned for a chart."""
    notes: tuple[str, ...]
    """What could not be read or judged."""

    @classmethod
    def of_report(cls, report: Report) -> Self:
        return cls.model_validate(report_to_json(report))

    def report(self) -> Report:
        return report_from_json(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """The JSON of the report: a point of the timeline has only the fields that it was given."""
        return self.model_dump(mode="json", exclude_unset=True)


class AnalysisDocument(ReportDocument):
    """The analysis of a job's attempt."""

    attempt: int
    created_at: Instant
    is_stored: bool
    """False for a training that still runs, and where offers were compared."""

    @classmethod
    def of(cls, analysis: Analysis) -> Self:
        return cls.model_validate(
            {
                **report_to_json(analysis.report),
                "attempt": analysis.attempt,
                "created_at": analysis.created_at,
                "is_stored": analysis.is_stored,
            }
        )

    def value(self) -> Analysis:
        return Analysis(
            report=self.report(), attempt=self.attempt, created_at=self.created_at, is_stored=self.is_stored
        )
