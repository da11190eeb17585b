"""Files of the Hub's repositories: as they should be there, and as the Hub describes what it has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file to be in a repository: one that lies at `path`, or a small one with its content."""

    name: str
    size: int
    sha256: str
    path: str | None = None
    content: bytes | None = None

    @staticmethod
    def of_text(name: str, text: str) -> HubFile:
        content = text.encode()
        return HubFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest(), content=content)

    def is_at(self, entry: HubEntry | None) -> bool:
        """Whether what the Hub has is this very content."""
        if entry is None or entry.size != self.size:
            return False
        if entry.sha256 is not None:
            return entry.sha256 == self.sha256
        return self.content is not None and entry.blob == _blob_id(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEntry:
    """A file as the Hub describes it: LFS objects by their SHA-256, small files by git's own id."""

    size: int
    sha256: str | None
    blob: str | None

    @staticmethod
    def of_document(entry: Mapping[str, Any]) -> HubEntry:
        lfs = entry.get("lfs")
        return HubEntry(
            size=int(entry["size"]),
            sha256=str(lfs["oid"]) if lfs else None,
            blob=None if lfs else str(entry.get("oid")),
        )


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
