"""The system's `ssh` client, told to reach exactly the machine that our own connection has reached.

Everything goes into a configuration file of its own: no path has to survive rsync's way of splitting a command, and
nothing of the person's configuration counts unless the machine was named by it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.remote.ssh_connection import FAST_CIPHER, FAST_KEY_EXCHANGE, SshSettings

_USUAL_CONFIG = Path("~/.ssh/config")
_ALIAS = "stationmaster-machine"
_CONNECT_SECONDS = 30

#: What comes first counts in OpenSSH: no line of an included file overrules these.
_FIXED = (
    "IgnoreUnknown KnownHostsCommand",
    f"HostKeyAlias {_ALIAS}",
    "GlobalKnownHostsFile /dev/null",
    "KnownHostsCommand none",
    "StrictHostKeyChecking yes",
    "UpdateHostKeys no",
    "VerifyHostKeyDNS no",
    "BatchMode yes",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "ForwardAgent no",
    "ForwardX11 no",
    "ClearAllForwardings yes",
    "PermitLocalCommand no",
    "RemoteCommand none",
    "RequestTTY no",
    "Tunnel no",
    "ControlMaster no",
    "ControlPath none",
    "LogLevel ERROR",
    f"ConnectTimeout {_CONNECT_SECONDS}",
    f"Ciphers {FAST_CIPHER}",
    f"KexAlgorithms {FAST_KEY_EXCHANGE}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshClient:
    """An `ssh` that is ready to be run while the block of `ssh_client` lasts."""

    program: str
    config: Path
    host: str
    environment: Mapping[str, str] | None  # of its process; None for our own

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.program, "-F", str(self.config))


@contextmanager
def ssh_client(settings: SshSettings, host_key: str) -> Iterator[SshClient | None]:
    """The client, which refuses any machine without `host_key`; None where none is installed.

    `host_key` is the one that our own connection has accepted, whichever rule that was by.
    """
    program = shutil.which("ssh")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="stationmaster-ssh-") as folder:
        known_hosts, config = Path(folder, "known_hosts"), Path(folder, "config")
        known_hosts.write_text(f"{_ALIAS} {' '.join(host_key.split()[:2])}\n")
        config.write_text(config_text(settings, known_hosts))
        # Only the person's own configuration may need their agent, or whatever else they have set.
        environment = None if settings.use_config else {"PATH": os.defpath, "LC_ALL": "C"}
        yield SshClient(program=program, config=config, host=settings.host, environment=environment)


def config_text(settings: SshSettings, known_hosts: Path) -> str:
    """What the configuration file says."""
    lines = ["Host *", *_FIXED, f"UserKnownHostsFile {_quoted(known_hosts)}"]
    lines += [f"ServerAliveInterval {max(1, round(settings.keepalive_seconds))}"]
    lines += [f"ServerAliveCountMax {settings.keepalive_count}"]
    if settings.port is not None:
        lines.append(f"Port {settings.port}")
    if settings.user:
        lines.append(f"User {_quoted(settings.user)}")
    if settings.key_path is not None:
        lines += [f"IdentityFile {_quoted(settings.key_path)}", "IdentitiesOnly yes", "IdentityAgent none"]
    if settings.use_config:
        # Afterwards nothing of this computer's environment is left that the person's file would send.
        lines += [f"Include {_quoted(_persons_config(settings))}", "Host *", "SendEnv -*"]
    return "\n".join(lines) + "\n"


def _persons_config(settings: SshSettings) -> Path:
    return (settings.config_path or _USUAL_CONFIG).expanduser()


def _quoted(value: Path | str) -> str:
    """As OpenSSH reads a word; it expands what follows a percent sign in paths."""
    return '"' + str(value).replace("%", "%%") + '"'
