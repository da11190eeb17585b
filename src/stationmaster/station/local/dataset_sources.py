"""Finds a dataset: on this computer, uploaded to it, or downloaded from a bucket or the Hub into its cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.datasets.archive_reader import open_dataset
from stationmaster.datasets.sources.bucket_dataset import BucketDataset
from stationmaster.datasets.sources.cache import Progress, fetch_into_cache
from stationmaster.datasets.sources.hub_dataset import HubDataset
from stationmaster.datasets.sources.reference import BucketReference, DatasetReference, HubReference, UploadReference
from stationmaster.datasets.uploads.folder import UploadFolder
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDataset:
    """A folder or archive on this computer; `source` is where it came from: for the Hub with its commit, for an upload
    with its name.
    """

    path: Path
    source: str
    name: str | None = None  # of an upload: its reference does not say it
    most_bytes: int | None = None  # that an archive may unpack to

    def opened(self) -> AbstractContextManager[Path]:
        """The folder with its files. Raises as `open_dataset`."""
        return open_dataset(self.path, most_bytes=self.most_bytes)


def fetch_dataset(source: DatasetReference, settings: Settings, *, progress: Progress | None = None) -> LocalDataset:
    """Download a remote dataset into the cache, only what changed; a local path or an upload is used as it is.

    Raises NotFound, DatasetInvalid, DiskFull, ConfigInvalid, DeliveryRefused, DeliveryBusy.
    """
    cache = settings.home / "datasets" / "sources"
    match source:
        case BucketReference():
            with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
                files = BucketDataset(bucket=bucket, key=source.key)
                return LocalDataset(
                    path=fetch_into_cache(files, str(source), cache, progress=progress), source=str(source)
                )
        case HubReference():
            token = settings.hf_token.get_secret_value() if settings.hf_token is not None else None
            hub = HubDataset(url=settings.hub.url, repository=source.repository, revision=source.revision, token=token)
            with closing(hub):
                exact = str(HubReference(repository=source.repository, revision=hub.commit))
                return LocalDataset(path=fetch_into_cache(hub, str(source), cache, progress=progress), source=exact)
        case UploadReference():
            folder = UploadFolder(uploads_of(settings), source.id)
            label = folder.about().name
            return LocalDataset(
                path=folder.dataset(),
                source=UploadReference(id=source.id, label=label).described,
                name=label,
                most_bytes=settings.serve.largest_dataset_bytes,
            )
        case Path():
            return LocalDataset(path=source, source=str(source.absolute()))


def uploads_of(settings: Settings) -> Path:
    """The folder of the datasets that were uploaded to this computer."""
    return settings.home / "uploads"


@contextmanager
def open_source(source: DatasetReference, settings: Settings, *, progress: Progress | None = None) -> Iterator[Path]:
    """The local folder with the dataset's files; downloads and unpacks it if needed. Raises as `fetch_dataset`."""
    with fetch_dataset(source, settings, progress=progress).opened() as folder:
        yield folder
