"""Uploads a dataset of this computer to a server: as one archive, in pieces, and only if it is not there yet."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.datasets.pack import pack_into
from stationmaster.datasets.tree import shown
from stationmaster.datasets.uploads.names import ARCHIVE_SUFFIXES
from stationmaster.errors import DatasetInvalid, NotFound, ServerError, UserError, WrongOffset
from stationmaster.files import sha256_of
from stationmaster.station.dataset_uploads import NewUpload, Upload, UploadedFile
from stationmaster.station.datasets import Progress, UploadReference
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.dataset_uploads import HttpDatasetUploads
from stationmaster.station.wire.server import ServerDocument

_PIECE = 8 << 20
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before the next try, while nothing arrives
_LONGEST_NAME = 120


def upload_dataset(
    connection: Connection,
    path: Path,
    *,
    progress: Progress | None = None,
    packing: Progress | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> UploadReference:
    """Upload a folder or an archive; the reference that the server knows it by. What is there already is not sent.

    Raises NotFound and DatasetInvalid for a dataset that cannot be packed, what the server refuses, and ServerError if
    it does not answer for some seconds; a later call goes on where this one stopped.
    """
    uploads = HttpDatasetUploads(connection)
    owner = connection.get("/api/server", ServerDocument).caller.user
    with _packed(path, packing) as archive:
        label = _label(path)
        upload = uploads.start(NewUpload(owner=owner, name=label, sha256=archive.sha256, size=archive.size))
        if not upload.is_complete:
            _send(uploads, upload, archive, progress, pause)
        return UploadReference(id=upload.id, label=label)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Archive:
    path: Path
    name: str  # on the server
    sha256: str
    size: int


@contextmanager
def _packed(path: Path, packing: Progress | None) -> Iterator[_Archive]:
    if path.is_dir():
        with tempfile.TemporaryDirectory(prefix="stationmaster-upload-") as scratch:
            packed = pack_into(path, Path(scratch), progress=packing)
            yield _Archive(path=packed.path, name="dataset.tar", sha256=packed.sha256, size=packed.size)
        return
    if not path.is_file():
        raise NotFound(
            f"there is no dataset at {shown(str(path))}", hint="pass the folder with the images and captions"
        )
    suffix = next((each for each in ARCHIVE_SUFFIXES if path.name.lower().endswith(each)), None)
    if suffix is None:
        raise UserError(f"{shown(str(path))} is neither a folder nor an archive", hint="pass a .tar or .zip file")
    size = path.stat().st_size
    if size == 0:
        raise DatasetInvalid(f"{shown(str(path))} is empty", hint="pack the dataset again, or pass its folder")
    yield _Archive(path=path, name=f"dataset{suffix}", sha256=sha256_of(path), size=size)


def _send(
    uploads: HttpDatasetUploads,
    upload: Upload,
    archive: _Archive,
    progress: Progress | None,
    pause: Callable[[float], None],
) -> None:
    """Send the pieces that are missing. After a failure go on where the server says that the file ends."""
    pauses, received = iter(_PAUSES), -1
    while True:
        try:
            there = _there(uploads, upload, archive)
            if there.received > received:
                pauses, received = iter(_PAUSES), there.received  # it does go on
            if not there.is_complete:
                _send_rest(uploads, upload, archive, there.received, progress)
            return
        except (ServerError, WrongOffset):  # the connection was lost, or another process uploads the same
            seconds = next(pauses, None)
            if seconds is None:
                raise
            pause(seconds)


def _send_rest(
    uploads: HttpDatasetUploads, upload: Upload, archive: _Archive, offset: int, progress: Progress | None
) -> None:
    writer = uploads.write(upload.id, archive.name, size=archive.size, offset=offset, sha256=archive.sha256)
    with archive.path.open("rb") as file:
        file.seek(offset)
        while data := file.read(_PIECE):
            writer.append(data)
            if progress is not None:
                progress(file.tell(), archive.size)
    writer.finish()


def _there(uploads: HttpDatasetUploads, upload: Upload, archive: _Archive) -> UploadedFile:
    try:
        return uploads.file(upload.id, archive.name)
    except NotFound:
        return UploadedFile(path=archive.name, received=0, size=archive.size, is_complete=False)


def _label(path: Path) -> str:
    """The folder's name, as far as it can be shown."""
    return shown(path.resolve().name)[:_LONGEST_NAME].strip() or "dataset"
