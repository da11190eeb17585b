"""Uploads of datasets: whose they are, and how many bytes count against the owner's limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from stationmaster.errors import TooLarge, UserError
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.tables import dataset_uploads


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUpload:
    id: str
    owner: str
    name: str
    created_at: float
    charged_bytes: int = 0
    sha256: str | None = None
    size: int | None = None


class DatasetUploads:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self, upload_id: str, *, owner: str, name: str, sha256: str | None = None, size: int | None = None
    ) -> StoredUpload:
        row = {"id": upload_id, "owner": owner, "name": name, "charged_bytes": 0, "sha256": sha256, "size": size}
        with self._database.write() as connection:
            connection.execute(dataset_uploads.insert().values(**row, created_at=self._database.now))
        found = self.find(upload_id)
        assert found is not None
        return found

    def find(self, upload_id: str) -> StoredUpload | None:
        found = self._select(sa.select(dataset_uploads).where(dataset_uploads.c.id == upload_id))
        return found[0] if found else None

    def same(self, owner: str, *, sha256: str, size: int) -> Sequence[StoredUpload]:
        """The owner's uploads of the same archive, newest first."""
        wanted = (dataset_uploads.c.owner == owner, dataset_uploads.c.sha256 == sha256, dataset_uploads.c.size == size)
        return self._select(sa.select(dataset_uploads).where(*wanted).order_by(dataset_uploads.c.created_at.desc()))

    def of_owner(self, owner: str, *, after: str | None, limit: int) -> Sequence[StoredUpload]:
        """Newest first; `after` is the id of the last one of the page before. Raises UserError if it is not one."""
        at, key = dataset_uploads.c.created_at, dataset_uploads.c.id
        query = sa.select(dataset_uploads).where(dataset_uploads.c.owner == owner)
        if after is not None:
            last = self.find(after)
            if last is None or last.owner != owner:
                raise UserError("after: this upload is not in the list", hint="begin with the first page")
            query = query.where(sa.tuple_(at, key) < sa.tuple_(sa.literal(last.created_at), sa.literal(last.id)))
        return self._select(query.order_by(at.desc(), key.desc()).limit(limit))

    def charge(self, upload_id: str, count: int, *, most: int, most_of_owner: int) -> None:
        """Add to the bytes received. Raises TooLarge if the upload or its owner would have more than allowed."""
        with self._database.write() as connection:
            owner = sa.select(dataset_uploads.c.owner).where(dataset_uploads.c.id == upload_id).scalar_subquery()
            query = sa.select(dataset_uploads).where(dataset_uploads.c.owner == owner)
            query = query.order_by(dataset_uploads.c.id).with_for_update()  # one order, so that none wait in a circle
            charged = {row["id"]: int(row["charged_bytes"]) for row in connection.execute(query).mappings()}
            if charged.get(upload_id, 0) + count > most:
                raise TooLarge(
                    f"a dataset may have {most:,} bytes",
                    hint="leave out what is not trained on; serve.largest_dataset_bytes is the limit",
                )
            if sum(charged.values()) + count > most_of_owner:
                raise TooLarge(
                    f"all uploads of a user may have {most_of_owner:,} bytes",
                    hint="remove uploads that are not needed: DELETE /api/datasets/ID",
                )
            self._add(connection, upload_id, count)

    def release(self, upload_id: str, count: int) -> None:
        with self._database.write() as connection:
            self._add(connection, upload_id, -count)

    def recount(self, upload_id: str, count: int) -> None:
        """What is charged for an upload is this many bytes, whatever was counted before."""
        with self._database.write() as connection:
            row = dataset_uploads.update().where(dataset_uploads.c.id == upload_id)
            connection.execute(row.where(dataset_uploads.c.charged_bytes != count).values(charged_bytes=count))

    def remove(self, upload_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(dataset_uploads.delete().where(dataset_uploads.c.id == upload_id))

    def _add(self, connection: sa.Connection, upload_id: str, count: int) -> None:
        row = dataset_uploads.update().where(dataset_uploads.c.id == upload_id)
        connection.execute(row.values(charged_bytes=dataset_uploads.c.charged_bytes + count))

    def _select(self, query: sa.Select[tuple[object, ...]]) -> list[StoredUpload]:
        with self._database.read() as connection:
            return [known_fields(StoredUpload, dict(row)) for row in connection.execute(query).mappings()]
