"""The folder of one upload: finished files below `files`, those that are arriving below `parts`.

Requests of several processes may write to it at once. Every change happens under the folder's lock, which is held for
one short step and never while bytes are awaited: a connection that hangs keeps no other one from going on.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.datasets.tree import files_of, scan, shown
from stationmaster.datasets.uploads.names import is_archive, require_valid_name
from stationmaster.errors import DatasetInvalid, DiskFull, NotFound, WrongOffset
from stationmaster.files import write_atomically

UNUSED_SECONDS = 3 * 24 * 3600.0
"""An upload that was not used for this time is removed."""

_ID = re.compile(r"[0-9a-f]{32}")


_LEAST_CHARGE = 16 << 10  # a disk can be filled with empty files too

Charge = Callable[[int], None]
"""Counts bytes against a limit; raises if it is exceeded."""


def charged(size: int) -> int:
    """The bytes that a file of this size counts as."""
    return max(size, _LEAST_CHARGE)


def new_id() -> str:
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What the sender said when the upload began."""

    name: str
    recipe: str | None = None  # whose rules each file is checked against
    trigger: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivedFile:
    """How much of one file is here."""

    path: str
    received: int
    size: int
    is_complete: bool


def folders_in(uploads: Path) -> list[UploadFolder]:
    """The folders of all uploads."""
    return [UploadFolder(uploads, path.name) for path in sorted(uploads.glob("*/")) if _ID.fullmatch(path.name)]


class UploadFolder:
    def __init__(self, uploads: Path, upload_id: str) -> None:
        """Raises NotFound for what cannot be the id of an upload."""
        if not _ID.fullmatch(upload_id):
            raise no_such_upload(upload_id)
        self.id = upload_id
        self.path = uploads / upload_id
        self.files = self.path / "files"
        self._parts = self.path / "parts"
        self._about = self.path / "about.json"

    def create(self, about: About) -> None:
        self.files.mkdir(parents=True, mode=0o700)
        self._parts.mkdir(mode=0o700)
        (self.path / ".lock").touch(mode=0o600)
        words = {"name": about.name, "recipe": about.recipe, "trigger": about.trigger}
        write_atomically(self._about, json.dumps(words), mode=0o600)

    def about(self) -> About:
        """Raises NotFound."""
        try:
            return About(**json.loads(self._about.read_text(encoding="utf-8")))
        except OSError:
            raise self._gone() from None

    def touch(self) -> None:
        """The upload is used now, so that it stays. Raises NotFound."""
        with self.locked():
            os.utime(self._about)

    def last_use(self) -> float:
        with self._or_gone():
            return self._about.stat().st_mtime

    def dataset(self) -> Path:
        """The folder with the files, or the one archive that was uploaded. Raises NotFound and DatasetInvalid."""
        self.touch()
        found = [file.path for file in files_of(scan(self.files))]
        arriving = [file for file in self._arriving() if not file.is_complete]
        if arriving:
            first = arriving[0]
            raise DatasetInvalid(
                f"upload {self.id} is not complete: {shown(first.path)} has {first.received:,} of {first.size:,} bytes",
                hint="upload the rest, or remove that file",
            )
        if not found:
            raise DatasetInvalid(f"upload {self.id} has no files", hint="upload the images and captions first")
        return self.files / found[0] if len(found) == 1 and is_archive(found[0]) else self.files

    def listed(self) -> list[ArrivedFile]:
        """Every file, by its path, finished or not. Raises NotFound."""
        with self._or_gone():
            self._about.stat()
        finished = {
            file.path: ArrivedFile(path=file.path, received=file.size, size=file.size, is_complete=True)
            for file in files_of(scan(self.files))
        }
        arriving = {file.path: file for file in self._arriving()}
        return [file for _, file in sorted({**finished, **arriving}.items())]

    def file(self, path: str) -> ArrivedFile:
        """Raises NotFound if nothing of it has arrived, and for a name that cannot be."""
        require_valid_name(path)
        with self.locked():
            found = self._arriving_file(path) or self._finished_file(path)
        if found is None:
            raise NotFound(f"upload {self.id} has no file {shown(path)}", hint="send it from its first byte")
        return found

    def remove_file(self, path: str) -> int:
        """Returns how many bytes were charged for it. Raises NotFound."""
        self.file(path)
        with self.locked():
            found = [self._arriving_file(path), self._finished_file(path)]
            self._drop_part(path)
            if found[1] is not None:
                (self.files / path).unlink()
        return sum(charged(file.size) for file in found if file is not None)

    def recount(self, charge: Charge) -> None:
        """Call `charge` with the bytes that all its files count as, while none of them can change. Raises NotFound."""
        with self.locked():
            finished = [file.size for file in files_of(scan(self.files))]
            charge(sum(charged(size) for size in (*finished, *(file.size for file in self._arriving()))))

    def remove(self, *, unused_seconds: float = 0.0, forget: Callable[[], None] | None = None) -> bool:
        """Remove the folder, unless it was used within that time; False if it stays or is gone already.

        `forget` is called before: what is known about an upload goes before its files, which are found without it.
        """
        try:
            with self.locked():
                if unused_seconds and time.time() - self.last_use() < unused_seconds:
                    return False
                if forget is not None:
                    forget()
                aside = self.path.rename(self.path.with_name(f".{secrets.token_hex(8)}.going"))
        except NotFound:
            return False
        shutil.rmtree(aside)
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the folder. Raises NotFound, also for one that is removed at this moment."""
        with self._or_gone():
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with self._or_gone():
                self._about.stat()  # the folder was moved aside while we waited
            yield
        finally:
            os.close(descriptor)

    # What one writer of a file does; `PartWriter` calls these.

    def begin_part(self, path: str, size: int, *, offset: int, restart: bool, charge: Charge) -> Path:
        """The file that the bytes from `offset` on are appended to. Raises WrongOffset.

        `charge` is called before a file is begun, with how many bytes more it will have than its former part.
        """
        require_valid_name(path)
        with self.locked():
            found = self._arriving_file(path)
            if offset == 0 and (found is None or restart or found.size != size):
                charge(charged(size) - (0 if found is None else charged(found.size)))
                found = self._new_part(path, size)
            if found is None or found.size != size or found.received != offset:
                raise self.wrong_offset(path)
        return self._part(path)

    def append(self, path: str, descriptor: int, data: bytes, *, offset: int) -> None:
        """Raises WrongOffset if the file is no longer that long: another writer was faster."""
        with self.locked():
            self._require_current(path, descriptor, length=offset)
            _write(descriptor, data, offset, path)

    def finish_part(self, path: str, descriptor: int, *, size: int) -> int:
        """The file has arrived; returns how many bytes are charged for the one that it replaces. Raises
        DatasetInvalid if a folder has its name.
        """
        with self.locked():
            self._require_current(path, descriptor, length=size)
            target, former = self.files / path, self._finished_file(path)
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                self._part(path).replace(target)
            except OSError as problem:
                raise DatasetInvalid(
                    f"{shown(path)} cannot be stored: {problem.strerror}",
                    hint="a file and a folder cannot have the same name",
                ) from None
            self._drop_part(path)
            os.utime(self._about)
            return 0 if former is None else charged(former.size)

    def drop_part(self, path: str) -> None:
        with self.locked():
            self._drop_part(path)

    def _require_current(self, path: str, descriptor: int, *, length: int) -> None:
        ours = os.fstat(descriptor)
        try:
            is_ours = self._part(path).stat().st_ino == ours.st_ino
        except FileNotFoundError:
            is_ours = False
        if not is_ours or ours.st_size != length:
            raise self.wrong_offset(path)

    def wrong_offset(self, path: str) -> WrongOffset:
        """The error for a piece that does not begin where the file ends."""
        there = self._arriving_file(path) or self._finished_file(path)
        return _wrong_offset(there or ArrivedFile(path=path, received=0, size=0, is_complete=False))

    def _new_part(self, path: str, size: int) -> ArrivedFile:
        self._drop_part(path)  # another writer's, which then sees that the file is no longer its own
        self._part(path).touch(mode=0o600)
        words = {"path": path, "size": size}
        write_atomically(self._part(path).with_suffix(".json"), json.dumps(words), mode=0o600)
        return ArrivedFile(path=path, received=0, size=size, is_complete=False)

    def _drop_part(self, path: str) -> None:
        self._part(path).with_suffix(".json").unlink(missing_ok=True)
        self._part(path).unlink(missing_ok=True)

    def _part(self, path: str) -> Path:
        return self._parts / f"{hashlib.sha256(path.encode()).hexdigest()[:40]}.part"

    def _arriving(self) -> list[ArrivedFile]:
        return [file for words in sorted(self._parts.glob("*.json")) if (file := _arrived(words)) is not None]

    def _arriving_file(self, path: str) -> ArrivedFile | None:
        return _arrived(self._part(path).with_suffix(".json"))

    def _finished_file(self, path: str) -> ArrivedFile | None:
        target = self.files / path
        if not target.is_file():
            return None
        size = target.stat().st_size
        return ArrivedFile(path=path, received=size, size=size, is_complete=True)

    @contextmanager
    def _or_gone(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise self._gone() from None

    def _gone(self) -> NotFound:
        return no_such_upload(self.id)


def no_such_upload(upload_id: str) -> NotFound:
    readable = shown(upload_id.encode("utf-8", "replace").decode())
    return NotFound(f"there is no upload {readable}", hint="it may have expired; begin a new upload")


def _wrong_offset(there: ArrivedFile) -> WrongOffset:
    name = shown(there.path)
    if there.is_complete:
        text, hint = f"{name} is complete", "to replace it, send it from its first byte"
    elif there.received:
        text, hint = f"{name} has {there.received} of {there.size} bytes", f"continue at byte {there.received}"
    else:
        text, hint = f"nothing of {name} is here", "begin at byte 0"
    return WrongOffset(text, received=there.received, hint=hint)


def _arrived(words: Path) -> ArrivedFile | None:
    try:
        known = json.loads(words.read_text(encoding="utf-8"))
        received = words.with_suffix(".part").stat().st_size
    except FileNotFoundError:
        return None
    return ArrivedFile(path=known["path"], received=received, size=known["size"], is_complete=False)


def _write(descriptor: int, data: bytes, offset: int, path: str) -> None:
    left = memoryview(data)
    try:
        while left:
            written = os.pwrite(descriptor, left, offset)
            left, offset = left[written:], offset + written
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"the server has no disk space left for {shown(path)}") from None
        raise
