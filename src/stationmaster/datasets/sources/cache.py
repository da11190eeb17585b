"""A dataset that lies elsewhere, kept at home: fetched once, file by file, each with its hash; cuts are resumed."""

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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from stationmaster.datasets.sources.remote_dataset import RemoteDataset, RemoteFile
from stationmaster.datasets.tree import MAX_ENTRIES, shown
from stationmaster.errors import DatasetInvalid, DeliveryBusy, DiskFull, NotFound
from stationmaster.files import write_atomically

#: Called with (bytes that are there, bytes in all).
Progress = Callable[[int, int], None]

_ROOM_TO_SPARE_BYTES = 64 << 20
_AT_ONCE = 8
_TRIES = 4
_PARTS = ".parts"


def fetch_into_cache(files: RemoteDataset, source: str, cache: Path, *, progress: Progress | None = None) -> Path:
    """The folder, or the one archive, that holds the dataset `source` as it is now.

    What an earlier call fetched is used if its hash still fits; what a broken connection left is added to. Raises
    NotFound, DatasetInvalid (a file that is not what it is said to be), DiskFull, DeliveryRefused, DeliveryBusy.
    """
    wanted = _checked(files.listed(), source)
    place = cache / _folder_name(source)
    with _alone(place):
        held = _Held(place)
        missing = [file for file in wanted if not held.has(file)]
        _require_room(place, sum(file.size for file in missing))
        total = sum(file.size for file in wanted)
        done = total - sum(file.size for file in missing)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for file, sha256 in zip(missing, pool.map(partial(_fetch, files, place), missing), strict=True):
                held.put(file, sha256)
                done += file.size
                if progress is not None:
                    progress(done, total)
        held.keep_only(wanted)
    only = wanted[0].path if len(wanted) == 1 and _is_archive(wanted[0].path) else ""
    return place / "files" / only


def remove_unused_datasets(cache: Path, *, seconds: float) -> list[Path]:
    """Datasets that nobody asked for in so long are gone; which ones. One that is being fetched stays."""
    gone = []
    for place in sorted(cache.glob("*/")):
        with _alone(place, wait=False) as is_ours:
            if is_ours and time.time() - _last_use(place) >= seconds:
                aside = place.rename(cache / f".{secrets.token_hex(8)}.going")  # whoever waits for it makes it anew
                shutil.rmtree(aside)
                gone.append(place)
    return gone


def _last_use(place: Path) -> float:
    """Every fetch writes the list anew, at its end; one that broke off left its parts."""
    told = [path for path in (place / "index.json", place / _PARTS) if path.exists()]
    return max(path.stat().st_mtime for path in told or [place])


class _Held:
    """What the cache holds, by its own list: path, version and SHA-256 as they were when it was fetched."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._list = place / "index.json"
        try:
            found = json.loads(self._list.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}
        self._files: dict[str, dict[str, Any]] = found if isinstance(found, dict) else {}

    def has(self, file: RemoteFile) -> bool:
        path = self._place / "files" / file.path
        if not path.is_file() or path.stat().st_size != file.size:
            return False
        sha256, told = _hashes(file, path)
        known = self._files.get(file.path)
        if known is None:  # fetched by a call that did not live to write its list
            known = {"version": file.version, "sha256": sha256 if told is not None and told == file.digest else None}
        if (known.get("version"), known.get("sha256")) != (file.version, sha256):
            return False
        self.put(file, sha256)
        return True

    def put(self, file: RemoteFile, sha256: str) -> None:
        self._files[file.path] = {"version": file.version, "size": file.size, "sha256": sha256}

    def keep_only(self, wanted: Sequence[RemoteFile]) -> None:
        """Nothing that the dataset no longer has is left, and the list is written."""
        paths = {file.path for file in wanted}
        self._files = {path: known for path, known in self._files.items() if path in paths}
        root = self._place / "files"
        for found in sorted(root.rglob("*"), reverse=True):
            if found.is_dir():
                if not any(found.iterdir()):
                    found.rmdir()
            elif found.relative_to(root).as_posix() not in paths:
                found.unlink()
        shutil.rmtree(self._place / _PARTS, ignore_errors=True)
        write_atomically(self._list, json.dumps(self._files, indent=1))


def _checked(files: Sequence[RemoteFile], source: str) -> list[RemoteFile]:
    if not files:
        raise NotFound(f"there is no dataset {shown(source)}, or nothing is in it", hint="check its name")
    if len(files) > MAX_ENTRIES:
        raise DatasetInvalid(f"{shown(source)} holds more than {MAX_ENTRIES:,} files")
    for file in files:
        path = PurePosixPath(file.path)
        leads_out = path.is_absolute() or ".." in path.parts or "\0" in file.path
        if leads_out or not path.parts or path.as_posix() != file.path:
            raise DatasetInvalid(f"{shown(source)} holds {shown(file.path)}, which cannot be a file's name here")
    return sorted(files, key=lambda file: file.path)


def _fetch(files: RemoteDataset, place: Path, file: RemoteFile) -> str:
    """The file is in its place, with the digest that was told of it; its SHA-256."""
    name = hashlib.sha256(f"{file.path}\0{file.version}".encode()).hexdigest()[:32]
    part = place / _PARTS / name
    part.parent.mkdir(exist_ok=True)
    for left in reversed(range(_TRIES)):
        try:
            _add(files, file, part)
            break
        except DeliveryBusy:
            if not left:
                raise
    sha256 = _verified(files, file, part)
    target = place / "files" / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)
    return sha256


def _add(files: RemoteDataset, file: RemoteFile, part: Path) -> None:
    """What `part` lacks is added to it; what came stays when the connection is lost."""
    have = part.stat().st_size if part.exists() else 0
    if have > file.size:
        part.unlink()
        have = 0
    try:
        with part.open("ab") as target:
            if have < file.size:
                for chunk in files.read(file, offset=have):
                    target.write(chunk)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            part.unlink(missing_ok=True)
            raise DiskFull(f"no room for {shown(file.path)}: it has {file.size:,} bytes") from None
        raise
    if part.stat().st_size < file.size:
        raise DeliveryBusy(f"{shown(file.path)} broke off after {part.stat().st_size:,} of {file.size:,} bytes")


def _verified(files: RemoteDataset, file: RemoteFile, part: Path) -> str:
    sha256, told = _hashes(file, part)
    is_wrong = told is not None and told != file.digest and files.digest_is_of_content(file)
    if is_wrong or part.stat().st_size != file.size:
        part.unlink()
        raise DatasetInvalid(f"{shown(file.path)} did not arrive as it is said to be", hint="try again")
    return sha256


def _hashes(file: RemoteFile, path: Path) -> tuple[str, str | None]:
    """The SHA-256 of what lies at `path`, and the digest of the kind that was told of the file."""
    told, sha256 = file.new_digest(), hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(1 << 20):
            sha256.update(chunk)
            if told is not None:
                told.update(chunk)
    return sha256.hexdigest(), None if told is None else str(told.hexdigest())


def _require_room(place: Path, size: int) -> None:
    free = shutil.disk_usage(place).free
    if size + _ROOM_TO_SPARE_BYTES > free:
        raise DiskFull(
            f"the dataset needs {size:,} bytes and {_ROOM_TO_SPARE_BYTES:,} to spare in {shown(str(place))}, "
            f"{free:,} are free",
            hint="free some room, or set STATIONMASTER_HOME to a larger disk",
        )


@contextmanager
def _alone(place: Path, *, wait: bool = True) -> Iterator[bool]:
    """Two commands that want the same dataset do not fetch it into each other's files; False: another has it now."""
    descriptor = _locked(place, wait=wait)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(place: Path, *, wait: bool) -> int | None:
    """A lock on the folder, which is there; None if another has it and nobody waits."""
    lock = place / ".lock"
    while True:
        place.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # removed this very moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass
        os.close(descriptor)  # the folder was removed while we waited: make it anew


def _folder_name(source: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", source).strip("-.")[-60:]
    return f"{readable}-{hashlib.sha256(source.encode()).hexdigest()[:12]}"


def _is_archive(path: str) -> bool:
    return path.lower().endswith((".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"))
