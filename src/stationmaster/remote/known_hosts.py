"""Host keys that the user has confirmed, in OpenSSH's known_hosts format."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path

from stationmaster.files import write_atomically

_USUAL_PORT = 22


def pinned_keys(file: Path, host: str, port: int | None) -> tuple[str, ...]:
    """Return the confirmed keys of a host, one `type key` line each; empty if there are none."""
    wanted = _name(host, port)
    return tuple(key for name, key in _entries(file) if name == wanted)


def pin_key(file: Path, host: str, port: int | None, key: str) -> None:
    """Make this key the only confirmed key of the host."""
    wanted = _name(host, port)
    kept = [f"{name} {line}" for name, line in _entries(file) if name != wanted]
    lines = (*kept, f"{wanted} {' '.join(key.split()[:2])}")
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(file, "".join(f"{line}\n" for line in lines), mode=0o600)


def fingerprint(key: str) -> str:
    """Return a key's fingerprint, as `ssh-keygen -l` prints it.

    >>> fingerprint("ssh-ed25519 AAAA")
    'SHA256:cJ6AyISHokEeHuTfufIqhhSS0gxHZRUMDHlKvXD4FHw'
    """
    try:
        digest = hashlib.sha256(base64.b64decode(key.split()[1], validate=True)).digest()
    except (IndexError, binascii.Error):
        return "unreadable"
    return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def _name(host: str, port: int | None) -> str:
    """The host as OpenSSH writes it: with the port only where it is not the default."""
    return host if port in (None, _USUAL_PORT) else f"[{host}]:{port}"


def _entries(file: Path) -> list[tuple[str, str]]:
    try:
        lines = file.read_text().splitlines()
    except FileNotFoundError:
        return []
    words = [line.split() for line in lines if not line.startswith("#")]
    return [(name, f"{kind} {key}") for name, kind, key, *_ in (entry for entry in words if len(entry) >= 3)]
