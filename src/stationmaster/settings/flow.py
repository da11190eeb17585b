"""How jobs are worked on, watched, limited and paid for."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from stationmaster.durations import Duration
from stationmaster.money import MicroDollars
from stationmaster.settings.section import Dollars, Section, section_of_defaults

LEAST_POLL_SECONDS = 0.01  # a job that is always due would leave no time for the others


class WorkerSettings(Section):
    slots: int = Field(default=64, ge=1, le=10_000)
    """Jobs that one worker handles at the same moment; waiting jobs need no slot."""
    per_provider: dict[str, int] = Field(default_factory=dict)
    """Fewer slots for single providers, by name."""
    lease: Duration = 20.0
    """How long a job stays with a worker that no longer answers."""
    renew: Duration = Field(default=5.0, ge=0.05)
    """How often a worker renews its leases."""
    look: Duration = Field(default=2.0, ge=0.05)
    """How often an idle worker looks for jobs whose worker is gone."""
    linger: Duration = 30.0
    """How long a background worker stays when there is nothing left to do."""
    sweep: Duration = Field(default=300.0, ge=0.05)
    """How often the worker compares the providers' machines with the store."""
    settled: Duration = 3600.0
    """So long after a machine's end its provider's charges take the place of our estimate."""

    @model_validator(mode="after")
    def _renewed_in_time(self) -> WorkerSettings:
        if self.renew > self.lease / 2:
            raise ValueError("renew must be at most half of lease, or jobs are lost to other workers")
        return self


class StallSettings(Section):
    enabled: bool = True
    """Whether trainings are watched for stalls."""
    terminate: bool = True
    """Whether a training that stays stalled past its grace period is ended; else there is only the alert."""
    thresholds: dict[str, Any] = Field(default_factory=dict)
    """Further thresholds of the detector by name, as `stationmaster replay --set` takes them."""
    min_samples: int = Field(default=4, ge=3)
    """Steps that must have been seen before a pace is judged."""
    eta_convergence_threshold: float = Field(default=0.5, gt=0, le=1)
    """The time left must shrink by at least this share of the time that passes."""
    speed_drop_threshold: float = Field(default=0.5, gt=0, le=1)
    """A pace below this share of the usual one counts as a drop."""

    @field_validator("thresholds")
    @classmethod
    def _thresholds_exist(cls, given: dict[str, Any]) -> dict[str, Any]:
        """At the door: a worker that meets a wrong one can no longer watch the training."""
        if given:
            from stationmaster.watch.policy import StallPolicy

            StallPolicy().changed(given)
        return given


class MonitoringSettings(Section):
    """How a training is watched. A job may bring its own block; the seeds' millisecond names are read too."""

    poll_interval: Duration = 60.0
    """How often a training that nobody watches is asked."""
    watch_interval: Duration = 1.0
    """How often a training that somebody watches is asked."""
    grace_period: Duration = 900.0
    """Time between a stall's alert and the end of the training."""
    save_timeout: Duration = 180.0
    """A training that is to end may take so long to save first, or less by its recipe; 0: it is not asked."""
    silence_alert: Duration = 300.0
    """A machine that has not answered for so long raises an alert."""
    provisioning_alert: Duration = 600.0
    """A machine that is not there after so long raises an alert."""
    stall_detection: StallSettings = section_of_defaults()
    """How a stall is told from a slow training."""
    reactions: dict[str, str] = Field(default_factory=dict)
    """What is done about an anomaly, by its name: note, alert or stop, as in {"nan_loss": "stop"}."""
    enabled: bool = True
    """Whether the trainer's memory and GPU are sampled beside it."""
    sample_interval_seconds: float = Field(default=5.0, gt=0)
    """How often they are sampled."""
    track_per_process: bool = True
    """Whether every process of the training is sampled, or only their sum."""
    analyze_on_complete: bool = True
    """Whether an ended training is analysed."""
    memory_warning_threshold: float = Field(default=0.85, gt=0, le=1)
    """The share of memory in use that raises a warning."""
    memory_critical_threshold: float = Field(default=0.95, gt=0, le=1)
    """The share of memory in use that is critical."""

    @field_validator("reactions")
    @classmethod
    def _reactions_exist(cls, given: dict[str, str]) -> dict[str, str]:
        if given:
            from stationmaster.watch.anomalies.registry import read_reactions

            read_reactions(given)
        return given


class LimitSettings(Section):
    ready: Duration = Field(default=900.0, gt=0)
    """A rented machine that cannot be logged in to after so long is given back."""
    transfer: Duration = Field(default=3600.0, gt=0)
    """Sending the dataset may take so long before the attempt is given up."""
    fetch: Duration = 3600.0
    """How long bringing the results home may take, once the job was stopped or its own limit has passed."""
    closing: Duration = Field(default=600.0, gt=0)
    """Beside `fetch`, what may pass from a stop or the job's limit until the GPU bills no more, whatever a machine
    says: to save and stop (two thirds of it), to publish, to give the machine back."""
    cleanup: Duration = Field(default=600.0, ge=0)
    """A recipe's cleanup may take so long before the machine is given back all the same."""
    min_hours: float = Field(default=4.0, gt=0)
    """The least time limit that a job gets by itself."""
    min_spend: Dollars = MicroDollars(500_000)
    """The least money limit that a job gets by itself, where it costs anything; 0 sets none."""
    max_rentals: int = Field(default=2, ge=1)
    """How many machines may be rented at the same time."""
    daily_spend: Dollars = MicroDollars(0)
    """What one person's jobs may cost within a day; a further job waits in the queue. 0 sets no cap."""
    hourly_alert: Dollars = MicroDollars(10_000_000)
    """Operators are told when all machines together cost more than this in an hour; 0 never tells."""
    suspicion: Duration = 300.0
    """Machines that a provider's list lost together count as gone when two single reads, so far apart, say so."""


class SweepSettings(Section):
    """The safety net: what it does with machines that nobody works on."""

    every: Duration = Field(default=900.0, ge=0.05)
    """How often the stand-alone sweeper looks."""
    grace: Duration = 120.0
    """How long a machine that no rental names is left before it is destroyed, and one past its job's limit to a worker
    that does not come before it is stopped."""
    stuck: Duration = Field(default=7200.0, gt=0)
    """A job without any progress for so long counts as stuck."""
    cap: Duration = Field(default=14400.0, gt=0)
    """How long a machine may run that no job's own limit covers."""
    abandon_after: Duration = 259200.0
    """A stopped machine whose model nobody fetched is destroyed after so long."""


class BillingSettings(Section):
    """Prepaid credits for the users of an installation; see the how-to page on credits."""

    enabled: bool = False
    """Whether jobs are paid for with credits, which operators give out."""
    unit: Literal["dollars", "points"] = "dollars"
    """What credits are shown and entered in."""
    points_per_dollar: int = Field(default=10_000, ge=1, le=1_000_000)
    """How many points a dollar has; a divisor of 1,000,000, so that no fraction of a micro-dollar comes about."""
    returned_when_cancelled: float = Field(default=0.9, ge=0, le=1)
    """The largest share of its hold that comes back when a person cancels a job whose machine was in use."""

    @field_validator("points_per_dollar")
    @classmethod
    def _divides_evenly(cls, value: int) -> int:
        if 1_000_000 % value:
            raise ValueError("must be a divisor of 1,000,000, such as 100, 1000 or 10000")
        return value
