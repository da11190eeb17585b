"""The numbers and choices that the main flow goes by, and how they follow from the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stationmaster.control.billing.charges import Billing
from stationmaster.control.destinations.places import BUCKET, HUB
from stationmaster.money import ZERO, MicroDollars, Unit
from stationmaster.recipes.log_patterns import LogPattern
from stationmaster.settings import MonitoringSettings, Settings
from stationmaster.settings.machines import vast_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The numbers that the main flow goes by, in seconds."""

    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    log_patterns: tuple[LogPattern, ...] = ()  # after those of the recipe
    ready_seconds: float = 900.0
    transfer_seconds: float = 3600.0
    fetch_seconds: float = 3600.0
    closing_seconds: float = 600.0  # beside the fetch, from the reason to end until the GPU bills no more
    abandon_seconds: float = 72 * 3600.0  # before a stopped machine goes whose model nobody could fetch
    cleanup_seconds: float = 600.0
    collect_seconds: float = 600.0  # between two checkpoints that are brought home while the training runs; 0: never
    collect_keep: int = 2
    mirror: bool = False  # collected checkpoints go to the bucket as well
    cache_bytes: int = 0  # datasets that stay on a machine for later jobs, at most
    cache_seconds: float = 2592000.0
    provider_look_seconds: float = 2.0  # between two looks at a provider while it works on something of ours
    answer_seconds: float = 30.0  # for one question to a machine
    retry_seconds: tuple[float, ...] = (2.0, 5.0, 15.0, 30.0, 60.0)  # the last one repeats
    attempt_seconds: tuple[float, ...] = (5.0, 30.0)  # before a second, third, … attempt
    release_alert_seconds: float = 600.0
    room_look_seconds: float = 10.0  # between two looks whether a further machine may be rented
    queued_start_seconds: float = 60.0  # before a start that the provider could only queue is tried again
    suspicion_seconds: float = 300.0  # between the two single reads that a suspicious listing calls for
    max_rentals: Mapping[str, int] = field(default_factory=dict)  # by provider
    allow_unverified: bool = False  # send secrets to machines whose host key nobody could verify
    install_drivers: bool = False  # what a recipe needs of an own machine's system may be installed there, by root
    billing: Billing | None = None  # None: nobody has credits, and nobody hears of them
    daily_cap: MicroDollars = ZERO  # what one person's jobs may cost within a day; 0: as much as they like
    links: tuple[str, ...] = ()  # where the machine sends its model before home pulls it; the first that works does
    keep_local: bool = True  # a model that is safe elsewhere comes home as well
    registers: bool = False  # models are registered with ComfyDeploy
    registers_incomplete: bool = False
    register_retry_seconds: float = 900.0
    hourly_alert: MicroDollars = ZERO  # what all machines together may cost in an hour before operators are told

    @property
    def bound_seconds(self) -> float:
        """From a stop, or the limit, to the end of the GPU's bill, whatever the machine says."""
        return self.fetch_seconds + self.closing_seconds

    def retry_after(self, failures: int) -> float:
        return self.retry_seconds[min(failures, len(self.retry_seconds) - 1)]

    def attempt_after(self, failed_attempts: int) -> float:
        return self.attempt_seconds[min(max(failed_attempts - 1, 0), len(self.attempt_seconds) - 1)]


def policy_of(settings: Settings) -> Policy:
    return Policy(
        monitoring=settings.monitoring,
        log_patterns=settings.logs.patterns,
        ready_seconds=settings.limits.ready,
        answer_seconds=settings.ssh.answer,
        transfer_seconds=settings.limits.transfer,
        fetch_seconds=settings.limits.fetch,
        closing_seconds=settings.limits.closing,
        abandon_seconds=settings.sweep.abandon_after,
        cleanup_seconds=settings.limits.cleanup,
        collect_seconds=settings.artifacts.every,
        collect_keep=settings.artifacts.keep,
        mirror=settings.artifacts.mirror,
        cache_bytes=int(settings.transfer.cache_gb * 1e9),
        cache_seconds=settings.transfer.cache_age,
        max_rentals={
            **{vast_name(account): settings.limits.max_rentals for account in settings.vastai.keys_by_account()},
            "ssh": sum(host.slots for host in settings.ssh.hosts) or 1,  # a further job waits for its turn
        },
        suspicion_seconds=min(300.0, settings.worker.sweep),
        allow_unverified=settings.ssh.allow_unverified,
        install_drivers=settings.bootstrap.install_drivers,
        links=_links(settings),
        keep_local=settings.artifacts.keep_local,
        registers=settings.comfydeploy.api_key is not None,
        registers_incomplete=settings.comfydeploy.incomplete,
        register_retry_seconds=settings.comfydeploy.retry,
        billing=billing_of(settings),
        daily_cap=settings.limits.daily_spend,
        hourly_alert=settings.limits.hourly_alert,
    )


def billing_of(settings: Settings) -> Billing | None:
    """How credits are charged; None where nobody has any."""
    billing = settings.billing
    if not billing.enabled:
        return None
    unit = Unit(billing.points_per_dollar if billing.unit == "points" else None)
    return Billing(unit=unit, returned_when_cancelled=billing.returned_when_cancelled)


def _links(settings: Settings) -> tuple[str, ...]:
    """The chain that a model is sent along before home's own pull, the first that works being enough."""
    wanted = ((HUB, settings.hub.publish), (BUCKET, settings.bucket.name is not None))
    return tuple(link for link, is_wanted in wanted if is_wanted)
