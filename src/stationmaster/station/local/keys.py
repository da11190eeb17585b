"""The key pair in the person's folder, the providers' lists of keys, and the file of confirmed host keys."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from stationmaster.control.wiring.providers import Waiting, build_providers, ssh_key_path
from stationmaster.control.wiring.ssh_provider import known_hosts_file
from stationmaster.errors import RemoteError, UserError
from stationmaster.providers.base import KnowsKeys
from stationmaster.providers.vastai.ssh_keys import (
    KeyPair,
    KeyReport,
    check,
    ensure_pair,
    read_pair,
    register,
    require_matching,
)
from stationmaster.remote.known_hosts import fingerprint, pin_key, pinned_keys
from stationmaster.remote.ssh_connection import SshTarget, fetch_host_key
from stationmaster.settings import Settings
from stationmaster.settings.addresses import is_host
from stationmaster.station.keys import AccountKeys, KeyStanding, OfferedHostKey, PublicKey
from stationmaster.station.local.installation import Installation

_ANSWER_SECONDS = 20.0

_Ask = Callable[[KeyPair, KnowsKeys], Awaitable[KeyReport]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SshServer:
    address: str
    port: int | None  # None: that of the SSH configuration, or 22


class LocalKeys:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._settings = installation.settings

    def setup(self) -> KeyStanding:
        return self._standing(ensure_pair(ssh_key_path(self._settings)), register)

    def check(self) -> KeyStanding:
        return self._standing(read_pair(ssh_key_path(self._settings)), check)

    def offered_by(self, host: str) -> OfferedHostKey:
        server, file = _ssh_server(host, self._settings), known_hosts_file(self._settings)
        try:
            target = SshTarget(
                host=server.address, port=server.port, use_config=True, config_path=self._settings.ssh.config_path
            )
            line = asyncio.run(fetch_host_key(target, timeout=_ANSWER_SECONDS))
        except RemoteError as problem:
            problem.hint = problem.hint or (
                "check the address and port, and that the machine and its SSH server are running"
            )
            raise
        known = pinned_keys(file, server.address, server.port)
        return OfferedHostKey(
            host=host, key=_public_key(line), pinned=tuple(_public_key(each) for each in known), file=str(file)
        )

    def pin(self, host: str, key: PublicKey) -> None:
        server = _ssh_server(host, self._settings)
        pin_key(known_hosts_file(self._settings), server.address, server.port, key.line)

    def _standing(self, pair: KeyPair, ask: _Ask) -> KeyStanding:
        require_matching(pair)
        reports = asyncio.run(self._ask_all(pair, ask))
        return KeyStanding(
            private_path=str(pair.private_path),
            public_path=str(pair.public_path),
            public=_public_key(pair.public_key),
            made=pair.made,
            providers={
                name: AccountKeys(
                    keys=tuple(_public_key(line) for line in report.known), knows_ours=report.is_ours_known
                )
                for name, report in reports.items()
            },
        )

    async def _ask_all(self, pair: KeyPair, ask: _Ask) -> dict[str, KeyReport]:
        """The result of `ask` for every provider that keeps keys."""
        installation = self._installation
        waiting = Waiting(hurried=True, pause=installation.pause)
        providers = build_providers(self._settings, installation.environ, installation.store, waiting=waiting)
        # The simulator creates and registers its own pair.
        keepers: dict[str, KnowsKeys] = {
            name: provider
            for name, provider in providers.items()
            if isinstance(provider, KnowsKeys) and name != "simulator"
        }
        return {name: await ask(pair, provider) for name, provider in keepers.items()}


def _public_key(line: str) -> PublicKey:
    return PublicKey(line=line, fingerprint=fingerprint(line))


def _ssh_server(host: str, settings: Settings) -> _SshServer:
    """The address of the host's SSH server, from the settings or as typed."""
    known = next((each for each in settings.ssh.hosts if each.name == host), None)
    if known is not None:
        return _SshServer(address=known.address, port=known.port)
    address, colon, port = host.rpartition(":")
    if not colon:
        address, port = host, ""
    is_port = not colon or (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 65536)
    if not is_host(address) or not is_port:
        raise UserError(f"{host!r} is not a host", hint="use a name in ssh.hosts, or ADDRESS:PORT")
    return _SshServer(address=address, port=int(port) if port else None)
