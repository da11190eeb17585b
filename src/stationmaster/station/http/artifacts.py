"""The files of jobs on a server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from stationmaster.errors import NotFound
from stationmaster.station.artifacts import Artifact, Progress, StoredFile, Thumbnail
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.downloads import remote_file, save_file
from stationmaster.station.http.jobs import path_of_job
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.pulled_tree import require_no_links, target_paths
from stationmaster.station.stored_file import shifted
from stationmaster.station.wire.artifacts import ArtifactDocument


class HttpArtifacts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def listed(self, job_id: str) -> Sequence[Artifact]:
        found = self._connection.items(f"{path_of_job(job_id)}/artifacts", ArtifactDocument, exact=True)
        return [each.value() for each in found]

    def file(self, job_id: str, path: str, *, attempt: int | None = None) -> StoredFile:
        same = [each for each in self.listed(job_id) if each.path == path and attempt in (None, each.attempt)]
        there = [each for each in same if each.is_available]
        if not there:  # the server says why
            self._connection.send("HEAD", _address(job_id, path), parameters={"attempt": attempt, "exact": True})
            raise NotFound(f"job {job_id} has no file {path}", hint=f"stationmaster show {job_id} --json lists them")
        return self._open(job_id, there[-1])

    def thumbnail(self, job_id: str, path: str, *, attempt: int | None = None, width: int = 256) -> Thumbnail:
        address = f"{path_of_job(job_id)}/thumbnails/{quote(path)}"
        parameters = {"attempt": attempt, "width": width, "exact": True}
        found = self._connection.send("GET", address, parameters=parameters, headers={"Accept": "image/webp"})
        version = found.headers.get("etag", "").strip('"')
        return Thumbnail(data=found.content, media_type=found.headers["content-type"], version=version)

    def pull(self, job_id: str, target: Path, *, progress: Progress | None = None) -> Sequence[Path]:
        files = [each for each in self.listed(job_id) if each.is_available]
        if not files:
            raise NotFound(
                f"job {job_id} has no downloaded files yet", hint=f"check its state: stationmaster show {job_id}"
            )
        goals = target_paths(files, target)
        with user_errors_of_files("choose a folder that you can write to"):
            for goal in goals:
                require_no_links(goal, target)
            done, total = 0, sum(file.size for file in files)
            for file, goal in zip(files, goals, strict=True):
                save_file(self._open(job_id, file), goal, progress=shifted(progress, done=done, total=total))
                done += file.size
        return goals

    def _open(self, job_id: str, file: Artifact) -> StoredFile:
        assert file.sha256 is not None, "an available file has a hash"
        name = PurePosixPath(file.path).name
        parameters = {"attempt": file.attempt, "exact": True}
        address = _address(job_id, file.path)
        return remote_file(self._connection, address, parameters, name=name, size=file.size, sha256=file.sha256)


def _address(job_id: str, path: str) -> str:
    return f"{path_of_job(job_id)}/artifacts/{quote(path)}"
