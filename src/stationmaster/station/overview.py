"""The overview: one light row per job and their figures together, cheap enough to ask for every few seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.model import Progress
from stationmaster.money import MicroDollars

DEFAULT_ENDED = 50
MOST_ENDED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Why a job needs a person: what kind of problem it is, and a sentence about it."""

    kind: str  # of its alert; or unreachable, parked, waiting_for_offer
    sentence: str
    since: float | None = None  # when the sentence was true; None: it is true now


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """How much of its GPUs a training uses, as last seen; memory is that of the fullest GPU."""

    percent: float | None = None  # the mean of all its GPUs
    memory_used_gib: float | None = None
    memory_total_gib: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewRow:
    """One job in a line."""

    id: str
    name: str
    owner: str | None
    recipe: str
    provider: str
    shown: str
    stage: str
    state_since: float
    created_at: float
    ended_at: float | None
    progress: Progress
    loss_trend: tuple[float, ...]  # of the current attempt: in each part of it the lowest and the highest loss
    gpu: str | None  # of its machine, or that its price was quoted for
    gpus: int
    use: GpuUse
    price_per_hour: MicroDollars | None  # of what bills now; None: nothing does
    cost: MicroDollars
    quoted: MicroDollars
    max_spend: MicroDollars
    health: str | None  # by the analysis of the last attempt that trained
    explanation: str | None  # of how it ended
    needs: Needs | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of all jobs together."""

    running: int  # have or are getting a machine
    queued: int
    unfinished: int
    needing: int  # jobs that need a person
    failed: int  # today, listed or not
    price_per_hour: MicroDollars  # of everything that bills now
    spent_today: MicroDollars
    spent_total: MicroDollars
    gpu_percent: float | None  # the mean of all running trainings
    memory_percent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    as_of: float
    summary: Summary
    rows: tuple[OverviewRow, ...]  # those that have not ended, then the newest ended ones; each newest first


class Overviews(Protocol):
    def look(
        self, *, ended_limit: int = DEFAULT_ENDED, owner: str | None = None, today_from: float | None = None
    ) -> Overview:
        """All jobs that have not ended and the newest ended ones, of one owner if given.

        `today_from` is when the day of `failed` and `spent_today` began; by default at midnight UTC.
        """
