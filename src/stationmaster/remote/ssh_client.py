"""The system's `ssh` client, configured to reach exactly the machine that our own connection has reached.

All options go into a separate configuration file: no path has to survive rsync's splitting of a command, and the
user's configuration is ignored unless it names the machine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.remote.ssh_connection import FAST_CIPHER, FAST_KEY_EXCHANGE, SshTarget
from stationmaster.remote.ssh_options import CLOSED, include_user_config, known_hosts_text, login, only_host_keys_of

_CONNECT_SECONDS = 30

#: No prompts, and only one command's streams go over the connection.
_UNATTENDED = (
    "BatchMode yes",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "ClearAllForwardings yes",
    "RemoteCommand none",
    "RequestTTY no",
    "LogLevel ERROR",
    f"ConnectTimeout {_CONNECT_SECONDS}",
    f"Ciphers {FAST_CIPHER}",
    f"KexAlgorithms {FAST_KEY_EXCHANGE}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshClient:
    """An `ssh` that can be run while the block of `ssh_client` lasts."""

    program: str
    config: Path
    host: str
    environment: Mapping[str, str] | None  # of its process; None for our own

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.program, "-F", str(self.config))


@contextmanager
def ssh_client(target: SshTarget, host_key: str) -> Iterator[SshClient | None]:
    """Yield the client, which refuses any machine without `host_key`; None where none is installed.

    `host_key` is the one that our own connection has accepted, whichever rule that was by.
    """
    program = shutil.which("ssh")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="stationmaster-ssh-") as folder:
        known_hosts, config = Path(folder, "known_hosts"), Path(folder, "config")
        known_hosts.write_text(known_hosts_text([host_key]))
        config.write_text(config_text(target, known_hosts))
        # Only the user's own configuration may need their agent, or other variables that they set.
        environment = None if target.use_config else {"PATH": os.defpath, "LC_ALL": "C"}
        yield SshClient(program=program, config=config, host=target.host, environment=environment)


def config_text(target: SshTarget, known_hosts: Path) -> str:
    """Return the text of the configuration file."""
    lines = ["Host *", *only_host_keys_of(known_hosts), *CLOSED, *_UNATTENDED]
    lines += [f"ServerAliveInterval {max(1, round(target.keepalive_seconds))}"]
    lines += [f"ServerAliveCountMax {target.keepalive_count}"]
    lines += login(user=target.user, port=target.port, key_path=target.key_path)
    if target.use_config:
        lines += include_user_config(target.config_path)
    return "\n".join(lines) + "\n"
