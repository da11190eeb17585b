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
    """What was measured."""
    value: Any
    """The measured value."""
    unit: str = Field(default="", examples=["GB"])
    """Its unit; empty for a plain number or a text."""
    threshold: Any = None
    """What the value crossed, where there is such a limit."""


class RecommendationDocument(Document):
    """One change for the next run."""

    severity: str = Field(examples=["warning"])
    """`critical`, `warning` or `info`."""
    title: str
    """The recommendation in a few words."""
    action: str
    """What to change."""
    impact: str
    """The expected gain."""
    config_path: str = Field(examples=["parameters.batch_size"])
    """Where the setting is: in the trainer's config, or `parameters.NAME` of the job."""
    current_value: Any
    """What the run used."""
    recommended_value: Any
    """What the next run should use."""
    rule: str
    """The rule that found it."""
    lever: str
    """The setting, whatever its trainer calls it."""
    basis: str
    """What the expected gain rests on."""
    confidence: str = Field(examples=["high"])
    """`high`, `medium` or `low`."""
    evidence: tuple[EvidenceDocument, ...]
    """The measured facts behind it."""


class LogErrorDocument(Document):
    """A problem that the log reports, once."""

    timestamp: float | None
    """Seconds since 1970 by the machine's clock."""
    level: str = Field(examples=["ERROR"])
    """`ERROR`: ended the training, spoilt it or lost work; `WARNING`: had no consequence."""
    message: str
    """The line of the log that reports it."""
    memory_at_time_gb: float | None
    """Memory in use at that time; null: not measured."""
    kind: str
    """What kind of problem it is, such as `oom`."""
    count: int
    """How often it occurs."""
    traceback: str | None
    """The stack trace, if the log has one."""


class ReportSummaryDocument(Document):
    """The run in a few figures. GB is 2³⁰ bytes."""

    health_score: str = Field(examples=["good"])
    """`good`, `warning`, `critical` or `unknown`."""
    peak_memory_gb: float | None
    """Of the memory that matters; see `memory_pool`."""
    total_memory_gb: float | None
    """How much of that memory there is."""
    training_completed: bool
    """Whether the training reached its end."""
    steps_completed: int | None
    """The last step that it reached."""
    duration_minutes: float | None
    """From its first to its last sign of life."""
    memory_pool: str | None
    """`gpu`, `system` or `container`."""
    total_steps: int | None
    """That were asked for."""


class TimelinePointDocument(Document):
    """Memory at one time, or an event: fields that do not apply are left out."""

    model_config = ConfigDict(frozen=True, extra="allow")

    timestamp: float | None = None
    """Seconds since 1970 by the machine's clock."""
    memory_gb: float | None = None
    """Memory in use."""
    memory_percent: float | None = None
    """The same as a share of all of it."""
    event: str | None = None
    """What happened."""
    step: int | None = None
    """The training step at that time."""


class ReportDocument(Document):
    """The analysis of a run."""

    job_id: str
    """The job, or the name of the run in the file."""
    health: str = Field(examples=["good"])
    """`good`, `warning`, `critical` or `unknown`."""
    summary: ReportSummaryDocument
    """The run in a few figures."""
    recommendations: tuple[RecommendationDocument, ...]
    """What to change, most important first."""
    log_errors: tuple[LogErrorDocument, ...]
    """Each problem in the log, once."""
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
    """The attempt that was analysed."""
    created_at: Instant
    """When it was analysed."""
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
