"""Copies a job's files from their locations to a folder of the person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from stationmaster.control.results.declared_files import has_safe_name
from stationmaster.datasets.sources.reference import BucketReference, parse_reference
from stationmaster.delivery.artifact_store import ArtifactStore, BucketArtifacts, FolderArtifacts
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.errors import NotFound, TransferFailed, UserError
from stationmaster.files import sha256_of
from stationmaster.model import Checkpoint
from stationmaster.recipes.outputs import is_safe_to_load
from stationmaster.recipes.schema import OutputKind
from stationmaster.settings import Settings
from stationmaster.station.local.file_errors import user_errors_of_files
from stationmaster.station.local.installation import Installation


class LocalArtifacts:
    def __init__(self, installation: Installation) -> None:
        self._settings = installation.settings
        self._store = installation.store

    def pull(self, job_id: str, target: Path) -> Sequence[Path]:
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
            return [copy_file(one, goal, self._settings) for one, goal in zip(safe, goals, strict=True)]


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


def target_paths(files: Sequence[Checkpoint], folder: Path) -> list[Path]:
    """The path of each copy in the folder: the path that the file had on the machine.

    Attempts may use the same names for different bytes, so all but the last have their own folder. Raises
    TransferFailed for names that lead out of the folder or occur twice: they come from untrusted machines.
    """
    last = max((file.attempt for file in files), default=0)
    found: dict[Path, Checkpoint] = {}
    for file in files:
        place = folder / ("" if file.attempt == last else f"attempt-{file.attempt}") / file.path
        if not has_safe_name(file.path) or place in found:
            raise TransferFailed(f"{file.path!r} is not a valid name of an output; nothing was copied")
        found[place] = file
    return list(found)


def require_no_links(place: Path, folder: Path) -> None:
    """Raises UserError if a folder between `folder` and `place` is a link: the copy would go elsewhere."""
    between = [parent for parent in place.parents if parent.is_relative_to(folder) and parent != folder]
    for parent in between:
        if parent.is_symlink():
            raise UserError(f"{parent} is a link that leads out of {folder}", hint="remove it, or choose another DIR")


def copy_file(file: Checkpoint, target: Path, settings: Settings) -> Path:
    """Copy the file to `target` and verify it. Raises TransferFailed if it has changed, and DeliveryError."""
    assert file.location is not None, "an available file has a location"
    assert file.sha256 is not None, "a verified file has a hash"
    with _open_location(file.location, settings) as (store, key):
        store.get(key, target, sha256=file.sha256)
    return target


@contextmanager
def _open_location(location: str, settings: Settings) -> Iterator[tuple[ArtifactStore, str]]:
    source = parse_reference(location)
    if isinstance(source, BucketReference):
        with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
            yield BucketArtifacts(bucket), source.key
    else:
        yield FolderArtifacts(Path(location).parent), Path(location).name
