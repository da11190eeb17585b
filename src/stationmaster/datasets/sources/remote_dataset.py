"""What every place that datasets are fetched from promises."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class DigestKind(StrEnum):
    SHA256 = "sha256"
    MD5 = "md5"
    GIT_BLOB = "git_blob"  # SHA-1 over git's own header and the content


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file as its place describes it. `version` differs when the content does."""

    path: str  # below the dataset's own folder; not to be trusted
    key: str  # how its place calls it
    size: int
    version: str
    digest_kind: DigestKind | None = None
    digest: str | None = None

    def new_digest(self) -> Any:
        """A running hash of the kind that the place told, or None."""
        match self.digest_kind:
            case DigestKind.SHA256:
                return hashlib.sha256()
            case DigestKind.MD5:
                return hashlib.md5(usedforsecurity=False)
            case DigestKind.GIT_BLOB:
                return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
            case None:
                return None


class RemoteDataset(Protocol):
    """One dataset somewhere else. Raises DeliveryRefused and DeliveryBusy."""

    def listed(self) -> Sequence[RemoteFile]:
        """Everything it holds; empty when there is no such dataset."""

    def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
        """The file's bytes from `offset` on."""

    def digest_is_of_content(self, file: RemoteFile) -> bool:
        """Whether a digest that the bytes do not have shows that they are wrong; asked only then."""
