"""Datasets from elsewhere: brought to the cache at home, or pulled by the machine itself with signed addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.datasets.source import opened
from stationmaster.datasets.sources.bucket_files import BucketFiles
from stationmaster.datasets.sources.cache import Progress, fetched
from stationmaster.datasets.sources.hub_files import HubFiles
from stationmaster.datasets.sources.reference import BucketSource, HubSource, Source
from stationmaster.delivery.bucket import open_other_bucket
from stationmaster.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDataset:
    """A dataset that lies here: a folder or an archive; `source` is where it came from, as exactly as is known."""

    path: Path
    source: str


def fetch_dataset(source: Source, settings: Settings, *, progress: Progress | None = None) -> LocalDataset:
    """The dataset at home; one from elsewhere is fetched into the cache, or only compared with what it has.

    Raises NotFound, DatasetInvalid, DiskFull, ConfigInvalid, DeliveryRefused, DeliveryBusy.
    """
    cache = settings.home / "datasets" / "sources"
    match source:
        case BucketSource():
            with closing(open_other_bucket(settings.bucket, source.bucket)) as bucket:
                files = BucketFiles(objects=bucket, key=source.key)
                return LocalDataset(path=fetched(files, str(source), cache, progress=progress), source=str(source))
        case HubSource():
            token = settings.hf_token.get_secret_value() if settings.hf_token is not None else None
            hub = HubFiles(url=settings.hub.url, repository=source.repository, revision=source.revision, token=token)
            with closing(hub):
                exact = str(HubSource(repository=source.repository, revision=hub.commit))
                return LocalDataset(path=fetched(hub, str(source), cache, progress=progress), source=exact)
        case Path():
            return LocalDataset(path=source, source=str(source.absolute()))


@contextmanager
def open_source(source: Source, settings: Settings, *, progress: Progress | None = None) -> Iterator[Path]:
    """The folder that holds the dataset, wherever it is. Raises as `fetch_dataset` does."""
    path = source if isinstance(source, Path) else fetch_dataset(source, settings, progress=progress).path
    with opened(path) as folder:
        yield folder
