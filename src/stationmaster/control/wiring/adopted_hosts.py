"""Machines that are somebody's own, by the name that an adopted job has for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from stationmaster.control.wiring.ssh_provider import known_hosts_file, run_on_host
from stationmaster.errors import ProviderBusy, ProviderError, UserError
from stationmaster.model import ADOPTED_PREFIX, MachineStatus, SshAccess
from stationmaster.providers.adopted_host import AdoptedHost, Place
from stationmaster.providers.base import KnowsHostKeys, Provider
from stationmaster.remote.connect import connect
from stationmaster.remote.known_hosts import pinned_keys
from stationmaster.settings import OwnHostSettings, Settings
from stationmaster.settings.addresses import is_host

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_INSTANCE = re.compile(r"(?P<provider>[a-z0-9:_-]+)/(?P<id>[0-9]{1,19})")
FindProvider = Callable[[str], Provider]


def host_name(target: str) -> str:
    """The provider's name for a host as the user named it."""
    return f"{ADOPTED_PREFIX}{target}"


def instance_name(provider: str, instance: str) -> str:
    """The provider's name for an instance that is not ours.

    >>> instance_name("vastai:work", "123")
    'adopted:vastai:work/123'
    """
    return f"{ADOPTED_PREFIX}{provider}/{instance}"


def open_adopted_host(name: str, settings: Settings, find_provider: FindProvider) -> Provider:
    """The provider of this name. Raises UserError for a name that is no machine's."""
    target = name.removeprefix(ADOPTED_PREFIX)
    run = partial(run_on_host, connect=partial(connect, ssh=settings.ssh))
    instance = _INSTANCE.fullmatch(target)
    if instance is not None:
        place = _RentedPlace(find_provider(instance["provider"]), instance["id"])
        return AdoptedHost(name, find=place.find, run=run)
    host = own_host(target, settings)
    keys = pinned_keys(known_hosts_file(settings), host.address, host.port)

    async def find() -> Place:
        return Place(host=host, access=_own_access(host, keys))

    return AdoptedHost(name, find=find, run=run)


def own_host(target: str, settings: Settings) -> OwnHostSettings:
    """A host of the settings by its name, or one as typed: [USER@]HOST[:PORT]. Raises UserError.

    >>> from pathlib import Path
    >>> own_host("ann@gpu.example:2222", Settings(home=Path("/tmp/h"))).port
    2222
    """
    known = next((each for each in settings.ssh.hosts if each.name == target), None)
    if known is not None:
        return known
    user, at, rest = target.rpartition("@")
    address, colon, port = rest.rpartition(":")
    if not colon:
        address, port = rest, ""
    is_port = not port or (port.isascii() and port.isdigit() and 0 < int(port) < 65536)
    if not is_host(address) or not is_port or (at and not _USER.fullmatch(user)):
        raise UserError(
            f"{target!r} is neither an instance nor a host",
            hint="use the number of an instance at Vast.ai, USER@HOST[:PORT], or a name in ssh.hosts",
        )
    return OwnHostSettings(address=address, user=user or None, port=int(port) if port else None)


def _own_access(host: OwnHostSettings, keys: tuple[str, ...]) -> SshAccess:
    return SshAccess(
        host=host.address,
        port=host.port or 0,
        user=host.user or "",
        job_root=host.job_root or "",
        key_path=None if host.key is None else str(host.key),
        host_keys=keys,
        use_config=True,
    )


@dataclass(slots=True)
class _RentedPlace:
    """Where an instance of the account is now. It was rented by somebody else, or by hand, and is left alone."""

    provider: Provider
    instance: str
    host_keys: tuple[str, ...] | None = None  # asked for once

    async def find(self) -> Place | None:
        machine = await self.provider.describe(self.instance)
        if machine is None:
            return None
        ssh = [access for access in machine.accesses if isinstance(access, SshAccess)]
        if machine.status is not MachineStatus.RUNNING or not ssh:
            raise ProviderBusy(f"instance {self.instance} is {machine.status.value.lower()} and cannot be reached")
        if self.host_keys is None:
            self.host_keys = await self._keys()
        host = OwnHostSettings(address=ssh[0].host, name="instance", gpu=machine.gpu, gpus=machine.gpus)
        host = host.model_copy(update={"price_per_hour": machine.price_per_hour})  # the settings would read dollars
        keys = self.host_keys
        return Place(host=host, access=replace(ssh[0], job_root="", host_keys=keys, unverified=not keys))

    async def _keys(self) -> tuple[str, ...]:
        """The host keys, if the machine printed them as ours do; none for a machine that was set up otherwise."""
        if not isinstance(self.provider, KnowsHostKeys):
            return ()
        try:
            return await self.provider.host_keys(self.instance)
        except ProviderError:
            return ()
