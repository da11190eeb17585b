"""The table of providers: those that need no settings, and those that the settings enable."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stationmaster.control.wiring.adopted_hosts import open_adopted_host
from stationmaster.control.wiring.required_settings import require_set_up
from stationmaster.control.wiring.simulator_address import simulator_address
from stationmaster.control.wiring.ssh_provider import build_ssh_provider
from stationmaster.errors import ConfigInvalid
from stationmaster.model import ADOPTED_PREFIX, FoundGpus
from stationmaster.near_names import did_you_mean
from stationmaster.providers.base import Pause, Provider
from stationmaster.providers.gpus.finding import find_gpus
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.providers.vastai.ssh_keys import DEFAULT_KEY_PATH, ensure_pair, read_pair
from stationmaster.settings import Settings, provider_named
from stationmaster.settings.machines import DEFAULT_ACCOUNT, DEFAULT_JOB_ROOT, vast_name
from stationmaster.store.store import Store

_PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ",
    "LD_LIBRARY_PATH",  # where some computers have the GPU's driver
    "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE",  # models that were downloaded already
)  # fmt: skip
"""The environment variables that a machine on this computer gets: enough to run programs, and no secret."""
_AT_THE_SIMULATOR: Mapping[str, Any] = {
    "preferred_gpus": (),  # a demo needs no GPU
    "min_vram_gb": 0.0,
    "default_disk_gb": 16.0,
    "job_root": DEFAULT_JOB_ROOT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How providers wait. With `hurried` they give up on a silent service within seconds, because a person waits;
    `pause` waits for a rate limit, visibly where a person waits."""

    hurried: bool = False
    pause: Pause = asyncio.sleep


PATIENT = Waiting()
"""For background work."""


def build_providers(
    settings: Settings, environ: Mapping[str, str], store: Store, *, waiting: Waiting = PATIENT
) -> dict[str, Provider]:
    """Every provider that can be used now, by name; each further account is a provider.

    Those at Vast.ai need no key pair until something is rented: machines that bill are seen and ended without one.
    """
    providers: dict[str, Provider] = {"loopback": _loopback(settings, environ), "ssh": build_ssh_provider(settings)}
    for account in settings.vastai.keys_by_account():
        providers[vast_name(account)] = _vastai(settings, account, store, waiting)
    if (address := simulator_address(settings.home)) is not None:
        providers["simulator"] = _simulator(settings, address, store, waiting)
    return providers


def find_provider(
    name: str,
    settings: Settings,
    environ: Mapping[str, str],
    store: Store,
    *,
    account: str | None = None,
    pause: Pause = asyncio.sleep,
) -> Provider:
    """The provider of this name, for a command. Raises ConfigInvalid with what is missing for it."""
    if name.startswith(ADOPTED_PREFIX):
        find = partial(find_provider, settings=settings, environ=environ, store=store, pause=pause)
        return open_adopted_host(name, settings, find)
    name = _with_account(provider_named(name), account, settings)
    require_set_up(name, settings)
    providers = build_providers(settings, environ, store, waiting=Waiting(hurried=True, pause=pause))
    if name in providers:
        return providers[name]
    if name == "simulator":
        raise ConfigInvalid("no simulator is running", hint="start one: stationmaster simulator")
    known = sorted({*providers, "simulator", "vastai"})
    hint = did_you_mean(name, known) or f"use one of: {', '.join(known)}"
    raise ConfigInvalid(f"there is no provider {name}", hint=hint)


def _with_account(name: str, account: str | None, settings: Settings) -> str:
    """The provider's name with the account that the user chose. Raises ConfigInvalid for a contradiction, so that no
    other account pays."""
    provider, _, chosen = name.partition(":")
    if account is None:
        return "vastai" if chosen == DEFAULT_ACCOUNT and provider == "vastai" else name
    if provider != "vastai":
        known = ", ".join(settings.vastai.keys_by_account()) or "none is set up"
        raise ConfigInvalid(
            f"{provider} has no accounts, and {account} was named",
            hint=f"leave out the account, or use --provider vastai (accounts: {known})",
        )
    if chosen and chosen != account:
        raise ConfigInvalid(f"{name} names another account than {account}", hint="name the account once")
    return vast_name(account)


def ssh_key_path(settings: Settings) -> Path:
    """The private key for machines rented at Vast.ai."""
    return (settings.vastai.ssh_key_path or DEFAULT_KEY_PATH).expanduser()


def _loopback(settings: Settings, environ: Mapping[str, str]) -> Provider:
    return LoopbackProvider(
        settings.home / "machines",
        environment=_passed_on(environ),
        find_gpus=partial(find_local_gpus, settings, environ),
        price_per_hour=settings.loopback.price_per_hour,
    )


async def find_local_gpus(settings: Settings, environ: Mapping[str, str]) -> FoundGpus:
    """The GPUs of this computer that jobs may use: those of the settings, else those that this process may use."""
    allowed = settings.loopback.gpus
    if allowed is None and (visible := environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        allowed = tuple(word.strip() for word in visible.split(",") if word.strip())
    return await find_gpus(_passed_on(environ), allowed=allowed)


def _passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[name] for name in _PASSED_ON if name in environ}


def _vastai(settings: Settings, account: str, store: Store, waiting: Waiting) -> Provider:
    # httpx takes a tenth of a second to import: only commands that rent need it.
    from stationmaster.providers.vastai.calls import INTERVALS, Calls
    from stationmaster.providers.vastai.client import VastClient
    from stationmaster.providers.vastai.provider import VastOptions, VastProvider
    from stationmaster.providers.vastai.retries import HURRIED

    vast, key = settings.vastai, ssh_key_path(settings)
    calls = Calls(
        base_url=vast.api_base_url,
        api_key=vast.keys_by_account()[account],
        account=account,
        limiter=store.limiter,
        intervals={endpoint: seconds * vast.call_spacing for endpoint, seconds in INTERVALS.items()},
        retries=HURRIED if waiting.hurried else None,
        pause=waiting.pause,
    )
    options = VastOptions(
        public_key=lambda: read_pair(key).public_key,
        ssh_key_path=str(key),
        settings=vast,
        sweep=settings.sweep,
    )
    return VastProvider(VastClient(calls), options=options, name=vast_name(account))


def _simulator(settings: Settings, address: Mapping[str, str], store: Store, waiting: Waiting) -> Provider:
    """The Vast.ai provider at the simulator's address: what works there has exercised all of it.

    Preferences apply there as well, except for GPUs.
    """
    from stationmaster.providers.vastai.calls import INTERVALS, Calls
    from stationmaster.providers.vastai.client import VastClient
    from stationmaster.providers.vastai.provider import VastOptions, VastProvider
    from stationmaster.providers.vastai.retries import HURRIED

    scale = float(address.get("rate_limit_scale", 1.0))
    calls = Calls(
        base_url=address["url"],
        api_key=address["api_key"],
        account="simulator",
        limiter=store.limiter,
        intervals={endpoint: seconds * scale for endpoint, seconds in INTERVALS.items()},
        retries=HURRIED if waiting.hurried else None,
        pause=waiting.pause,
    )
    key = settings.home / "simulator" / "id_ed25519"
    own = ensure_pair(key).public_key
    options = VastOptions(
        public_key=lambda: own,
        ssh_key_path=str(key),
        settings=settings.vastai.model_copy(update=_AT_THE_SIMULATOR),
        sweep=settings.sweep,
        create_limit_seconds=float(address.get("create_limit_seconds", 10.0)),
        billed_after_seconds=float(address.get("billed_after_seconds", 3600.0)),
    )
    return VastProvider(VastClient(calls), options=options, name="simulator")
