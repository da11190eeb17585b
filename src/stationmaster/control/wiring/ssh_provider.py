"""Own machines from the settings: how the `ssh` provider reaches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from stationmaster.model import Access, SshAccess
from stationmaster.providers.own_machines import SshProvider
from stationmaster.remote.base import Remote, check
from stationmaster.remote.connect import connect
from stationmaster.remote.known_hosts import pinned_keys
from stationmaster.settings import Settings


def build_ssh_provider(settings: Settings) -> SshProvider:
    reach = partial(connect, ssh=settings.ssh)
    return SshProvider(
        settings.ssh.hosts,
        run=partial(run_on_host, connect=reach),
        pinned_keys=lambda host: pinned_keys(known_hosts_file(settings), host.address, host.port),
    )


def known_hosts_file(settings: Settings) -> Path:
    """Host keys of own machines that the user confirmed; read in addition to the user's known_hosts."""
    return settings.home / "known_hosts"


async def run_on_host(
    access: SshAccess, argv: Sequence[str], *, input: bytes, timeout: float, connect: Callable[[Access], Remote]
) -> bytes:
    """Run one command over a new connection: calls are seconds apart, and on different event loops."""
    remote = connect(access)
    try:
        return await check(remote, argv, input=input, timeout=timeout)
    finally:
        await remote.close()
