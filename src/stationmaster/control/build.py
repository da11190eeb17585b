"""From settings to the parts in use: the one place where edges are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from stationmaster.config import secret_of
from stationmaster.control.billing.charges import Billing
from stationmaster.control.delivering.outlets import links_of, open_outlets
from stationmaster.control.providers import build_providers, ssh_key_path
from stationmaster.control.safety.sweep_rules import SweepPolicy
from stationmaster.control.worker import Tempo
from stationmaster.control.world import Policy, World
from stationmaster.delivery.r2 import open_other_bucket
from stationmaster.errors import ConfigInvalid
from stationmaster.money import Unit
from stationmaster.providers.vastai.keys import read_pair
from stationmaster.recipes.registry import find
from stationmaster.remote.connect import connect
from stationmaster.remote.pyz import build_pyz
from stationmaster.settings import Settings
from stationmaster.store.engine import Database
from stationmaster.store.store import Store


def open_store(settings: Settings, *, writable: bool = True) -> Store:
    """The store, with its schema brought up to date. Raises ConfigInvalid when the home cannot be written.

    With `writable` False nothing is asked of the home: the sweeper works where the store can only be read.
    """
    if writable:
        _require_writable_home(settings)
    return Store(Database(settings.store_url), log_cap_bytes=settings.log_cap_bytes)


def _require_writable_home(settings: Settings) -> None:
    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = settings.home / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as problem:
        raise ConfigInvalid(
            f"cannot write to {settings.home}: {problem.strerror}", hint="set STATIONMASTER_HOME or give --home"
        ) from None


def build_world(settings: Settings, environ: Mapping[str, str], store: Store) -> World:
    return World(
        store=store,
        providers=build_providers(settings, environ, store),
        reload_providers=partial(build_providers, settings, environ, store),
        connect=partial(
            connect,
            ssh_config_path=settings.ssh.config_path,
            keepalive_seconds=settings.ssh.keepalive,
            way=settings.transfer.way,
        ),
        find_recipe=partial(find, folders=settings.recipes),
        secrets=partial(secret_of, settings),
        home=settings.home,
        trackside=build_pyz(settings.home / "trackside"),
        policy=policy_of(settings),
        outlets=open_outlets(settings, store),
        public_key=_public_key(settings),
        open_bucket=partial(open_other_bucket, settings.bucket) if settings.bucket.access_key is not None else None,
    )


def _public_key(settings: Settings) -> str | None:
    path = ssh_key_path(settings)
    return read_pair(path).public_key if settings.vastai.api_key is not None and path.exists() else None


def policy_of(settings: Settings) -> Policy:
    return Policy(
        monitoring=settings.monitoring,
        ready_seconds=settings.limits.ready,
        answer_seconds=settings.ssh.answer,
        transfer_seconds=settings.limits.transfer,
        fetch_seconds=settings.limits.fetch,
        cleanup_seconds=settings.limits.cleanup,
        collect_seconds=settings.artifacts.every,
        collect_keep=settings.artifacts.keep,
        mirror=settings.artifacts.mirror,
        cache_bytes=int(settings.transfer.cache_gb * 1e9),
        cache_seconds=settings.transfer.cache_age,
        max_rentals={
            "vastai": settings.limits.max_rentals,
            "ssh": sum(host.slots for host in settings.ssh.hosts) or 1,  # a further job waits for its turn
        },
        suspicion_seconds=settings.limits.suspicion,
        allow_unverified=settings.ssh.allow_unverified,
        install_drivers=settings.bootstrap.install_drivers,
        links=links_of(settings),
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


def sweep_policy_of(settings: Settings) -> SweepPolicy:
    sweep = settings.sweep
    return SweepPolicy(
        grace_seconds=sweep.grace,
        stuck_seconds=sweep.stuck,
        cap_seconds=sweep.cap,
        abandon_seconds=sweep.abandon_after,
    )


def tempo_of(settings: Settings) -> Tempo:
    worker = settings.worker
    return Tempo(
        slots=worker.slots,
        per_provider=worker.per_provider,
        lease=worker.lease,
        renew=worker.renew,
        look=worker.look,
        sweep=worker.sweep,
        settled=worker.settled,
    )
