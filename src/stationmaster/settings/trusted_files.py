"""Settings files of other folders that a person has trusted, each bound to its content.

A file in the current folder may come with a repository that someone else wrote, and settings can run commands, redirect
keys and destroy machines. So, except for what is harmless (`settings/untrusted.py`), it takes effect only after
`stationmaster trust`, and again after each change.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from stationmaster.errors import ConfigInvalid
from stationmaster.files import write_atomically
from stationmaster.settings.private_home import make_private_home

_LARGEST_BYTES = 1 << 20
_MOST_NAMES = 3


class TrustedFiles:
    """The record in one home: the SHA-256 of every trusted file, by its path."""

    def __init__(self, home: Path) -> None:
        self.record = home / "trusted.json"

    def require(self, path: Path, content: bytes, names: Sequence[str] = ()) -> None:
        """Raises ConfigInvalid unless the file was trusted with this content; `names` are settings that it sets."""
        known = self.digests().get(_key(path))
        if known == digest_of(content):
            return
        what = f"sets {_some_of(names)}, but " if names else ""
        why = "is not trusted" if known is None else "has changed since you trusted it"
        command = f"stationmaster trust {shlex.quote(str(path))}"
        raise ConfigInvalid(f"{path} {what}{why}", hint=f"settings can run commands: read it, then run `{command}`")

    def knows(self, path: Path, sha256: str) -> bool:
        """Whether the file was trusted with this content."""
        return self.digests().get(_key(path)) == sha256

    def trust(self, digests: Mapping[Path, str]) -> None:
        """Record files with the digests of their content."""
        self._write({**self.digests(), **{_key(path): digest for path, digest in digests.items()}})

    def forget(self, path: Path) -> bool:
        """Whether the file was trusted until now."""
        known = self.digests()
        if known.pop(_key(path), None) is None:
            return False
        self._write(known)
        return True

    def digests(self) -> dict[str, str]:
        """The SHA-256 of each trusted file by its path; nothing where others could have written the record."""
        try:
            with self.record.open("rb") as file:
                if is_writable_by_others(os.fstat(file.fileno())):
                    return {}
                found = json.loads(file.read())
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, digests: Mapping[str, str]) -> None:
        make_private_home(self.record.parent)
        write_atomically(self.record, json.dumps(digests, indent=2) + "\n", mode=0o600, durable=True)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_settings_file(path: Path) -> bytes:
    """The content of a settings file. Raises OSError, and ConfigInvalid for one that is too large to be one."""
    with path.open("rb") as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise ConfigInvalid(f"{path} is too large for a settings file", hint="rename or move it")
    return content


def is_writable_by_others(status: os.stat_result) -> bool:
    """Whether users other than this one and root may change a file or folder."""
    return status.st_uid not in (os.geteuid(), 0) or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _key(path: Path) -> str:
    """The path of a file, its folder without links: the working folder has none either."""
    return str(path.parent.resolve() / path.name)


def _some_of(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
