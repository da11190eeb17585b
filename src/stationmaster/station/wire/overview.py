"""The overview: one light row per job, and the figures of all of them together."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.model import Progress
from stationmaster.station.overview import GpuUse, Needs, Overview, OverviewRow, Summary
from stationmaster.station.wire.document import Document, Instant, Number, Usd


class NeedsDocument(Document):
    """Why a job needs a person."""

    kind: str = Field(examples=["stall"])
    """That of its alert; or `parked`, `waiting_for_offer`, `unreachable`, `no_worker`."""
    sentence: str
    """What is wrong and what to do."""
    since: Instant | None = None
    """When the sentence was written; null: it is about now."""

    @classmethod
    def of(cls, needs: Needs) -> Self:
        return cls(kind=needs.kind, sentence=needs.sentence, since=needs.since)

    def value(self) -> Needs:
        return Needs(kind=self.kind, sentence=self.sentence, since=self.since)


class OverviewRowDocument(Document):
    """One job in a line."""

    id: str
    """Id of the job."""
    name: str
    """Name of the job."""
    owner: str | None
    """The user whose job it is; null: the single user of the settings."""
    recipe: str
    """The recipe, as `name@version`."""
    provider: str
    """Where it runs."""
    shown: str = Field(examples=["EXECUTING"])
    """Its outcome, `NEEDS_RECOVERY`, or its state."""
    stage: str
    """The last stage that it reached."""
    state_since: Instant
    """Since when it is in its state."""
    created_at: Instant
    """When it was submitted."""
    ended_at: Instant | None
    """When it ended."""
    step: int | None
    """The last training step that was read."""
    total_steps: int | None
    """Steps that the training will take."""
    percent: float | None
    """Share of the steps that are done."""
    loss: Number | None
    """The last loss that was read."""
    loss_trend: tuple[Number, ...]
    """Of the current attempt, at most 60 values: the lowest and highest loss of each part, so no spike is lost."""
    steps_per_second: Number | None
    """Speed of the training."""
    eta_seconds: Number | None
    """Time that the training still needs."""
    phase: str | None = None
    """What the training does, such as `sampling`."""
    phase_since: Instant | None = None
    """Since when it is in this phase."""
    gpu: str | None
    """Of its machine, or that its price was quoted for."""
    gpus: int
    """0: it has no machine yet."""
    gpu_percent: float | None
    """The mean of its GPUs, as last seen."""
    gpu_memory_used_gib: float | None
    """Of the fullest GPU."""
    gpu_memory_total_gib: float | None
    """The memory that this GPU has."""
    price_per_hour_usd: Usd | None
    """Of what bills now; null: nothing does."""
    cost_usd: Usd
    """The cost so far."""
    quoted_usd: Usd
    """The cost that was expected."""
    max_spend_usd: Usd
    """The job is stopped before it costs more."""
    health: str | None = Field(examples=["good"])
    """By the analysis of its last attempt that trained."""
    explanation: str | None
    """How it ended."""
    needs: NeedsDocument | None
    """Null: it needs no action."""

    @classmethod
    def of(cls, row: OverviewRow) -> Self:
        progress, use = row.progress, row.use
        return cls.model_construct(
            id=row.id,
            name=row.name,
            owner=row.owner,
            recipe=row.recipe,
            provider=row.provider,
            shown=row.shown,
            stage=row.stage,
            state_since=row.state_since,
            created_at=row.created_at,
            ended_at=row.ended_at,
            step=progress.step,
            total_steps=progress.total_steps,
            percent=progress.percent,
            loss=progress.loss,
            loss_trend=row.loss_trend,
            steps_per_second=progress.steps_per_second,
            eta_seconds=progress.eta_seconds,
            phase=progress.phase,
            phase_since=progress.phase_since,
            gpu=row.gpu,
            gpus=row.gpus,
            gpu_percent=use.percent,
            gpu_memory_used_gib=use.memory_used_gib,
            gpu_memory_total_gib=use.memory_total_gib,
            price_per_hour_usd=row.price_per_hour,
            cost_usd=row.cost,
            quoted_usd=row.quoted,
            max_spend_usd=row.max_spend,
            health=row.health,
            explanation=row.explanation,
            needs=None if row.needs is None else NeedsDocument.of(row.needs),
        )

    def value(self) -> OverviewRow:
        return OverviewRow(
            id=self.id,
            name=self.name,
            owner=self.owner,
            recipe=self.recipe,
            provider=self.provider,
            shown=self.shown,
            stage=self.stage,
            state_since=self.state_since,
            created_at=self.created_at,
            ended_at=self.ended_at,
            progress=Progress(
                step=self.step,
                total_steps=self.total_steps,
                loss=self.loss,
                steps_per_second=self.steps_per_second,
                eta_seconds=self.eta_seconds,
                phase=self.phase,
                phase_since=self.phase_since,
            ),
            loss_trend=self.loss_trend,
            gpu=self.gpu,
            gpus=self.gpus,
            use=GpuUse(
                percent=self.gpu_percent,
                memory_used_gib=self.gpu_memory_used_gib,
                memory_total_gib=self.gpu_memory_total_gib,
            ),
            price_per_hour=self.price_per_hour_usd,
            cost=self.cost_usd,
            quoted=self.quoted_usd,
            max_spend=self.max_spend_usd,
            health=self.health,
            explanation=self.explanation,
            needs=None if self.needs is None else self.needs.value(),
        )


class SummaryDocument(Document):
    """The figures of all jobs together."""

    running: int
    """Jobs that have a machine or are getting one."""
    queued: int
    """Jobs that wait."""
    unfinished: int
    """Jobs that have not ended."""
    needing: int
    """Jobs that need a person."""
    failed: int
    """Today, also those that are not listed."""
    price_per_hour_usd: Usd
    """Of everything that bills now."""
    spent_today_usd: Usd
    """What machines cost today."""
    spent_total_usd: Usd
    """What machines cost in all."""
    gpu_percent: float | None
    """The mean of all running trainings, as last seen."""
    memory_percent: float | None
    """The same of the memory of their fullest GPUs."""

    @classmethod
    def of(cls, summary: Summary) -> Self:
        return cls(
            running=summary.running,
            queued=summary.queued,
            unfinished=summary.unfinished,
            needing=summary.needing,
            failed=summary.failed,
            price_per_hour_usd=summary.price_per_hour,
            spent_today_usd=summary.spent_today,
            spent_total_usd=summary.spent_total,
            gpu_percent=summary.gpu_percent,
            memory_percent=summary.memory_percent,
        )

    def value(self) -> Summary:
        return Summary(
            running=self.running,
            queued=self.queued,
            unfinished=self.unfinished,
            needing=self.needing,
            failed=self.failed,
            price_per_hour=self.price_per_hour_usd,
            spent_today=self.spent_today_usd,
            spent_total=self.spent_total_usd,
            gpu_percent=self.gpu_percent,
            memory_percent=self.memory_percent,
        )


class OverviewDocument(Document):
    """All jobs that have not ended and the newest ended ones, in a line each."""

    as_of: Instant
    """When this was read."""
    summary: SummaryDocument
    """All jobs together."""
    rows: tuple[OverviewRowDocument, ...]
    """Those that have not ended, then the ended ones; each newest first."""

    @classmethod
    def of(cls, overview: Overview) -> Self:
        rows = tuple(OverviewRowDocument.of(row) for row in overview.rows)
        return cls.model_construct(as_of=overview.as_of, summary=SummaryDocument.of(overview.summary), rows=rows)

    def value(self) -> Overview:
        rows = tuple(row.value() for row in self.rows)
        return Overview(as_of=self.as_of, summary=self.summary.value(), rows=rows)
