"""Copies of a job's files for people, from wherever each of them is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stationmaster.datasets.sources.reference import BucketSource, parse_source
from stationmaster.delivery.artifact_store import ArtifactStore, BucketStore, FolderStore
from stationmaster.delivery.r2 import open_other_bucket
from stationmaster.model import Checkpoint
from stationmaster.recipes.outputs import is_safe_to_load
from stationmaster.recipes.schema import OutputKind
from stationmaster.settings import Settings


def can_be_had(file: Checkpoint, settings: Settings) -> bool:
    """Whether it was verified somewhere that can be read from here: at home, or in a bucket of our key's."""
    if file.location is None or file.verified_at is None:
        return False
    if file.location.startswith("s3://"):
        return settings.bucket.access_key is not None
    return "://" not in file.location


def is_resumable(file: Checkpoint) -> bool:
    """Whether a training may go on from it elsewhere: what one stranger's machine wrote must not run on another."""
    return file.kind == OutputKind.CHECKPOINT and is_safe_to_load(file.path)


def copied(file: Checkpoint, target: Path, settings: Settings) -> Path:
    """`target` is a verified copy of the file. Raises TransferFailed where it has changed, and DeliveryError."""
    assert file.location is not None, "a file that can be had has a place"
    assert file.sha256 is not None, "what was verified has a hash"
    with _kept_at(file.location, settings) as (store, key):
        store.get(key, target, sha256=file.sha256)
    return target


@contextmanager
def _kept_at(location: str, settings: Settings) -> Iterator[tuple[ArtifactStore, str]]:
    source = parse_source(location)
    if isinstance(source, BucketSource):
        with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
            yield BucketStore(bucket), source.key
    else:
        yield FolderStore(Path(location).parent), Path(location).name
