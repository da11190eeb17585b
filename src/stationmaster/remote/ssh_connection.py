"""Open SSH connections to hosts with a pinned key, and to no others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import asyncssh

from stationmaster.errors import ConfigInvalid, HostKeyRefused, Unreachable
from stationmaster.remote.base import no_answer

#: The post-quantum default of both sides takes twice as long as the rest of a login on a small computer.
FAST_KEY_EXCHANGE = "^curve25519-sha256"

#: About twice as fast as the default cipher on processors with AES instructions, which they all have.
FAST_CIPHER = "^aes128-gcm@openssh.com"


TransferWay = Literal["auto", "rsync", "sftp"]
Channel = TypeVar("Channel")
_FULL_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshTarget:
    """Where to connect, as whom, and which host keys are the machine's.

    With `use_config` the user's SSH configuration (`config_path`, else the default file) and known_hosts apply too;
    `host_keys`, where given, still decide alone. `allow_unverified` connects without any pinned key: send no secret
    then. `environment` is set for every command, and other users of the machine can read it. `way` selects how big
    files are sent: `auto` uses rsync where both sides have it and at least `rsync_from_bytes` are missing.
    """

    host: str
    port: int | None = None
    user: str | None = None
    key_path: Path | None = None
    host_keys: tuple[str, ...] = ()
    use_config: bool = False
    config_path: Path | None = None
    allow_unverified: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    keepalive_seconds: float = 15.0
    keepalive_count: int = 3
    way: TransferWay = "auto"
    rsync_from_bytes: int = 64 * 2**20  # faster than SFTP, but it has to log in first
    rsync_from_files: int = 100

    @property
    def name(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


async def open_connection(target: SshTarget) -> asyncssh.SSHClientConnection:
    """Connect to the pinned host. Raises HostKeyRefused before anything is sent to another, else Unreachable."""
    options = _options(target)
    with unreachable_when_lost(target.name):
        try:
            return await asyncssh.connect(target.host, **options)
        except asyncssh.HostKeyNotVerifiable as problem:
            raise HostKeyRefused(
                f"{target.name} shows a host key that is not the pinned one; nothing was sent",
                hint="if the machine was reinstalled, pin its new key; otherwise someone may intercept the connection",
            ) from problem
        except asyncssh.PermissionDenied as problem:
            shown = "" if target.key_path is None else f" with the key {target.key_path}"
            raise Unreachable(
                f"{target.name} refused the login{shown}: {problem.reason}",
                hint="check that the SSH key at this path is registered with the provider: run `stationmaster keys "
                "check`, or compare it with the keys in the provider's dashboard",
            ) from problem
        except (asyncssh.KeyImportError, asyncssh.ConfigParseError) as problem:
            raise ConfigInvalid(f"the SSH settings for {target.name} cannot be used: {problem}") from problem


async def fetch_host_key(target: SshTarget, *, timeout: float) -> str:
    """Ask the machine for its host key, as one OpenSSH line; the user must confirm it before it is pinned.

    Raises ConfigInvalid for an SSH configuration that cannot be read.
    """
    try:
        async with asyncio.timeout(timeout):
            with unreachable_when_lost(target.name):
                key = await asyncssh.get_server_host_key(
                    target.host, target.port or (), config=_config(target), kex_algs=FAST_KEY_EXCHANGE
                )
    except TimeoutError:
        raise no_answer(target.name, timeout) from None
    except asyncssh.ConfigParseError as problem:
        raise ConfigInvalid(f"the SSH settings for {target.name} cannot be used: {problem}") from problem
    if key is None:
        raise Unreachable(f"{target.name} sent no host key")
    return key.export_public_key().decode().strip()


async def open_channel(open_once: Callable[[], Awaitable[Channel]]) -> Channel:
    """Open another channel, with retries: a server at its limit still counts channels that just closed."""
    for pause in _FULL_PAUSES:
        try:
            return await open_once()
        except asyncssh.ChannelOpenError as problem:
            if problem.code not in (asyncssh.OPEN_CONNECT_FAILED, asyncssh.OPEN_RESOURCE_SHORTAGE):
                raise
        await asyncio.sleep(pause)
    return await open_once()


@contextmanager
def unreachable_when_lost(name: str) -> Iterator[None]:
    """Turn every connection failure into Unreachable: the machine's state is unknown."""
    try:
        yield
    except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as problem:
        raise Unreachable(f"the connection to {name} was lost: {problem.reason}") from problem
    except asyncssh.ChannelOpenError as problem:
        raise Unreachable(f"{name} refused to open a channel: {problem.reason}") from problem
    except asyncssh.DisconnectError as problem:
        raise Unreachable(f"the connection to {name} was lost: {problem.reason}") from problem
    except OSError as problem:
        raise Unreachable(f"{name} cannot be reached: {problem.strerror or problem}") from problem


def _options(target: SshTarget) -> dict[str, Any]:
    options: dict[str, Any] = {
        "config": _config(target),
        "known_hosts": _known_hosts(target),
        "agent_forwarding": False,
        "kex_algs": FAST_KEY_EXCHANGE,
        "encryption_algs": FAST_CIPHER,
        "keepalive_interval": target.keepalive_seconds,
        "keepalive_count_max": target.keepalive_count,
    }
    if target.port is not None:
        options["port"] = target.port
    if target.user:
        options["username"] = target.user
    if target.key_path is not None:
        options["client_keys"] = [_private_key(target.key_path)]
        options["agent_path"] = None
    return options


def _config(target: SshTarget) -> tuple[()] | list[str] | None:
    """asyncssh's option: None reads no file, an empty tuple the default one."""
    if not target.use_config:
        return None
    return () if target.config_path is None else [str(target.config_path)]


def _known_hosts(target: SshTarget) -> Any:
    """asyncssh's option: lists of keys, an empty tuple for the user's file, None for no check."""
    if target.host_keys:
        return [_public_key(line) for line in target.host_keys], [], []
    if target.use_config:
        return ()
    if target.allow_unverified:
        return None
    raise HostKeyRefused(f"no host key of {target.name} is pinned; nothing was sent")


def _public_key(line: str) -> asyncssh.SSHKey:
    try:
        return asyncssh.import_public_key(line)
    except asyncssh.KeyImportError as problem:
        raise HostKeyRefused(f"a pinned host key cannot be read: {line[:40]}…; nothing was sent") from problem


def _private_key(path: Path) -> asyncssh.SSHKey:
    try:
        return asyncssh.read_private_key(path)
    except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as problem:
        raise ConfigInvalid(
            f"the SSH key {path} cannot be used: {problem}",
            hint="it must be a private key without a passphrase that this user may read",
        ) from problem
