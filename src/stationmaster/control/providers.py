"""Which providers there are: those that need nothing, and those that the settings make possible."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stationmaster.control.rental.own_machines import build_ssh_provider
from stationmaster.errors import ConfigInvalid
from stationmaster.offers import Preferences
from stationmaster.providers.base import Provider
from stationmaster.providers.loopback import LoopbackProvider
from stationmaster.providers.vastai.keys import DEFAULT_KEY_PATH, ensure_pair, read_pair
from stationmaster.settings import Settings, VastSettings
from stationmaster.store.store import Store

if TYPE_CHECKING:
    from stationmaster.providers.vastai.onstart import GuardTimes

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ")
"""What a machine on this computer sees of our environment: enough to run programs, and no secret."""


def build_providers(settings: Settings, environ: Mapping[str, str], store: Store) -> dict[str, Provider]:
    """Every provider that can be used now, by name."""
    providers: dict[str, Provider] = {"loopback": _loopback(settings, environ), "ssh": build_ssh_provider(settings)}
    if settings.vastai.api_key is not None and ssh_key_path(settings).is_file():
        providers["vastai"] = _vastai(settings.vastai, store)
    if (address := simulator_address(settings.home)) is not None:
        providers["simulator"] = _simulator(settings, address, store)
    return providers


def find_provider(name: str, settings: Settings, environ: Mapping[str, str], store: Store) -> Provider:
    """The provider of this name. Raises ConfigInvalid that says what is missing for it."""
    providers = build_providers(settings, environ, store)
    if name in providers:
        return providers[name]
    if name == "vastai" and settings.vastai.api_key is None:
        raise ConfigInvalid(
            "Vast.ai needs a key and none is set", hint="set VASTAI_API_KEY (console.vast.ai, Account, API keys)"
        )
    if name == "vastai":
        read_pair(ssh_key_path(settings))  # says which file is missing, and what makes one
    if name == "simulator":
        raise ConfigInvalid("no simulator is running", hint="start one: stationmaster simulator")
    raise ConfigInvalid(f"there is no provider {name}", hint=f"use one of: {', '.join(sorted(providers))}, vastai")


def ssh_key_path(settings: Settings) -> Path:
    """The private key that lets us in on machines rented at Vast.ai."""
    return (settings.vastai.ssh_key_path or DEFAULT_KEY_PATH).expanduser()


def simulator_address(home: Path) -> dict[str, str] | None:
    """Where this home's simulator answers, if one runs."""
    try:
        address: dict[str, str] = json.loads((home / "simulator" / "address.json").read_text())
    except (OSError, ValueError):
        return None
    return address


def _loopback(settings: Settings, environ: Mapping[str, str]) -> Provider:
    return LoopbackProvider(
        settings.home / "machines",
        environment={name: environ[name] for name in _PASSED_ON if name in environ},
        price_per_hour=settings.loopback.price_per_hour,
    )


def _vastai(settings: VastSettings, store: Store) -> Provider:
    # httpx takes a tenth of a second to import: only who rents pays for it.
    from stationmaster.providers.vastai.calls import INTERVALS, Calls
    from stationmaster.providers.vastai.client import VastClient
    from stationmaster.providers.vastai.provider import VastOptions, VastProvider

    assert settings.api_key is not None
    key = (settings.ssh_key_path or DEFAULT_KEY_PATH).expanduser()
    calls = Calls(
        base_url=settings.api_base_url,
        api_key=settings.api_key.get_secret_value(),
        account="default",
        limiter=store.limiter,
        intervals={endpoint: seconds * settings.call_spacing for endpoint, seconds in INTERVALS.items()},
    )
    options = VastOptions(
        public_key=read_pair(key).public_key,
        ssh_key_path=str(key),
        preferences=_preferences(settings),
        default_disk_gb=settings.default_disk_gb,
        interruptible=settings.interruptible,
        guard=_guard_times(settings),
        create_limit_seconds=settings.create_limit,
    )
    return VastProvider(VastClient(calls), options=options)


def _preferences(settings: VastSettings) -> Preferences:
    return Preferences(
        gpus=settings.preferred_gpus,
        max_price_per_hour=settings.max_bid_per_hour,
        min_vram_gib=settings.min_vram_gb,
    )


def _guard_times(settings: VastSettings) -> GuardTimes:
    from stationmaster.providers.vastai.onstart import GuardTimes

    return GuardTimes(
        idle_seconds=settings.guard_idle,
        abandon_seconds=settings.guard_abandon,
        look_seconds=settings.guard_look,
    )


def _simulator(settings: Settings, address: Mapping[str, str], store: Store) -> Provider:
    """The same provider at another address: whatever works there has gone through all of it."""
    from stationmaster.providers.vastai.calls import INTERVALS, Calls
    from stationmaster.providers.vastai.client import VastClient
    from stationmaster.providers.vastai.provider import VastOptions, VastProvider

    scale = float(address.get("rate_limit_scale", 1.0))
    calls = Calls(
        base_url=address["url"],
        api_key=address["api_key"],
        account="simulator",
        limiter=store.limiter,
        intervals={endpoint: seconds * scale for endpoint, seconds in INTERVALS.items()},
    )
    key = settings.home / "simulator" / "id_ed25519"
    options = VastOptions(
        public_key=ensure_pair(key).public_key,
        ssh_key_path=str(key),
        preferences=Preferences(max_price_per_hour=settings.vastai.max_bid_per_hour),
        default_disk_gb=16.0,
        interruptible=settings.vastai.interruptible,
        guard=_guard_times(settings.vastai),
        create_limit_seconds=float(address.get("create_limit_seconds", 10.0)),
    )
    return VastProvider(VastClient(calls), options=options, name="simulator")
