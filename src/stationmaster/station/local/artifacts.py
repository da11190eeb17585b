"""A job's files, from where they are stored: listed, opened, shown small, copied to a folder of the person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from stationmaster.control.publishing.samples import SamplePrompt, prompts_of_samples
from stationmaster.datasets.sources.reference import BucketReference, parse_reference
from stationmaster.delivery.artifact_store import ArtifactStore, BucketArtifacts, FolderArtifacts
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.errors import NotFound
from stationmaster.files import sha256_of
from stationmaster.model import Checkpoint
from stationmaster.recipes.outputs import is_safe_to_load
from stationmaster.recipes.schema import OutputKind
from stationmaster.settings import Settings
from stationmaster.station.artifacts import Artifact, Progress, StoredFile, Thumbnail
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.stored_files import bucket_file, local_file
from stationmaster.station.pulled_tree import require_no_links, target_paths
from stationmaster.station.stored_file import shifted


class LocalArtifacts:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings
        self._store = installation.store

    def listed(self, job_id: str) -> Sequence[Artifact]:
        job = self._store.jobs.get(job_id)
        files = self._store.checkpoints.of_job(job_id)
        prompts = prompts_of_samples(job, files)
        steps = {one.step for one in files if one.step is not None and one.kind == OutputKind.CHECKPOINT}
        losses = self._store.readings.losses_at(job_id, steps) if steps else {}
        return [
            replace(
                _artifact(one, self._settings, prompts.get((one.attempt, one.path))),
                loss=losses.get((one.attempt, one.step)) if one.step is not None else None,
            )
            for one in files
            if is_for_people(one)
        ]

    def file(self, job_id: str, path: str, *, attempt: int | None = None) -> StoredFile:
        return self._open(job_id, self._find(job_id, path, attempt))

    def thumbnail(self, job_id: str, path: str, *, attempt: int | None = None, width: int = 256) -> Thumbnail:
        from stationmaster.station.local.thumbnails import (  # loads Pillow, which nothing else here needs
            MEDIA_TYPE,
            ThumbnailCache,
            require_size,
            scaled_down,
        )

        found = self._find(job_id, path, attempt)
        assert found.sha256 is not None, "a verified file has a hash"
        kept = ThumbnailCache(self._settings.home / "thumbnails")
        data = kept.get(job_id, found.sha256, width)
        if data is None:
            require_size(found.size)
            data = scaled_down(self._open(job_id, found).whole(), width)
            kept.put(job_id, found.sha256, width, data)
        return Thumbnail(data=data, media_type=MEDIA_TYPE, version=f"{found.sha256}-{width}")

    def pull(self, job_id: str, target: Path, *, progress: Progress | None = None) -> Sequence[Path]:
        files = self._store.checkpoints.of_job(job_id)
        safe = [one for one in files if is_for_people(one) and is_available(one, self._settings)]
        if not safe:
            raise NotFound(
                f"job {job_id} has no downloaded files yet", hint=f"check its state: stationmaster show {job_id}"
            )
        goals = target_paths(safe, target)
        with user_errors_of_files("choose a folder that you can write to"):
            for goal in goals:
                require_no_links(goal, target)
            done, total = 0, sum(one.size for one in safe)
            for one, goal in zip(safe, goals, strict=True):
                copy_file(one, goal, self._settings, progress=shifted(progress, done=done, total=total))
                done += one.size
            return goals

    def _find(self, job_id: str, path: str, attempt: int | None) -> Checkpoint:
        """The file by its exact name among those that are stored: no path is made of what a person typed."""
        files = [one for one in self._store.checkpoints.of_job(job_id) if is_for_people(one) and one.path == path]
        wanted = [one for one in files if attempt is None or one.attempt == attempt]
        if not wanted:
            raise NotFound(f"job {job_id} has no file {path}", hint=f"stationmaster show {job_id} --json lists them")
        there = [one for one in wanted if is_available(one, self._settings)]
        if there:
            return there[-1]
        if wanted[-1].location is None or wanted[-1].verified_at is None:
            raise NotFound(f"{path} has not been downloaded from its machine", hint="try again when the job has ended")
        raise NotFound(f"{path} is not stored here", hint=f"it is at {wanted[-1].location}")

    def _open(self, job_id: str, file: Checkpoint) -> StoredFile:
        assert file.location is not None, "an available file has a location"
        assert file.sha256 is not None, "a verified file has a hash"
        name, source = PurePosixPath(file.path).name, parse_reference(file.location)
        if isinstance(source, BucketReference):
            return bucket_file(source, self._settings, name=name, size=file.size, sha256=file.sha256)
        _require_no_links(Path(file.location), self._settings.home / "jobs" / job_id)
        return local_file(Path(file.location), name=name, size=file.size, sha256=file.sha256)


def _artifact(file: Checkpoint, settings: Settings, prompt: SamplePrompt | None) -> Artifact:
    return Artifact(
        attempt=file.attempt,
        path=file.path,
        kind=file.kind,
        size=file.size,
        step=file.step,
        sha256=file.sha256,
        verified=file.verified_at is not None,
        is_available=is_available(file, settings),
        prompt_number=None if prompt is None else prompt.number,
        prompt=None if prompt is None else prompt.text,
    )


def _require_no_links(place: Path, folder: Path) -> None:
    """Raises NotFound if a part of the way from the job's folder to the file is a link: it may lead anywhere."""
    if any(parent.is_symlink() for parent in place.parents if parent.is_relative_to(folder)):
        raise NotFound(f"{place.name} is not a file of the job: a folder of its path is a link")


def is_available(file: Checkpoint, settings: Settings) -> bool:
    """Whether it was verified in a place that we can read: locally, or in a bucket that our key opens."""
    if file.location is None or file.verified_at is None:
        return False
    if file.location.startswith("s3://"):
        return settings.bucket.access_key is not None
    return "://" not in file.location


def is_for_people(file: Checkpoint) -> bool:
    """Whether it is of use outside the trainer."""
    return file.kind != OutputKind.STATE


def is_resumable(file: Checkpoint) -> bool:
    """Whether a training may resume from it on another machine: code from one stranger's machine must not run there."""
    return file.kind == OutputKind.CHECKPOINT and is_safe_to_load(file.path)


def state_beside(best: Checkpoint, files: Sequence[Checkpoint]) -> Checkpoint | None:
    """The trainer state saved with exactly this checkpoint, if its local copy is unchanged."""
    states = (one for one in files if one.kind == OutputKind.STATE and one.verified_at is not None)
    fitting = (one for one in states if best.step is not None and (one.attempt, one.step) == (best.attempt, best.step))
    return next((one for one in fitting if one.location is not None and _is_unchanged(Path(one.location), one)), None)


def _is_unchanged(place: Path, file: Checkpoint) -> bool:
    """Compare the hash: a worker that dies while it downloads the next state leaves that one under this name."""
    return place.is_file() and sha256_of(place) == file.sha256


def copy_file(file: Checkpoint, target: Path, settings: Settings, *, progress: Progress | None = None) -> Path:
    """Copy the file to `target` and verify it. Raises TransferFailed if it has changed, and DeliveryError."""
    assert file.location is not None, "an available file has a location"
    assert file.sha256 is not None, "a verified file has a hash"
    with _open_location(file.location, settings) as (store, key):
        store.get(key, target, sha256=file.sha256, progress=progress)
    return target


@contextmanager
def _open_location(location: str, settings: Settings) -> Iterator[tuple[ArtifactStore, str]]:
    source = parse_reference(location)
    if isinstance(source, BucketReference):
        with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
            yield BucketArtifacts(bucket), source.key
    else:
        yield FolderArtifacts(Path(location).parent), Path(location).name
