"""The interface of remote datasets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class DigestKind(StrEnum):
    SHA256 = "sha256"
    MD5 = "md5"
    GIT_BLOB = "git_blob"  # SHA-1 over git's header and the content


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file as the service reports it. `version` changes with the content."""

    path: str  # relative to the dataset; untrusted
    key: str  # the service's name for it
    size: int
    version: str
    digest_kind: DigestKind | None = None
    digest: str | None = None

    def new_digest(self) -> Any:
        """A new hash of the kind that the service reports; None if it reports no digest."""
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
    """One dataset in a bucket or on the Hub. Raises DeliveryRefused and DeliveryBusy."""

    def listed(self) -> Sequence[RemoteFile]:
        """All of its files; empty if there is no such dataset."""

    def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
        """The file's bytes from `offset` on."""

    def digest_is_of_content(self, file: RemoteFile) -> bool:
        """Whether a mismatch of the digest proves wrong content; only called after a mismatch."""
