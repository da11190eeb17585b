"""Lines of an OpenSSH client configuration for machines that we do not trust.

In OpenSSH the first value wins: no line of a file included after these overrides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_ALIAS = "stationmaster-machine"
_USUAL_CONFIG = Path("~/.ssh/config")

#: The machine can reach nothing on this computer, and no connection is shared.
CLOSED = (
    "ForwardAgent no",
    "ForwardX11 no",
    "PermitLocalCommand no",
    "Tunnel no",
    "ControlMaster no",
    "ControlPath none",
)

_NO_OTHER_SOURCE = (
    "IgnoreUnknown KnownHostsCommand",
    "GlobalKnownHostsFile /dev/null",
    "KnownHostsCommand none",
    "UpdateHostKeys no",
    "VerifyHostKeyDNS no",
    "CheckHostIP no",
)


def only_host_keys_of(known_hosts: Path) -> tuple[str, ...]:
    """Accept only the keys in this file, at any address, without asking the user about others."""
    pinned = (f"HostKeyAlias {_ALIAS}", "StrictHostKeyChecking yes", f"UserKnownHostsFile {quoted(known_hosts)}")
    return (*_NO_OTHER_SOURCE, *pinned)


def any_host_key() -> tuple[str, ...]:
    """For a machine with unknown keys: check none and remember none."""
    return (*_NO_OTHER_SOURCE, "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR")


def known_hosts_text(host_keys: Sequence[str]) -> str:
    """Return the file that `only_host_keys_of` reads; each key is an OpenSSH line, with or without a comment."""
    return "".join(f"{_ALIAS} {' '.join(key.split()[:2])}\n" for key in host_keys)


def login(*, user: str | None, port: int | None, key_path: Path | None) -> list[str]:
    """Set user, port and key, where given; with a key of our own ssh offers no other."""
    lines = [] if port is None else [f"Port {port}"]
    if user:
        lines.append(f"User {quoted(user)}")
    if key_path is not None:
        lines += [f"IdentityFile {quoted(key_path)}", "IdentitiesOnly yes", "IdentityAgent none"]
    return lines


def include_user_config(path: Path | None) -> list[str]:
    """Include the user's own file, but send nothing of this computer's environment."""
    return [f"Include {quoted((path or _USUAL_CONFIG).expanduser())}", "Host *", "SendEnv -*"]


def quoted(value: Path | str) -> str:
    """Quote a word for OpenSSH, which expands what follows a percent sign in paths."""
    return '"' + str(value).replace("%", "%%") + '"'
