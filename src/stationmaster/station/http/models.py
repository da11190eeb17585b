"""The catalogue of a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from stationmaster.control.results.declared_files import has_safe_name
from stationmaster.errors import NotFound, TransferFailed
from stationmaster.model import TrainedModel
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.http.downloads import remote_file, save_file
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.models import ModelCursor
from stationmaster.station.stored_file import Progress, StoredFile
from stationmaster.station.wire.models import ModelDocument, cursor_text

_PAGE = 500


class HttpModels:
    """The server lists only what the caller may see, so `owner` chooses among those."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def listed(
        self, *, owner: str | None = None, limit: int = 1000, after: ModelCursor | None = None
    ) -> Sequence[TrainedModel]:
        begin = None if after is None else cursor_text(*after)
        found = self._connection.items(
            "/api/models", ModelDocument, most=limit, limit=min(limit, _PAGE), owner=owner, after=begin
        )
        return [each.value() for each in found]

    def find(self, reference: str, *, owner: str | None = None) -> TrainedModel:
        return self._connection.get(_path(reference), ModelDocument, owner=owner).value()

    def publish(self, reference: str) -> TrainedModel:
        return self._connection.post(f"{_path(reference)}/publish", ModelDocument, patient=True).value()

    def file(self, reference: str) -> StoredFile:
        return self._open(self.find(reference))

    def download(self, reference: str, target: Path, *, progress: Progress | None = None) -> Path:
        model = self.find(reference)
        if not has_safe_name(model.file_name) or PurePosixPath(model.file_name).name != model.file_name:
            raise TransferFailed(f"{model.file_name!r} is not a valid name of a file; nothing was downloaded")
        with user_errors_of_files("choose a folder that you can write to"):
            target.mkdir(parents=True, exist_ok=True)
            save_file(self._open(model), target / model.file_name, progress=progress)
        return target / model.file_name

    def _open(self, model: TrainedModel) -> StoredFile:
        address = f"{_path(model.slug)}/file"
        return remote_file(self._connection, address, {}, name=model.file_name, size=model.size, sha256=model.sha256)


def _path(reference: str) -> str:
    """Raises NotFound for what no address can hold; no model has such a name."""
    if reference in ("", ".", ".."):
        raise NotFound(f"there is no model {reference}", hint="run `stationmaster models list` to see them")
    return f"/api/models/{segment(reference)}"
