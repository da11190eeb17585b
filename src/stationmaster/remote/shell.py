"""The user's shell on a machine: the system's `ssh`, to that machine only, forwarding nothing of this computer."""

from __future__ import annotations

from pathlib import Path

from stationmaster.errors import HostKeyRefused
from stationmaster.files import write_atomically
from stationmaster.model import SshAccess
from stationmaster.remote.ssh_options import (
    CLOSED,
    any_host_key,
    include_user_config,
    known_hosts_text,
    login,
    only_host_keys_of,
)


def shell_folder(home: Path, job_id: str) -> Path:
    """The folder for a job's shell; not in the job's own folder, where machines choose the file names."""
    return home / "ssh" / job_id


def shell_command(access: SshAccess, *, folder: Path, config_path: Path | None = None) -> tuple[str, ...]:
    """Return the shell's command line. Writes its configuration to `folder`, which must stay while the shell runs.

    `config_path` is the user's SSH configuration where it is not the default file. Raises HostKeyRefused for a machine
    whose host keys should be known and are not.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    config, known_hosts = folder / "config", folder / "known_hosts"
    text = shell_config(access, known_hosts, config_path=config_path)
    write_atomically(known_hosts, known_hosts_text(access.host_keys), mode=0o600)
    write_atomically(config, text, mode=0o600)
    return ("ssh", "-F", str(config), "--", access.host)


def shell_config(access: SshAccess, known_hosts: Path, *, config_path: Path | None = None) -> str:
    """Return the text of the configuration file."""
    key_path = None if access.key_path is None else Path(access.key_path)
    lines = ["Host *", *CLOSED, *_host_key_rules(access, known_hosts)]
    lines += login(user=access.user or None, port=access.port or None, key_path=key_path)
    if access.use_config:
        lines += include_user_config(config_path)
    else:  # a rented machine has no password: one that asks for it is after the user's
        lines += ["PasswordAuthentication no", "KbdInteractiveAuthentication no"]
    return "\n".join(lines) + "\n"


def _host_key_rules(access: SshAccess, known_hosts: Path) -> tuple[str, ...]:
    if access.host_keys:
        return only_host_keys_of(known_hosts)
    if access.use_config:
        return ()  # the user's own known_hosts decides, as it does for our own connections
    if access.unverified:
        return any_host_key()
    raise HostKeyRefused(f"no host key of {access.host} is pinned; nothing was sent")
