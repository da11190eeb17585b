"""Files of a Hub repository: those we want there, and those that the Hub reports."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file that should be in a repository: its `path`, or the `content` of a small one."""

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
        """Whether the Hub's file has exactly this content."""
        if entry is None or entry.size != self.size:
            return False
        if entry.sha256 is not None:
            return entry.sha256 == self.sha256
        return self.content is not None and entry.blob == _blob_id(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEntry:
    """A file as the Hub reports it: LFS objects by SHA-256, small files by their git blob id."""

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
