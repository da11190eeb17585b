"""The content of the test Hub: repositories with commits, files with their hashes, and who may see them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

#: The Hub keeps files with these endings as LFS objects, and others above this size.
LFS_ENDINGS = (".safetensors", ".bin", ".tar", ".gz", ".zip", ".png", ".jpg", ".jpeg", ".webp", ".parquet")
LFS_ABOVE_BYTES = 10 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """One file of a commit. `content` is None where it came in chunks of xet, which this Hub cannot read."""

    content: bytes | None
    size: int
    oid: str
    is_lfs: bool

    @property
    def etag(self) -> str:
        return self.oid


@dataclass(slots=True, kw_only=True)
class HubRepo:
    """A repository with all its commits; the last one is `main`."""

    kind: str
    id: str
    private: bool = False
    #: Names of the users whose request for access was granted; None: not gated.
    granted: frozenset[str] | None = None
    #: The front matter of its card, as the Hub tells it.
    card: dict[str, object] = field(default_factory=dict)
    commits: list[tuple[str, dict[str, HubFile]]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.commit({}, message="initial commit")

    @property
    def owner(self) -> str:
        return self.id.partition("/")[0]

    @property
    def head(self) -> str:
        return self.commits[-1][0]

    def files(self, revision: str = "main") -> dict[str, HubFile] | None:
        """The files of that revision; None when there is no such revision."""
        if revision == "main":
            return self.commits[-1][1]
        return next((files for sha, files in self.commits if sha == revision), None)

    def sha_of(self, revision: str) -> str:
        return self.head if revision == "main" else revision

    def commit(self, changes: Mapping[str, HubFile | None], *, message: str) -> str:
        """A new commit with these files; None takes one away."""
        files = dict(self.commits[-1][1]) if self.commits else {}
        for path, file in changes.items():
            if file is None:
                files.pop(path, None)
            else:
                files[path] = file
        sha = hashlib.sha1(f"{self.kind}/{self.id}/{len(self.commits)}".encode()).hexdigest()
        self.commits.append((sha, files))
        self.messages.append(message)
        return sha


def is_lfs(path: str, size: int) -> bool:
    return size > LFS_ABOVE_BYTES or path.lower().endswith(LFS_ENDINGS)


def plain_file(content: bytes) -> HubFile:
    """A file in git itself: its id is that of a git blob."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return HubFile(content=content, size=len(content), oid=blob, is_lfs=False)


def lfs_file(content: bytes) -> HubFile:
    return HubFile(content=content, size=len(content), oid=hashlib.sha256(content).hexdigest(), is_lfs=True)


def hub_file(path: str, content: bytes) -> HubFile:
    return lfs_file(content) if is_lfs(path, len(content)) else plain_file(content)
