"""The list of what a dataset holds: every file's path, size and SHA-256."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import NamedTuple

FORMAT = "stationmaster-dataset/1"


class FileRecord(NamedTuple):
    """One file; no dataclass, for the reason that an entry of a folder is none."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Files in packing order (by the bytes of their paths)."""

    files: tuple[FileRecord, ...]

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def fingerprint(self) -> str:
        """Equal for equal content, on any machine and whatever the archive's compression."""
        content = [[file.path, file.size, file.sha256] for file in self.files]
        canonical = json.dumps({"format": FORMAT, "files": content}, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """What is written beside an archive; the names are stable."""
        return {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "file_count": len(self.files),
            "total_bytes": self.total_bytes,
            "files": [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in self.files],
        }
