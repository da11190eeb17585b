"""Lines of an OpenSSH client configuration that hold for every machine that is not ours alone.

What comes first counts in OpenSSH: no line of a file that is included after these overrules them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_ALIAS = "stationmaster-machine"
_USUAL_CONFIG = Path("~/.ssh/config")

#: Nothing of this computer can be reached from the machine, and no other connection is shared.
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
    """The keys in this file are the machine's, whatever its address, and nobody is asked about others."""
    pinned = (f"HostKeyAlias {_ALIAS}", "StrictHostKeyChecking yes", f"UserKnownHostsFile {quoted(known_hosts)}")
    return (*_NO_OTHER_SOURCE, *pinned)


def any_host_key() -> tuple[str, ...]:
    """For a machine whose keys nobody knows: none is checked, and none is remembered."""
    return (*_NO_OTHER_SOURCE, "StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR")


def known_hosts_text(host_keys: Sequence[str]) -> str:
    """What `only_host_keys_of` reads; each key is an OpenSSH line, with or without a comment."""
    return "".join(f"{_ALIAS} {' '.join(key.split()[:2])}\n" for key in host_keys)


def login(*, user: str | None, port: int | None, key_path: Path | None) -> list[str]:
    """As whom, where and with which key, as far as that is given; with a key of our own no other one is shown."""
    lines = [] if port is None else [f"Port {port}"]
    if user:
        lines.append(f"User {quoted(user)}")
    if key_path is not None:
        lines += [f"IdentityFile {quoted(key_path)}", "IdentitiesOnly yes", "IdentityAgent none"]
    return lines


def persons_config(path: Path | None) -> list[str]:
    """What the person's own file says of the machine; nothing of this computer's environment is sent there by it."""
    return [f"Include {quoted((path or _USUAL_CONFIG).expanduser())}", "Host *", "SendEnv -*"]


def quoted(value: Path | str) -> str:
    """As OpenSSH reads a word; it expands what follows a percent sign in paths."""
    return '"' + str(value).replace("%", "%%") + '"'
