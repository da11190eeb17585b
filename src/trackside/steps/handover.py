"""Pass secrets from `start` to the supervisor: a 0600 file in memory, removed as soon as it is read."""

from __future__ import annotations

import json
import os
import stat
from typing import Mapping

from trackside.errors import Misuse, TracksideError
from trackside.records import remove_file
from trackside.root import Root

_MEMORY_FOLDER = "/dev/shm"
_LARGEST_BYTES = 1_000_000


def parse_secrets(text: bytes) -> dict[str, str]:
    """Parse the secrets that home sent. Raises Misuse without repeating any of them."""
    try:
        secrets = json.loads(text)["secrets"]
    except (ValueError, KeyError, TypeError):
        secrets = None
    if not isinstance(secrets, dict) or not all(isinstance(value, str) for value in secrets.values()):
        raise Misuse('the secrets on stdin are not {"secrets": {"NAME": "value"}}')
    return secrets


def leave_secrets(root: Root, secrets: Mapping[str, str]) -> None:
    """Write the secrets where the supervisor of this root looks for them, with those that it has not read yet."""
    unread = look_for_secrets(root) or {}
    content = json.dumps({"root": root.path, "secrets": {**unread, **secrets}}).encode()
    for path in _places(root):
        try:
            _write_private(path, content)
        except OSError:
            continue  # no such folder, or another user has a file of that name: try the next place
        return
    raise TracksideError("cannot pass the secrets to the supervisor: no folder is writable")


def look_for_secrets(root: Root) -> dict[str, str] | None:
    """Return the secrets left for this root, if any. They stay until discarded."""
    for path in _places(root):
        try:
            content = _read_private(path)
        except OSError:
            continue
        try:
            left = json.loads(content)
        except ValueError:
            continue
        if left.get("root") == root.path:
            return dict(left["secrets"])
    return None


def discard_secrets(root: Root) -> None:
    for path in _places(root):
        try:
            remove_file(path)
        except OSError:
            pass  # another user's file under our name: never read, not ours to remove


def _places(root: Root) -> tuple[str, str]:
    """In memory where /dev/shm exists, else beside our other files."""
    try:
        seen = os.stat(root.own)
    except OSError:
        return (os.path.join(root.own, "secrets"),) * 2
    name = "trackside-%d-%x-%x" % (os.geteuid(), seen.st_dev, seen.st_ino)
    return os.path.join(_MEMORY_FOLDER, name), os.path.join(root.own, "secrets")


def _write_private(path: str, content: bytes) -> None:
    temporary = "%s.%d" % (path, os.getpid())
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        os.write(descriptor, content)
        os.rename(temporary, path)
    except OSError:
        remove_file(temporary)
        raise
    finally:
        os.close(descriptor)


def _read_private(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        seen = os.fstat(descriptor)
        if seen.st_uid != os.geteuid() or not stat.S_ISREG(seen.st_mode):
            raise PermissionError(path)
        return os.read(descriptor, _LARGEST_BYTES)
    finally:
        os.close(descriptor)
