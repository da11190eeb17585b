"""Datasets that are uploaded to a server, file by file and piece by piece; each belongs to a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.datasets.report import DatasetProblem, DatasetReport
from stationmaster.datasets.sources.reference import UploadReference
from stationmaster.station.artifacts import Thumbnail


@dataclass(frozen=True, slots=True, kw_only=True)
class NewUpload:
    """What is about to be uploaded. With hash and size it is one archive, which is not sent twice."""

    owner: str
    name: str
    recipe: str | None = None  # whose rules each file is checked against
    trigger: str | None = None
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """One upload. It expires when it is not used for some days."""

    id: str
    owner: str
    name: str
    created_at: float
    expires_at: float
    files: int
    bytes: int  # that have arrived
    is_complete: bool  # it has files, and all of them have arrived
    recipe: str | None = None  # as named when it began
    trigger: str | None = None

    @property
    def reference(self) -> UploadReference:
        return UploadReference(id=self.id, label=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedFile:
    """One file of an upload, as far as it has arrived; `problems` are only known when it has just been completed."""

    path: str
    received: int
    size: int
    is_complete: bool
    problems: tuple[DatasetProblem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedPicture:
    """A picture that has arrived. `caption` is None if none has, or it is no text."""

    path: str
    size: int
    caption: str | None


class FileWriter(Protocol):
    """Takes the bytes of one file in their order."""

    def append(self, data: bytes) -> None:
        """Raises IllegalMove if another writer is writing the same file and was faster, and DiskFull."""

    def finish(self) -> UploadedFile:
        """The end of the piece. If the file is complete now, it is checked.

        Raises DatasetInvalid if its SHA-256 is not the one that was announced: it has to be sent again.
        """

    def close(self) -> None:
        """What has arrived stays, so that the rest can be sent later."""


class DatasetUploads(Protocol):
    """Every method that takes an id raises NotFound if there is no such upload."""

    def start(self, new: NewUpload) -> Upload:
        """Begin an upload; the one that the owner has begun or completed already if hash and size are the same.

        Raises UserError for a name that cannot be shown, NotFound for an unknown recipe, TooLarge.
        """

    def listed(self, owner: str, *, after: str | None = None, limit: int = 50) -> Sequence[Upload]:
        """The owner's uploads, newest first; `after` is the id of the last one of the page before."""

    def find(self, upload_id: str) -> Upload: ...

    def files(self, upload_id: str) -> Sequence[UploadedFile]:
        """All files, by their paths."""

    def file(self, upload_id: str, path: str) -> UploadedFile:
        """How much of a file has arrived. Raises NotFound, DatasetInvalid for a name that cannot be."""

    def pictures(self, upload_id: str, *, after: str | None = None, limit: int = 100) -> Sequence[UploadedPicture]:
        """The pictures that have arrived, with their captions, by path; none for an archive, which is not unpacked."""

    def thumbnail(self, upload_id: str, path: str, *, width: int = 256) -> Thumbnail:
        """A picture scaled down to this width. Raises NotFound, PictureInvalid for one that is broken or too large."""

    def write(
        self,
        upload_id: str,
        path: str,
        *,
        size: int,
        offset: int = 0,
        restart: bool = False,
        sha256: str | None = None,
    ) -> FileWriter:
        """Take the bytes of a file from `offset` on; `size` is that of the whole file.

        `restart`: what has arrived of it is dropped. Raises IllegalMove for a wrong offset, DatasetInvalid for a name
        that cannot be, TooLarge, DiskFull.
        """

    def remove_file(self, upload_id: str, path: str) -> None: ...

    def check(self, upload_id: str, *, recipe: str | None = None, trigger: str | None = None) -> DatasetReport:
        """Check the whole dataset, by default against the recipe that was named when the upload began.

        Raises DatasetInvalid if something has not arrived yet, or for an archive that cannot be read.
        """

    def remove(self, upload_id: str) -> None: ...
