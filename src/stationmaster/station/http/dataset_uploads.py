"""Uploads of datasets on a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from stationmaster.datasets.report import DatasetReport
from stationmaster.errors import NotFound
from stationmaster.station.artifacts import Thumbnail
from stationmaster.station.dataset_uploads import NewUpload, Upload, UploadedFile, UploadedPicture
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.wire.dataset_uploads import (
    StartUpload,
    UploadDocument,
    UploadedFileDocument,
    UploadedPictureDocument,
)
from stationmaster.station.wire.datasets import AskedRules, DatasetReportDocument
from stationmaster.station.wire.document import Page

_PATH = "/api/datasets"
_PART = 64 << 10


class HttpDatasetUploads:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def start(self, new: NewUpload) -> Upload:
        body = StartUpload(name=new.name, recipe=new.recipe, trigger=new.trigger, sha256=new.sha256, size=new.size)
        return self._connection.post(_PATH, UploadDocument, body, parameters={"user": new.owner}).value()

    def listed(self, owner: str, *, after: str | None = None, limit: int = 50) -> Sequence[Upload]:
        found = self._connection.get(_PATH, Page[UploadDocument], user=owner, after=after, limit=limit)
        return [one.value() for one in found.items]

    def find(self, upload_id: str) -> Upload:
        return self._connection.get(f"{_PATH}/{segment(upload_id)}", UploadDocument).value()

    def files(self, upload_id: str) -> Sequence[UploadedFile]:
        path = f"{_PATH}/{segment(upload_id)}/files"
        return [one.value() for one in self._connection.items(path, UploadedFileDocument, limit=1000)]

    def file(self, upload_id: str, path: str) -> UploadedFile:
        return self._connection.get(_file(upload_id, path), UploadedFileDocument).value()

    def pictures(self, upload_id: str, *, after: str | None = None, limit: int = 100) -> Sequence[UploadedPicture]:
        path = f"{_PATH}/{segment(upload_id)}/pictures"
        found = self._connection.get(path, Page[UploadedPictureDocument], after=after, limit=limit)
        return [one.value() for one in found.items]

    def thumbnail(self, upload_id: str, path: str, *, width: int = 256) -> Thumbnail:
        address = f"{_PATH}/{segment(upload_id)}/thumbnails/" + "/".join(segment(part) for part in path.split("/"))
        parameters = {"width": width}
        found = self._connection.send("GET", address, parameters=parameters, headers={"Accept": "image/webp"})
        version = found.headers.get("etag", "").strip('"')
        return Thumbnail(data=found.content, media_type=found.headers["content-type"], version=version)

    def write(
        self,
        upload_id: str,
        path: str,
        *,
        size: int,
        offset: int = 0,
        restart: bool = False,
        sha256: str | None = None,
    ) -> HttpFileWriter:
        if restart:
            with suppress(NotFound):  # nothing of it has arrived
                self.remove_file(upload_id, path)
        return HttpFileWriter(self._connection, _file(upload_id, path), size=size, offset=offset, sha256=sha256)

    def remove_file(self, upload_id: str, path: str) -> None:
        self._connection.send("DELETE", _file(upload_id, path))

    def check(self, upload_id: str, *, recipe: str | None = None, trigger: str | None = None) -> DatasetReport:
        path, rules = f"{_PATH}/{segment(upload_id)}/check", AskedRules(recipe=recipe, trigger=trigger)
        return self._connection.post(path, DatasetReportDocument, rules, patient=True).value()

    def remove(self, upload_id: str) -> None:
        self._connection.send("DELETE", f"{_PATH}/{segment(upload_id)}")


class HttpFileWriter:
    """Sends what it is given in one request each."""

    def __init__(self, connection: Connection, path: str, *, size: int, offset: int, sha256: str | None) -> None:
        self._connection = connection
        self._path = path
        self._size = size
        self._sha256 = sha256
        self._offset = offset
        self._last: UploadedFile | None = None

    def append(self, data: bytes) -> None:
        if data:
            self._last = self._put(data, f"bytes {self._offset}-{self._offset + len(data) - 1}/{self._size}")
            self._offset += len(data)

    def finish(self) -> UploadedFile:
        return self._last or self._put(b"", f"bytes */{self._size}")

    def close(self) -> None:
        """The server has all that was sent."""

    def _put(self, data: bytes, content_range: str) -> UploadedFile:
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(len(data)),
            "Content-Range": content_range,
        }
        if self._sha256 is not None:
            headers["Content-SHA256"] = self._sha256
        # Patient, because the server hashes and checks a file that is complete.
        found = self._connection.send("PUT", self._path, content=_in_parts(data), headers=headers, patient=True)
        return UploadedFileDocument.model_validate_json(found.content).value()


def _in_parts(data: bytes) -> Iterator[bytes]:
    """The client copies what is left of a part for every packet of it: large parts take time and memory."""
    for at in range(0, len(data), _PART):
        yield data[at : at + _PART]


def _file(upload_id: str, path: str) -> str:
    return f"{_PATH}/{segment(upload_id)}/files/" + "/".join(segment(part) for part in path.split("/"))
