"""A dedicated SSH key pair for rented machines, made once and never sent anywhere but its public half."""

from __future__ import annotations

import os
from pathlib import Path

from stationmaster.errors import ConfigInvalid


def ensure_key_pair(path: Path, *, comment: str = "stationmaster") -> str:
    """The public key of the pair at `path`; an ed25519 pair is made if there is none. Safe to repeat."""
    if not path.exists():
        _make(path, comment)
    return read_public_key(path)


def read_public_key(path: Path) -> str:
    """The public half of the private key at `path`. Raises ConfigInvalid when there is none to read."""
    from cryptography.hazmat.primitives import serialization  # a tenth of a second: only when keys are used

    try:
        private = serialization.load_ssh_private_key(path.read_bytes(), password=None)
    except FileNotFoundError:
        raise ConfigInvalid(f"there is no SSH key at {path}", hint="run `stationmaster keys setup`") from None
    except (OSError, ValueError, TypeError) as problem:
        raise ConfigInvalid(f"{path} cannot be used as an SSH key: {problem}") from None
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return public.decode()


def _make(path: Path, comment: str) -> None:
    """Both halves appear whole, the private one readable by nobody else."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(path, text)
    _write(path.with_name(f"{path.name}.pub"), public + f" {comment}\n".encode(), mode=0o644)


def _write(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    fresh = path.with_name(f".{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    fresh.replace(path)
