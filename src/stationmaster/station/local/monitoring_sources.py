"""The listing and the logs that a monitor asks, as the settings and the command choose them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from stationmaster.control.monitoring.monitor import LIST_SECONDS
from stationmaster.control.monitoring.sources import Listing, Logs
from stationmaster.control.monitoring.ssh_logs import SshLogs
from stationmaster.control.monitoring.timing import Timing
from stationmaster.providers.vastai.ssh_keys import DEFAULT_KEY_PATH
from stationmaster.remote.connect import connect
from stationmaster.station.local.installation import Installation
from stationmaster.station.monitoring import Watched

_INPUT_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    listing: Listing
    logs: Logs | None
    list_every_seconds: float
    ids: tuple[str, ...]  # machines that are always shown


def open_sources(installation: Installation, watched: Watched, *, every_seconds: float, timing: Timing) -> Sources:
    """Raises UserError or ConfigInvalid. Imports only what is needed: SSH and the store take 30 MiB of memory."""
    if watched.made_up:
        return _made_up(watched, every_seconds=every_seconds, timing=timing)
    if watched.listing is not None:
        return _given(installation, watched, watched.listing, every_seconds=every_seconds)
    return _rented(installation, watched, every_seconds=every_seconds)


def _made_up(watched: Watched, *, every_seconds: float, timing: Timing) -> Sources:
    from stationmaster.control.monitoring.mock import DEFAULT_SEED, MockMachines

    seed = DEFAULT_SEED if watched.seed is None else watched.seed
    machines = MockMachines(ids=watched.ids, clock=timing.clock, seed=seed)
    return Sources(listing=machines, logs=machines, list_every_seconds=every_seconds, ids=machines.ids)


def _given(installation: Installation, watched: Watched, listing: str, *, every_seconds: float) -> Sources:
    from stationmaster.control.monitoring.listing_input import open_listing

    logs = _ssh_logs(installation, watched, every_seconds=every_seconds)
    has_key = logs.key_path.exists()
    return Sources(
        listing=open_listing(listing, key_path=str(logs.key_path) if has_key else None),
        logs=logs if has_key else None,
        list_every_seconds=min(every_seconds, _INPUT_SECONDS),
        ids=watched.ids,
    )


def _rented(installation: Installation, watched: Watched, *, every_seconds: float) -> Sources:
    from stationmaster.control.monitoring.vast_listing import open_vast_listing

    logs = _ssh_logs(installation, watched, every_seconds=every_seconds)
    listing = open_vast_listing(installation.settings, lambda: installation.store, key_path=str(logs.key_path))
    return Sources(listing=listing, logs=logs, list_every_seconds=max(every_seconds, LIST_SECONDS), ids=watched.ids)


def _ssh_logs(installation: Installation, watched: Watched, *, every_seconds: float) -> SshLogs:
    key_path = (installation.settings.vastai.ssh_key_path or DEFAULT_KEY_PATH).expanduser()
    return SshLogs(
        key_path=key_path,
        connect=partial(connect, ssh=installation.settings.ssh),
        log_path=watched.log_path,
        pause_seconds=every_seconds,
    )
