"""The files of a user's own jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stationmaster.model import Caller
from stationmaster.station.artifacts import Artifact, Artifacts, Progress, StoredFile, Thumbnail
from stationmaster.station.jobs import Jobs
from stationmaster.station.owned.rights import own_job


class OwnedArtifacts:
    def __init__(self, caller: Caller, artifacts: Artifacts, jobs: Jobs) -> None:
        self._caller = caller
        self._all = artifacts
        self._jobs = jobs

    def listed(self, job_id: str) -> Sequence[Artifact]:
        return self._all.listed(self._own(job_id))

    def file(self, job_id: str, path: str, *, attempt: int | None = None) -> StoredFile:
        return self._all.file(self._own(job_id), path, attempt=attempt)

    def thumbnail(self, job_id: str, path: str, *, attempt: int | None = None, width: int = 256) -> Thumbnail:
        return self._all.thumbnail(self._own(job_id), path, attempt=attempt, width=width)

    def pull(self, job_id: str, target: Path, *, progress: Progress | None = None) -> Sequence[Path]:
        return self._all.pull(self._own(job_id), target, progress=progress)

    def _own(self, job_id: str) -> str:
        return own_job(self._caller, self._jobs, job_id).id
