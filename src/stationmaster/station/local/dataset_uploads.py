"""Datasets that were uploaded to this computer: files in its home, and a row each that says whose they are."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence

from stationmaster.datasets import validate
from stationmaster.datasets.archive_reader import open_dataset
from stationmaster.datasets.report import DatasetReport
from stationmaster.datasets.rules import DatasetRules, rules_of
from stationmaster.datasets.tree import read_unchanged
from stationmaster.datasets.uploads.arriving import check_arrived
from stationmaster.datasets.uploads.folder import (
    UNUSED_SECONDS,
    About,
    ArrivedFile,
    UploadFolder,
    new_id,
    no_such_upload,
)
from stationmaster.datasets.uploads.names import is_archive
from stationmaster.datasets.uploads.part_writer import PartWriter, Piece
from stationmaster.datasets.uploads.pictures import picture_at, pictures_in
from stationmaster.errors import DatasetInvalid, DiskFull, NotFound, TooLarge, UserError
from stationmaster.recipes.parameter_levers import trained_resolution
from stationmaster.recipes.registry import find
from stationmaster.station.artifacts import Thumbnail
from stationmaster.station.dataset_uploads import NewUpload, Upload, UploadedFile, UploadedPicture
from stationmaster.station.local.dataset_sources import uploads_of
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.tokens import role_of
from stationmaster.store.dataset_uploads import StoredUpload

_LONGEST_NAME = 120


class LocalDatasetUploads:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings
        self._limits = installation.settings.serve
        self._store = installation.store
        self._home = uploads_of(installation.settings)

    def start(self, new: NewUpload) -> Upload:
        _require_name(new.name)
        if (new.sha256 is None) != (new.size is None):
            raise UserError("sha256 and size belong together", hint="give both of one archive, or neither")
        self._require_size(new.size or 0)
        role_of(self._store, new.owner)
        self._rules(new.recipe, new.trigger)
        if new.sha256 is not None and new.size is not None:
            for stored in self._store.dataset_uploads.same(new.owner, sha256=new.sha256, size=new.size):
                if (known := self._shown(stored)) is not None:
                    self._folder(known.id).touch()
                    return known
        folder = UploadFolder(self._home, new_id())
        folder.create(About(name=new.name, recipe=new.recipe, trigger=new.trigger))
        self._store.dataset_uploads.add(folder.id, owner=new.owner, name=new.name, sha256=new.sha256, size=new.size)
        return self.find(folder.id)

    def listed(self, owner: str, *, after: str | None = None, limit: int = 50) -> Sequence[Upload]:
        found: list[Upload] = []
        while len(found) < limit:
            rows = self._store.dataset_uploads.of_owner(owner, after=after, limit=limit)
            found += [shown for stored in rows if (shown := self._shown(stored)) is not None]
            if len(rows) < limit:
                break
            after = rows[-1].id
        return found[:limit]

    def find(self, upload_id: str) -> Upload:
        found = self._shown(self._stored(upload_id))
        if found is None:
            raise no_such_upload(upload_id)
        return found

    def files(self, upload_id: str) -> Sequence[UploadedFile]:
        return [_file(each) for each in self._folder(upload_id).listed()]

    def file(self, upload_id: str, path: str) -> UploadedFile:
        return _file(self._folder(upload_id).file(path))

    def pictures(self, upload_id: str, *, after: str | None = None, limit: int = 100) -> Sequence[UploadedPicture]:
        self._stored(upload_id)
        return [
            UploadedPicture(path=one.entry.path, size=one.entry.size, caption=one.caption)
            for one in pictures_in(self._folder(upload_id).files, after=after, limit=limit)
        ]

    def thumbnail(self, upload_id: str, path: str, *, width: int = 256) -> Thumbnail:
        from stationmaster.station.local.thumbnails import MEDIA_TYPE, ThumbnailCache, require_size, scaled_down

        self._stored(upload_id)
        found = picture_at(self._folder(upload_id).files, path)
        # Of the place and the time of writing: the file's own hash would take reading it for every look.
        version = hashlib.sha256(f"{path}\n{found.identity}".encode()).hexdigest()
        kept = ThumbnailCache(self._settings.home / "thumbnails")
        data = kept.get(upload_id, version, width)
        if data is None:
            require_size(found.size)
            data = scaled_down(read_unchanged(found), width)
            kept.put(upload_id, version, width, data)
        return Thumbnail(data=data, media_type=MEDIA_TYPE, version=f"{version}-{width}")

    def write(
        self,
        upload_id: str,
        path: str,
        *,
        size: int,
        offset: int = 0,
        restart: bool = False,
        sha256: str | None = None,
    ) -> LocalFileWriter:
        stored = self._stored(upload_id)
        if stored.sha256 is not None:
            _require_announced(stored, path, size)
            sha256 = stored.sha256
        folder = self._folder(upload_id)
        about = folder.about()
        self._require_size(size)
        self._require_room(size - offset)
        piece = Piece(path=path, size=size, offset=offset, restart=restart, sha256=sha256)
        writer = PartWriter(folder, piece, charge=lambda count: self._charge(upload_id, count))
        return LocalFileWriter(self, folder, writer, self._rules(about.recipe, about.trigger))

    def remove_file(self, upload_id: str, path: str) -> None:
        self._charge(upload_id, -self._folder(upload_id).remove_file(path))

    def check(self, upload_id: str, *, recipe: str | None = None, trigger: str | None = None) -> DatasetReport:
        folder = self._folder(upload_id)
        about = folder.about()
        rules = self._rules(recipe or about.recipe, trigger or about.trigger)
        with open_dataset(folder.dataset(), most_bytes=self._limits.largest_dataset_bytes) as files:
            return validate.check(files, rules)

    def remove(self, upload_id: str) -> None:
        self._stored(upload_id)
        self._folder(upload_id).remove(forget=lambda: self._store.dataset_uploads.remove(upload_id))
        shutil.rmtree(self._settings.home / "thumbnails" / upload_id, ignore_errors=True)

    def require_room(self) -> None:
        """Raises DiskFull if uploads would take the disk space that is to stay free."""
        self._require_room(0)

    def _charge(self, upload_id: str, count: int) -> None:
        uploads = self._store.dataset_uploads
        if count <= 0:
            uploads.release(upload_id, -count)
            return
        most, of_owner = self._limits.largest_dataset_bytes, self._limits.dataset_bytes_per_user
        uploads.charge(upload_id, count, most=most, most_of_owner=of_owner)

    def _require_size(self, size: int) -> None:
        if size > self._limits.largest_dataset_bytes:
            raise TooLarge(f"a dataset may have {self._limits.largest_dataset_bytes:,} bytes")

    def _require_room(self, size: int) -> None:
        free, kept = shutil.disk_usage(self._settings.home).free, self._limits.free_disk_bytes
        if free - size < kept:
            raise DiskFull(
                f"the server has too little disk space: {free:,} bytes are free, {kept:,} are to stay free",
                hint="remove uploads that are not needed, or ask its administrator",
            )

    def _rules(self, recipe: str | None, trigger: str | None) -> DatasetRules:
        if recipe is None:
            return DatasetRules(trigger=trigger)
        found = find(recipe, folders=self._settings.recipes).recipe
        return rules_of(found.dataset, trigger=trigger, resolution=trained_resolution(found, {}))

    def _stored(self, upload_id: str) -> StoredUpload:
        self._folder(upload_id)
        found = self._store.dataset_uploads.find(upload_id)
        if found is None:
            raise no_such_upload(upload_id)
        return found

    def _folder(self, upload_id: str) -> UploadFolder:
        return UploadFolder(self._home, upload_id)

    def _shown(self, stored: StoredUpload) -> Upload | None:
        """None if its folder is gone, or is being removed at this moment."""
        folder = self._folder(stored.id)
        try:
            about, files, last_use = folder.about(), folder.listed(), folder.last_use()
        except NotFound:
            return None
        return Upload(
            id=stored.id,
            owner=stored.owner,
            name=stored.name,
            created_at=stored.created_at,
            expires_at=last_use + UNUSED_SECONDS,
            files=len(files),
            bytes=sum(file.received for file in files),
            is_complete=bool(files) and all(file.is_complete for file in files),
            recipe=about.recipe,
            trigger=about.trigger,
        )


class LocalFileWriter:
    """Takes the bytes of one file; when it is complete, it is checked."""

    def __init__(
        self, uploads: LocalDatasetUploads, folder: UploadFolder, writer: PartWriter, rules: DatasetRules
    ) -> None:
        self._uploads = uploads
        self._folder = folder
        self._writer = writer
        self._rules = rules

    def append(self, data: bytes) -> None:
        self._uploads.require_room()
        self._writer.append(data)

    def finish(self) -> UploadedFile:
        arrived = self._writer.finish()
        problems = check_arrived(self._folder.files, arrived.path, self._rules) if arrived.is_complete else ()
        return UploadedFile(
            path=arrived.path,
            received=arrived.received,
            size=arrived.size,
            is_complete=arrived.is_complete,
            problems=problems,
        )

    def close(self) -> None:
        self._writer.close()


def _require_name(name: str) -> None:
    if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(f"an upload's name has 1 to {_LONGEST_NAME} printable characters", hint="for example: cats")


def _require_announced(stored: StoredUpload, path: str, size: int) -> None:
    if size != stored.size or not is_archive(path):
        raise DatasetInvalid(
            f"upload {stored.id} is one archive of {stored.size:,} bytes, as announced",
            hint="begin another upload for other files",
        )


def _file(arrived: ArrivedFile) -> UploadedFile:
    return UploadedFile(
        path=arrived.path, received=arrived.received, size=arrived.size, is_complete=arrived.is_complete
    )
