"""The SSH key pair for rented machines: created once, kept private, registered with the provider."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stationmaster.errors import ConfigInvalid
from stationmaster.files import write_atomically
from stationmaster.providers.base import KnowsKeys

DEFAULT_KEY_PATH = Path("~/.ssh/vastai/vastai_ed25519")
_SETUP_HINT = "run `stationmaster keys setup`"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """`public_key` is one OpenSSH line; `made` is True for a new pair."""

    private_path: Path
    public_key: str
    made: bool = False

    @property
    def public_path(self) -> Path:
        return _public_path(self.private_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyReport:
    """The provider's keys, and whether ours is one of them."""

    known: tuple[str, ...]
    is_ours_known: bool

    @property
    def advice(self) -> str | None:
        return None if self.is_ours_known else f"the provider does not have this key; {_SETUP_HINT}"


def ensure_pair(path: Path = DEFAULT_KEY_PATH) -> KeyPair:
    """Create the pair at `path` if there is none, readable only by its owner; never replaces one."""
    private = path.expanduser()
    made = not private.exists()
    try:
        if made:
            _make(private)
        private.chmod(0o600)
        return KeyPair(private_path=private, public_key=_public_key(private, write=True), made=made)
    except OSError as problem:
        raise ConfigInvalid(f"the SSH key {private} cannot be used: {problem.strerror or problem}") from problem


def read_pair(path: Path = DEFAULT_KEY_PATH) -> KeyPair:
    """Read the pair at `path`; changes nothing. Raises ConfigInvalid if there is none."""
    private = path.expanduser()
    if not private.is_file():
        raise ConfigInvalid(f"there is no SSH key at {private}", hint=f"{_SETUP_HINT} or set VASTAI_SSH_KEY_PATH")
    try:
        return KeyPair(private_path=private, public_key=_public_key(private, write=False))
    except OSError as problem:
        raise ConfigInvalid(f"the SSH key {private} cannot be read: {problem.strerror or problem}") from problem


def require_matching(pair: KeyPair) -> None:
    """Raises ConfigInvalid if the public key beside a private one is of another pair: no login would work.

    A private key with a passphrase cannot be compared.
    """
    try:
        derived = _derived(pair.private_path).decode()
    except (ConfigInvalid, OSError):
        return
    if derived.split()[:2] != pair.public_key.split()[:2]:
        raise ConfigInvalid(
            f"{pair.public_path} is not the public key of {pair.private_path}",
            hint=f"run `ssh-keygen -y -f {pair.private_path} > {pair.public_path}`, then `stationmaster keys setup`",
        )


async def register(pair: KeyPair, provider: KnowsKeys) -> KeyReport:
    """Add the key to the account, for machines rented from now on; does nothing if it is there."""
    await provider.add_account_key(pair.public_key)
    return await check(pair, provider)


async def check(pair: KeyPair, provider: KnowsKeys) -> KeyReport:
    known = await provider.account_keys()
    ours = pair.public_key.split()[:2]
    return KeyReport(known=known, is_ours_known=any(key.split()[:2] == ours for key in known))


def _make(private: Path) -> None:
    """Create a matching pair: if several processes do it at the same time, the first wins.

    The private key appears first, atomically, and is never replaced; the public key is derived from it, also after a
    crash.
    """
    import asyncssh  # 0.2 s to import, and rarely needed

    private.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _public_path(private).unlink(missing_ok=True)  # left from a pair without its private key
    key = asyncssh.generate_private_key("ssh-ed25519", comment="stationmaster")
    fresh = _write_beside(private, key.export_private_key())
    try:
        os.link(fresh, private)
    except FileExistsError:
        pass  # another process created it first
    except OSError:
        fresh.rename(private)  # a file system without hard links
    fresh.unlink(missing_ok=True)


def _write_beside(path: Path, content: bytes) -> Path:
    """Write a new file in the folder of `path`, flushed to disk and for its owner only; its path."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    return Path(name)


def _public_key(private: Path, *, write: bool) -> str:
    """The public key: from its file next to the private key, else derived."""
    public = _public_path(private)
    with suppress(FileNotFoundError):  # none, or another process that makes the pair has just removed it
        line = " ".join(public.read_text(encoding="utf-8").split())
        if line.startswith(("ssh-", "ecdsa-", "sk-")):
            return line
    content = _derived(private)
    if write:
        write_atomically(public, content, mode=0o644, durable=True)
    return content.decode().strip()


def _derived(private: Path) -> bytes:
    import asyncssh

    try:
        return asyncssh.read_private_key(str(private)).export_public_key()
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
        raise ConfigInvalid(
            f"{private} is not a private key without a passphrase",
            hint=f"put its public key next to it, or move it away and {_SETUP_HINT}",
        ) from None


def _public_path(private: Path) -> Path:
    return private.with_name(f"{private.name}.pub")
