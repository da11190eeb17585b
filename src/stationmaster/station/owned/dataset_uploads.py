"""A user's own uploads."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.datasets.report import DatasetReport
from stationmaster.datasets.uploads.folder import no_such_upload
from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import Caller, Right
from stationmaster.station.artifacts import Thumbnail
from stationmaster.station.dataset_uploads import (
    DatasetUploads,
    FileWriter,
    NewUpload,
    Upload,
    UploadedFile,
    UploadedPicture,
)
from stationmaster.station.datasets import DatasetReference, UploadReference
from stationmaster.station.owned.rights import require


class OwnedDatasetUploads:
    def __init__(self, caller: Caller, uploads: DatasetUploads) -> None:
        self._caller = caller
        self._all = uploads

    def start(self, new: NewUpload) -> Upload:
        require(self._caller, Right.TRAIN)
        self._require_own(new.owner)
        return self._all.start(new)

    def listed(self, owner: str, *, after: str | None = None, limit: int = 50) -> Sequence[Upload]:
        self._require_own(owner)
        return self._all.listed(owner, after=after, limit=limit)

    def find(self, upload_id: str) -> Upload:
        found = self._all.find(upload_id)
        if not self._caller.owns(found.owner):
            raise no_such_upload(upload_id)
        return found

    def files(self, upload_id: str) -> Sequence[UploadedFile]:
        return self._all.files(self.find(upload_id).id)

    def file(self, upload_id: str, path: str) -> UploadedFile:
        return self._all.file(self.find(upload_id).id, path)

    def pictures(self, upload_id: str, *, after: str | None = None, limit: int = 100) -> Sequence[UploadedPicture]:
        return self._all.pictures(self.find(upload_id).id, after=after, limit=limit)

    def thumbnail(self, upload_id: str, path: str, *, width: int = 256) -> Thumbnail:
        return self._all.thumbnail(self.find(upload_id).id, path, width=width)

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
        require(self._caller, Right.TRAIN)
        own = self.find(upload_id).id
        return self._all.write(own, path, size=size, offset=offset, restart=restart, sha256=sha256)

    def remove_file(self, upload_id: str, path: str) -> None:
        require(self._caller, Right.TRAIN)
        self._all.remove_file(self.find(upload_id).id, path)

    def check(self, upload_id: str, *, recipe: str | None = None, trigger: str | None = None) -> DatasetReport:
        require(self._caller, Right.TRAIN)
        return self._all.check(self.find(upload_id).id, recipe=recipe, trigger=trigger)

    def remove(self, upload_id: str) -> None:
        require(self._caller, Right.TRAIN)
        self._all.remove(self.find(upload_id).id)

    def require_own_source(self, source: DatasetReference) -> None:
        """Raises NotFound for another's upload, and Forbidden for what is read with the server's own rights: its files,
        its bucket and its account on the Hub.
        """
        if not isinstance(source, UploadReference):
            raise Forbidden(
                "only administrators may use datasets on the server, in its bucket or on the Hub",
                hint="upload the dataset: POST /api/datasets",
            )
        self.find(source.id)

    def _require_own(self, owner: str) -> None:
        if owner != self._caller.user:
            raise NotFound(f"there is no user {owner}")
