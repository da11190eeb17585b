"""A dataset in a bucket: the objects below a prefix, or one archive."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import Protocol

from stationmaster.datasets.sources.remote_dataset import DigestKind, RemoteFile
from stationmaster.datasets.tree import MAX_ENTRIES

_MD5 = re.compile(r"[0-9a-f]{32}")


class BucketObject(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def etag(self) -> str: ...
    @property
    def etag_is_md5(self) -> bool: ...


class ReadableBucket(Protocol):
    """The methods of a bucket that are used here; `delivery` may not be imported."""

    def listed(self, prefix: str = "") -> Iterator[BucketObject]: ...
    def head(self, key: str) -> BucketObject | None: ...
    def read(self, key: str, *, offset: int = 0, etag: str | None = None) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketDataset:
    """A `RemoteDataset`; `key` is a folder-like prefix, or the key of one object."""

    bucket: ReadableBucket
    key: str

    def listed(self) -> Sequence[RemoteFile]:
        prefix = f"{self.key}/" if self.key else ""
        listed = islice(self.bucket.listed(prefix), MAX_ENTRIES + 1)  # one more shows that there are too many
        below = [one for one in listed if not one.key.endswith("/")]
        if below or not self.key:
            return [_file(one, one.key.removeprefix(prefix)) for one in below]
        single = self.bucket.head(self.key)
        return [] if single is None else [_file(single, PurePosixPath(self.key).name)]

    def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
        return self.bucket.read(file.key, offset=offset, etag=file.version)

    def digest_is_of_content(self, file: RemoteFile) -> bool:
        """False for an object encrypted with a customer-managed key: its ETag does not depend on its content."""
        found = self.bucket.head(file.key)
        return found is None or found.etag != file.version or found.etag_is_md5


def _file(one: BucketObject, path: str) -> RemoteFile:
    is_md5 = _MD5.fullmatch(one.etag) is not None
    return RemoteFile(
        path=path,
        key=one.key,
        size=one.size,
        version=one.etag,
        digest_kind=DigestKind.MD5 if is_md5 else None,
        digest=one.etag if is_md5 else None,
    )
