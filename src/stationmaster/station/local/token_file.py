"""The single user's token in a file of the home, for programs on this computer."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stationmaster.errors import ConfigInvalid, NotSignedIn
from stationmaster.files import write_atomically
from stationmaster.model import SINGLE_USER, Right
from stationmaster.station.doorkeeper import Doorkeeper
from stationmaster.station.tokens import NewToken, Tokens

NAME = "serve.token"
_LONGEST_BYTES = 1000


def ensure_token_file(home: Path, tokens: Tokens, doorkeeper: Doorkeeper) -> Path:
    """The file with a valid token of the administrator; a missing or invalid one is replaced.

    Processes that start at the same time agree on one token. Raises ConfigInvalid if the file cannot be written.
    """
    path = home / NAME
    try:
        with _only_one(home):
            if not _is_valid(path, doorkeeper):
                created = tokens.create(
                    NewToken(name=f"serve.token of {platform.node() or 'this computer'}"[:100], user=SINGLE_USER)
                )
                write_atomically(path, created.secret + "\n", mode=0o600)
            path.chmod(0o600)
    except OSError as problem:
        raise ConfigInvalid(f"cannot write {path}: {problem.strerror}", hint="set another home with --home") from None
    return path


def read_token_file(home: Path) -> str | None:
    """The token in the file of this home; None if there is none."""
    try:
        with (home / NAME).open("rb") as file:
            return file.read(_LONGEST_BYTES).decode().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _is_valid(path: Path, doorkeeper: Doorkeeper) -> bool:
    secret = read_token_file(path.parent)
    if secret is None or path.is_symlink():
        return False
    try:
        caller = doorkeeper.caller_of_token(secret)
    except NotSignedIn:
        return False
    return caller.user == SINGLE_USER and caller.may(Right.MANAGE)


@contextmanager
def _only_one(home: Path) -> Iterator[None]:
    """Processes of this home take turns."""
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
