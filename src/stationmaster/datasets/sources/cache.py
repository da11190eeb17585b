"""A local cache of remote datasets: downloads each file once, verifies its hash, resumes after interruptions."""

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

#: Called with (bytes done, total bytes).
Progress = Callable[[int, int], None]

_SPARE_BYTES = 64 << 20
_AT_ONCE = 8
_TRIES = 4
_PARTS = ".parts"


def fetch_into_cache(files: RemoteDataset, source: str, cache: Path, *, progress: Progress | None = None) -> Path:
    """Download the current version of the dataset `source`; returns its folder, or the path of its one archive.

    Cached files are used if their hash still matches; partial downloads are resumed. Raises NotFound, DatasetInvalid
    (a file does not match its digest), DiskFull, DeliveryRefused, DeliveryBusy.
    """
    wanted = _validated(files.listed(), source)
    place = cache / _folder_name(source)
    with _locked(place):
        index = _CacheIndex(place)
        missing = [file for file in wanted if not index.has(file)]
        _require_room(place, sum(file.size for file in missing))
        total = sum(file.size for file in wanted)
        done = total - sum(file.size for file in missing)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for file, sha256 in zip(missing, pool.map(partial(_fetch, files, place), missing), strict=True):
                index.put(file, sha256)
                done += file.size
                if progress is not None:
                    progress(done, total)
        index.keep_only(wanted)
    only = wanted[0].path if len(wanted) == 1 and _is_archive(wanted[0].path) else ""
    return place / "files" / only


def remove_unused_datasets(cache: Path, *, seconds: float) -> list[Path]:
    """Remove datasets that were not used for `seconds`, except one being downloaded; returns their folders."""
    gone = []
    for place in sorted(cache.glob("*/")):
        with _locked(place, wait=False) as is_ours:
            if is_ours and time.time() - _last_use(place) >= seconds:
                aside = place.rename(cache / f".{secrets.token_hex(8)}.going")  # a waiting process creates it again
                shutil.rmtree(aside)
                gone.append(place)
    return gone


def _last_use(place: Path) -> float:
    """Time of the last download: a complete one rewrites the index, an interrupted one leaves its parts."""
    found = [path for path in (place / "index.json", place / _PARTS) if path.exists()]
    return max(path.stat().st_mtime for path in found or [place])


class _CacheIndex:
    """The cached files: path, version and SHA-256 of each at the time of its download."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._index_path = place / "index.json"
        try:
            found = json.loads(self._index_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            found = {}
        self._files: dict[str, dict[str, Any]] = found if isinstance(found, dict) else {}

    def has(self, file: RemoteFile) -> bool:
        path = self._place / "files" / file.path
        if not path.is_file() or path.stat().st_size != file.size:
            return False
        sha256, digest = _hashes(file, path)
        known = self._files.get(file.path)
        if known is None:  # downloaded by a process that died before it wrote the index
            is_verified = digest is not None and digest == file.digest
            known = {"version": file.version, "sha256": sha256 if is_verified else None}
        if (known.get("version"), known.get("sha256")) != (file.version, sha256):
            return False
        self.put(file, sha256)
        return True

    def put(self, file: RemoteFile, sha256: str) -> None:
        self._files[file.path] = {"version": file.version, "size": file.size, "sha256": sha256}

    def keep_only(self, wanted: Sequence[RemoteFile]) -> None:
        """Remove files that the dataset no longer has, and write the index."""
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
        write_atomically(self._index_path, json.dumps(self._files, indent=1))


def _validated(files: Sequence[RemoteFile], source: str) -> list[RemoteFile]:
    if not files:
        raise NotFound(f"the dataset {shown(source)} does not exist or is empty", hint="check its name")
    if len(files) > MAX_ENTRIES:
        raise DatasetInvalid(f"{shown(source)} contains more than {MAX_ENTRIES:,} files")
    for file in files:
        path = PurePosixPath(file.path)
        leads_out = path.is_absolute() or ".." in path.parts or "\0" in file.path
        if leads_out or not path.parts or path.as_posix() != file.path:
            raise DatasetInvalid(f"{shown(source)} contains {shown(file.path)}, which is not a valid file name")
    return sorted(files, key=lambda file: file.path)


def _fetch(files: RemoteDataset, place: Path, file: RemoteFile) -> str:
    """Download the file and check its digest; returns its SHA-256."""
    name = hashlib.sha256(f"{file.path}\0{file.version}".encode()).hexdigest()[:32]
    part = place / _PARTS / name
    part.parent.mkdir(exist_ok=True)
    for left in reversed(range(_TRIES)):
        try:
            _download_rest(files, file, part)
            break
        except DeliveryBusy:
            if not left:
                raise
    sha256 = _verified(files, file, part)
    target = place / "files" / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)
    return sha256


def _download_rest(files: RemoteDataset, file: RemoteFile, part: Path) -> None:
    """Append the missing bytes to `part`; what arrived stays if the connection is lost."""
    have = part.stat().st_size if part.exists() else 0
    if have > file.size:
        part.unlink()
        have = 0
    try:
        with part.open("ab") as target:
            if have < file.size:
                for chunk in files.read(file, offset=have):
                    have += len(chunk)
                    if have > file.size:
                        raise DatasetInvalid(
                            f"{shown(file.path)} has more than the {file.size:,} bytes that were listed"
                        )
                    target.write(chunk)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            part.unlink(missing_ok=True)
            raise DiskFull(f"not enough disk space for {shown(file.path)} ({file.size:,} bytes)") from None
        raise
    if part.stat().st_size < file.size:
        raise DeliveryBusy(
            f"{shown(file.path)}: the download stopped after {part.stat().st_size:,} of {file.size:,} bytes"
        )


def _verified(files: RemoteDataset, file: RemoteFile, part: Path) -> str:
    sha256, digest = _hashes(file, part)
    is_wrong = digest is not None and digest != file.digest and files.digest_is_of_content(file)
    if is_wrong or part.stat().st_size != file.size:
        part.unlink()
        raise DatasetInvalid(f"{shown(file.path)} was downloaded with a wrong size or digest", hint="try again")
    return sha256


def _hashes(file: RemoteFile, path: Path) -> tuple[str, str | None]:
    """The SHA-256 of `path`, and its digest of the kind that the service reports."""
    digest, sha256 = file.new_digest(), hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(1 << 20):
            sha256.update(chunk)
            if digest is not None:
                digest.update(chunk)
    return sha256.hexdigest(), None if digest is None else str(digest.hexdigest())


def _require_room(place: Path, size: int) -> None:
    free = shutil.disk_usage(place).free
    if size + _SPARE_BYTES > free:
        raise DiskFull(
            f"the dataset needs {size + _SPARE_BYTES:,} bytes in {shown(str(place))}; {free:,} are free",
            hint="free disk space, or set STATIONMASTER_HOME to a larger disk",
        )


@contextmanager
def _locked(place: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock the folder, so that two processes do not download into the same files; False if another has the lock."""
    descriptor = _take_lock(place, wait=wait)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _take_lock(place: Path, *, wait: bool) -> int | None:
    """Create the folder and lock it; None if another process has the lock and `wait` is False."""
    lock = place / ".lock"
    while True:
        place.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # removed at this moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass
        os.close(descriptor)  # the folder was removed while we waited: create it again


def _folder_name(source: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", source).strip("-.")[-60:]
    return f"{readable}-{hashlib.sha256(source.encode()).hexdigest()[:12]}"


def _is_archive(path: str) -> bool:
    return path.lower().endswith((".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz"))
