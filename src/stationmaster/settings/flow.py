"""Settings of workers, monitoring, limits, the sweep and billing."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from stationmaster.durations import Duration
from stationmaster.money import MicroDollars, Unit
from stationmaster.recipes.log_patterns import LogPattern
from stationmaster.settings.section import Dollars, Section, section_of_defaults

DEFAULT_METRICS_CAP_BYTES = 128 * 1024 * 1024
LEAST_POLL_SECONDS = 0.01  # a job that is always due would leave no time for the others


class WorkerSettings(Section):
    slots: int = Field(default=64, ge=1, le=10_000)
    """Number of jobs that one worker handles at the same time. A job that only waits takes no slot."""
    per_provider: dict[str, int] = Field(default_factory=dict)
    """Lower slot limits for single providers, by provider name, e.g. {"vastai": 8}."""
    lease: Duration = 20.0
    """Lease time: a job whose worker has not renewed for this long goes to another worker."""
    renew: Duration = Field(default=5.0, ge=0.05)
    """Interval between renewals of a worker's leases; at most half of worker.lease."""
    look: Duration = Field(default=2.0, ge=0.05)
    """Longest interval between two checks of the store for jobs that are due."""
    linger: Duration = 30.0
    """How long a background worker keeps running after its last job."""
    sweep: Duration = Field(default=300.0, ge=0.05)
    """Interval between a worker's sweeps, which compare the providers' machines with the store."""

    @model_validator(mode="after")
    def _renewed_in_time(self) -> WorkerSettings:
        if self.renew > self.lease / 2:
            raise ValueError("renew must be at most half of lease, or other workers take over running jobs")
        return self


class StallSettings(Section):
    enabled: bool = True
    """Whether to detect stalled trainings."""
    terminate: bool = True
    """Whether to stop a training that is still stalled after its grace period. If false, it only raises an alert."""
    thresholds: dict[str, Any] = Field(default_factory=dict)
    """Other thresholds of the stall detector by name, as `stationmaster replay --set` accepts them."""
    min_samples: int = Field(default=4, ge=3)
    """Number of steps needed before a training can count as stalled."""
    eta_convergence_threshold: float = Field(default=0.5, gt=0, le=1)
    """A training stalls when its ETA falls by less than this many seconds per second that passes (0 to 1)."""
    speed_drop_threshold: float = Field(default=0.5, gt=0, le=1)
    """Share of its peak speed (0 to 1) that a training has to lose before the loss of speed makes the verdict certain;
    alone it is no stall. How fast a stalled training has to get again is the threshold resume_pace."""

    @field_validator("thresholds")
    @classmethod
    def _thresholds_exist(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Refuse wrong thresholds here: a worker that meets one can no longer watch the training."""
        if given:
            from stationmaster.watch.policy import StallPolicy

            StallPolicy().changed(given)
        return given


class MonitoringSettings(Section):
    """How a training is watched. A job may have its own block, in which the names in milliseconds are read too."""

    poll_interval: Duration = 60.0
    """Interval between polls of a training that you are not watching."""
    watch_interval: Duration = 1.0
    """Interval between polls of a training that you are watching."""
    grace_period: Duration = 900.0
    """Time between the alert about a stall and stopping the training."""
    save_timeout: Duration = 180.0
    """Time that a training gets to save a checkpoint before it is stopped; a recipe may set less. 0 skips saving."""
    silence_alert: Duration = 300.0
    """Raise an alert when a machine has been unreachable for this long."""
    provisioning_alert: Duration = 600.0
    """Raise an alert when a machine is still not ready after this long."""
    stall_detection: StallSettings = section_of_defaults()
    """How a stalled training differs from a slow one."""
    reactions: dict[str, str] = Field(default_factory=dict)
    """Reaction to an anomaly, by its name: note, alert or stop, e.g. {"nan_loss": "stop"}."""
    enabled: bool = True
    """Whether to sample the memory, CPU and GPU use of a training and record its steps and events."""
    sample_interval_seconds: float = Field(default=5.0, gt=0)
    """Interval between samples, in seconds."""
    track_per_process: bool = True
    """Whether to sample each process of a training. If false, only their sum."""
    analyze_on_complete: bool = True
    """Whether to analyse a training after it ended, also after a crash; `stationmaster analyze` shows the result."""
    memory_warning_threshold: float = Field(default=0.85, gt=0, le=1)
    """Share of the GPU's or the system's memory in use (0 to 1) that is noted as the anomaly memory_high."""
    memory_critical_threshold: float = Field(default=0.95, gt=0, le=1)
    """Share of the GPU's or the system's memory in use (0 to 1) that raises the alert memory_critical."""

    @field_validator("reactions")
    @classmethod
    def _reactions_exist(cls, given: dict[str, str]) -> dict[str, str]:
        if given:
            from stationmaster.watch.anomalies.registry import read_reactions

            read_reactions(given)
        return given


class MonitorSettings(Section):
    """What `stationmaster monitor` shows."""

    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Groups of machines by name: ids of instances and patterns of their labels, e.g. {"loras": ["30007012",
    "lora-*"]}. `monitor --group NAME` shows one of them."""

    @field_validator("groups")
    @classmethod
    def _groups_have_members(cls, given: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name, members in given.items():
            if not name.strip() or not members or not all(member.strip() for member in members):
                raise ValueError(f"the group {name!r} needs a name and at least one id or pattern of labels")
        return given


class MetricsSettings(Section):
    """Measured values of trainings: how much of them is stored, and for how long.

    A GPU that trains all day, with one step per second and a sample every 5 seconds, fills about 3 MB a day at full
    resolution; 20 of them stay below 2.5 GB a month.
    """

    cap_bytes: int = Field(default=DEFAULT_METRICS_CAP_BYTES, ge=1024)
    """Limit for the stored values of one job, in bytes; rows beyond it are dropped and counted."""
    full_resolution: Duration = 1209600.0
    """Time after a job's end for which all its values are kept; then only the lowest and highest values of 2,000 parts
    of the run remain. 0 keeps them all."""
    retention: Duration = 0.0
    """Time after a job's end until its values and its analysis are deleted; 0 never deletes them."""


class LogSettings(Section):
    patterns: tuple[LogPattern, ...] = Field(default=(), max_length=50)
    """Regular expressions for training output that the log reader does not know; applied after the recipe's own."""


class LimitSettings(Section):
    ready: Duration = Field(default=900.0, gt=0)
    """Time limit for a rented machine to accept a login; after that it is destroyed."""
    transfer: Duration = Field(default=3600.0, gt=0)
    """Time limit for uploading the dataset; after that the attempt ends."""
    fetch: Duration = 3600.0
    """Time limit for downloading the results, counted from a stop or from the job's own limit."""
    closing: Duration = Field(default=600.0, gt=0)
    """Time limit, in addition to limits.fetch, from a stop or the job's own limit until the GPU is no longer billed:
    to save and stop (two thirds of it), to publish, and to destroy the machine."""
    cleanup: Duration = Field(default=600.0, ge=0)
    """Time limit for a recipe's cleanup; after that the machine is destroyed anyway."""
    min_hours: float = Field(default=4.0, gt=0)
    """Lowest default time limit of a job, in hours."""
    min_spend: Dollars = MicroDollars(500_000)
    """Lowest default spending limit of a job that costs money; 0 sets no minimum."""
    max_rentals: int = Field(default=2, ge=1)
    """Number of machines that may be rented at the same time, per account."""
    daily_spend: Dollars = MicroDollars(0)
    """Daily spending limit per user; further jobs wait in the queue. 0 means no limit."""
    hourly_alert: Dollars = MicroDollars(10_000_000)
    """Notify operators when all machines together cost more than this per hour; 0 never notifies."""


class SweepSettings(Section):
    """The sweep: what happens to machines that no worker handles."""

    every: Duration = Field(default=900.0, ge=0.05)
    """Interval between sweeps of `stationmaster sweeper`."""
    grace: Duration = 120.0
    """Delay before the sweep destroys a machine that is in no rental, and before it stops a machine that is past its
    job's limit and that no worker handles."""
    stuck: Duration = Field(default=7200.0, gt=0)
    """A job without any progress for this long counts as stuck."""
    cap: Duration = Field(default=14400.0, gt=0)
    """Longest time that a machine may run if its job has no limit."""
    abandon_after: Duration = 259200.0
    """Delay before a stopped machine is destroyed although its model was not downloaded; also before a rented machine
    that no worker contacts, and that may not stop itself, destroys itself."""


class BillingSettings(Section):
    """Prepaid credits for the users of an installation; see the how-to page on credits."""

    enabled: bool = False
    """Whether users pay for jobs with credits, which operators grant."""
    unit: Literal["dollars", "points"] = "dollars"
    """Unit in which credits are shown and entered: dollars or points."""
    points_per_dollar: int = Field(default=10_000, ge=1, le=1_000_000)
    """Number of points in a dollar; a divisor of 1,000,000, so that a point is a whole number of micro-dollars."""
    returned_when_cancelled: float = Field(default=0.9, ge=0, le=1)
    """Largest share of a job's hold (0 to 1) that is refunded when a user cancels it while its machine is in use."""

    @property
    def shown_in(self) -> Unit:
        return Unit(self.points_per_dollar if self.unit == "points" else None)

    @field_validator("points_per_dollar")
    @classmethod
    def _divides_evenly(cls, value: int) -> int:
        if 1_000_000 % value:
            raise ValueError("must be a divisor of 1,000,000, such as 100, 1000 or 10000")
        return value
