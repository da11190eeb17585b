"""The settings that the main flow uses, what follows from several of them, and its fixed times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stationmaster.model.catalogue import BUCKET, HUB
from stationmaster.settings import (
    ArtifactSettings,
    BillingSettings,
    BootstrapSettings,
    ComfyDeploySettings,
    LimitSettings,
    LogSettings,
    MetricsSettings,
    MonitoringSettings,
    Settings,
    SshSettings,
    SweepSettings,
    TransferSettings,
    WorkerSettings,
)
from stationmaster.settings.machines import vast_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Sections of the settings as they are, and what is derived from them. Times are in seconds."""

    worker: WorkerSettings = field(default_factory=WorkerSettings)
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    billing: BillingSettings = field(default_factory=BillingSettings)
    transfer: TransferSettings = field(default_factory=TransferSettings)
    artifacts: ArtifactSettings = field(default_factory=ArtifactSettings)
    comfydeploy: ComfyDeploySettings = field(default_factory=ComfyDeploySettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)
    ssh: SshSettings = field(default_factory=SshSettings)
    bootstrap: BootstrapSettings = field(default_factory=BootstrapSettings)

    # Derived from several sections.
    max_rentals: Mapping[str, int] = field(default_factory=dict)  # by provider
    links: tuple[str, ...] = ()  # where the machine uploads its model before we download it; the first that works

    # Fixed.
    provider_look_seconds: float = 2.0  # between two looks at a provider while it works on something of ours
    retry_seconds: tuple[float, ...] = (2.0, 5.0, 15.0, 30.0, 60.0)  # the last one repeats
    attempt_seconds: tuple[float, ...] = (5.0, 30.0)  # before a second, third, … attempt
    release_alert_seconds: float = 600.0
    room_look_seconds: float = 10.0  # between two looks whether another machine may be rented
    queued_start_seconds: float = 60.0  # before a start that the provider could only queue is retried

    @property
    def bound_seconds(self) -> float:
        """From a stop, or the job's limit, until the GPU is no longer billed, no matter what the machine reports."""
        return self.limits.fetch + self.limits.closing

    @property
    def suspicion_seconds(self) -> float:
        """Between the two single reads that confirm that machines missing from a provider's list are gone."""
        return min(300.0, self.worker.sweep)

    def retry_after(self, failures: int) -> float:
        return self.retry_seconds[min(failures, len(self.retry_seconds) - 1)]

    def attempt_after(self, failed_attempts: int) -> float:
        return self.attempt_seconds[min(max(failed_attempts - 1, 0), len(self.attempt_seconds) - 1)]


def policy_of(settings: Settings) -> Policy:
    return Policy(
        worker=settings.worker,
        monitoring=settings.monitoring,
        metrics=settings.metrics,
        logs=settings.logs,
        limits=settings.limits,
        billing=settings.billing,
        transfer=settings.transfer,
        artifacts=settings.artifacts,
        comfydeploy=settings.comfydeploy,
        sweep=settings.sweep,
        ssh=settings.ssh,
        bootstrap=settings.bootstrap,
        max_rentals={
            **{vast_name(account): settings.limits.max_rentals for account in settings.vastai.keys_by_account()},
            "ssh": sum(host.slots for host in settings.ssh.hosts) or 1,  # another job waits for its turn
        },
        links=_links(settings),
    )


def _links(settings: Settings) -> tuple[str, ...]:
    """Where a model is uploaded before we download it, in order; the first that works is enough."""
    wanted = ((HUB, settings.hub.publish), (BUCKET, settings.bucket.name is not None))
    return tuple(link for link, is_wanted in wanted if is_wanted)
