"""Small datasets, and those for this computer: sent file by file, each verified by the manifest's SHA-256.

The files are read from the packed dataset, which is what was agreed to: the folder it came from may have changed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from stationmaster.control.flow.policy import Policy
from stationmaster.errors import TransferFailed
from stationmaster.model import Job, LocalAccess
from stationmaster.remote.transfer import Sending

_CHUNK_BYTES = 1 << 20
_MOST_FILES = 2000  # an archive is faster for more, over a network


def goes_as_files(job: Job, policy: Policy) -> bool:
    """Whether the dataset is sent without an archive: a small one, or any to this computer."""
    archive = Path(job.spec.dataset.archive)
    if archive.suffix != ".tar" or not _manifest_of(archive).is_file():
        return False
    if isinstance(job.machine.access, LocalAccess):
        return True
    return job.spec.dataset.size <= policy.transfer.archive_above_bytes and len(_listed(archive)) <= _MOST_FILES


@asynccontextmanager
async def dataset_files(job: Job, folder: Path, *, below: str) -> AsyncIterator[list[Sending]]:
    """The dataset's files as they are sent, to `below` in the job's folder on the machine.

    They are unpacked into `folder` for the time of the transfer. Raises TransferFailed if the archive cannot be read.
    """
    archive = Path(job.spec.dataset.archive)
    listed = await asyncio.to_thread(_listed, archive)
    unpacked = await asyncio.to_thread(_unpack, archive, frozenset(file["path"] for file in listed), folder)
    try:
        yield [
            Sending(local=unpacked / file["path"], path=f"{below}/{file['path']}", sha256=file["sha256"])
            for file in listed
        ]
    finally:
        await asyncio.to_thread(shutil.rmtree, unpacked, ignore_errors=True)


def _unpack(archive: Path, paths: frozenset[str], folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(".dataset-*"):  # of a worker that was killed
        shutil.rmtree(left, ignore_errors=True)
    unpacked = Path(tempfile.mkdtemp(prefix=".dataset-", dir=folder))
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name in paths and (content := tar.extractfile(member)) is not None:
                    _write(content, unpacked / member.name)
    except (OSError, tarfile.TarError) as problem:
        shutil.rmtree(unpacked, ignore_errors=True)
        raise TransferFailed(f"{archive} cannot be unpacked: {problem}") from problem
    return unpacked


def _write(content: IO[bytes], place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with content, place.open("xb") as file:
        shutil.copyfileobj(content, file, _CHUNK_BYTES)


def _manifest_of(archive: Path) -> Path:
    return archive.with_name(f"{archive.name}.manifest.json")


def _listed(archive: Path) -> list[dict[str, Any]]:
    try:
        files: list[dict[str, Any]] = json.loads(_manifest_of(archive).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError) as problem:
        raise TransferFailed(f"the manifest of {archive} cannot be read: {problem}") from problem
    return files
