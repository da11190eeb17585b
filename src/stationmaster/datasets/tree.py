"""Lists a dataset folder without following links out of it or opening anything that could block."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from stationmaster.errors import DatasetInvalid, NotFound

MAX_ENTRIES = 500_000
# O_NONBLOCK: must not hang if a file was replaced by a pipe; the identity check then detects it.
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_JUNK = frozenset({"thumbs.db", "desktop.ini", "__macosx"})  # created by file managers, as dot files are


class TreeEntryKind(StrEnum):
    FILE = "file"  # a file, or a link to a file inside the same folder
    HIDDEN = "hidden"  # a dot file or folder, or a file manager's own file; never packed
    LINK_OUT = "link_out"  # a link out of the folder
    LINK_BROKEN = "link_broken"  # a broken link
    LINK_TO_FOLDER = "link_to_folder"  # could form a loop
    SPECIAL = "special"  # socket, pipe, device
    UNREADABLE = "unreadable"  # no permission to list or read it


class TreeEntry(NamedTuple):
    """One entry of the folder. `path` is relative, with `/` between its parts.

    A NamedTuple, because there may be hundreds of thousands and it is created three times as fast as a dataclass.
    """

    path: str
    kind: TreeEntryKind
    source: str
    size: int = 0
    identity: tuple[int, ...] = ()  # device, inode, size, mtime: detects a changed or replaced file

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def stem(self) -> str:
        """The path without its last suffix: what an image and its caption share."""
        return os.path.splitext(self.path)[0]  # noqa: PTH122 - Path would normalise hostile names

    @property
    def suffix(self) -> str:
        return os.path.splitext(self.name)[1].lower()  # noqa: PTH122


def scan(folder: Path) -> tuple[TreeEntry, ...]:
    """All entries below `folder`, ordered by the bytes of the path. Raises NotFound and DatasetInvalid."""
    try:
        root = folder.resolve(strict=True)
    except (OSError, RuntimeError) as exc:
        raise NotFound(
            f"there is no dataset folder {shown(str(folder))}", hint="check the path of the dataset"
        ) from exc
    if not root.is_dir():
        raise DatasetInvalid(
            f"{shown(str(folder))} is not a folder", hint="pass a folder of images and captions, or a .tar or .zip file"
        )
    return tuple(sorted(_bounded(_walk(root), root), key=lambda entry: os.fsencode(entry.path)))


def entry_of(root: Path, path: str) -> TreeEntry:
    """One file below a folder that contains no links."""
    source = f"{root}/{path}"
    return _entry(path, source, os.lstat(source))


def files_of(entries: Iterable[TreeEntry]) -> tuple[TreeEntry, ...]:
    """The entries that are packed and trained on."""
    return tuple(entry for entry in entries if entry.kind is TreeEntryKind.FILE)


def open_unchanged(entry: TreeEntry) -> BufferedReader:
    """Open the file. Raises DatasetInvalid if it changed or was replaced since the scan; never blocks."""
    descriptor = _open(entry)
    file = os.fdopen(descriptor, "rb")
    if identity_of(os.fstat(descriptor)) != entry.identity:
        file.close()
        raise changed(entry)
    return file


def read_unchanged(entry: TreeEntry) -> bytes:
    """Read a small file; raises as `open_unchanged` does."""
    descriptor = _open(entry)
    try:
        data = os.read(descriptor, entry.size + 1)
        # Checked after reading: a write in between changes the time or size.
        if len(data) != entry.size or identity_of(os.fstat(descriptor)) != entry.identity:
            raise changed(entry)
    except OSError as exc:
        raise _unreadable(entry, exc) from exc
    finally:
        os.close(descriptor)
    return data


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def changed(entry: TreeEntry) -> DatasetInvalid:
    return DatasetInvalid(
        f"{shown(entry.path)} changed while it was being read",
        hint="wait until nothing writes to the dataset folder, then try again",
    )


def _open(entry: TreeEntry) -> int:
    try:
        return os.open(entry.source, _OPEN_FLAGS)
    except FileNotFoundError as exc:
        raise changed(entry) from exc
    except OSError as exc:
        raise _unreadable(entry, exc) from exc


def _unreadable(entry: TreeEntry, exc: OSError) -> DatasetInvalid:
    return DatasetInvalid(
        f"{shown(entry.path)} cannot be read: {exc.strerror}", hint="make the file readable, or remove it"
    )


def shown(path: str) -> str:
    """`path` safe to print: control characters and invalid bytes are escaped.

    >>> print(shown("two\\nlines"), shown("caf\\u00e9.png"))
    two\\nlines café.png
    """
    readable = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in readable)


def _walk(root: Path) -> Iterator[TreeEntry]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(_joined(root, folder)) as listing:
                found = list(listing)
        except OSError:
            yield TreeEntry(path=folder or ".", kind=TreeEntryKind.UNREADABLE, source=_joined(root, folder))
            continue
        for item in found:
            path = f"{folder}/{item.name}" if folder else item.name
            if is_hidden(item.name):
                yield TreeEntry(path=path, kind=TreeEntryKind.HIDDEN, source=item.path)
            elif item.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield _entry_of(item, path, root)


def _joined(root: Path, folder: str) -> str:
    return f"{root}/{folder}" if folder else str(root)


def _bounded(entries: Iterator[TreeEntry], root: Path) -> Iterator[TreeEntry]:
    for count, entry in enumerate(entries, start=1):
        if count > MAX_ENTRIES:
            raise DatasetInvalid(
                f"{shown(str(root))} contains more than {MAX_ENTRIES:,} files", hint="is this the right folder?"
            )
        yield entry


def is_hidden(name: str) -> bool:
    return name.startswith(".") or name.lower() in _JUNK


def _entry_of(item: os.DirEntry[str], path: str, root: Path) -> TreeEntry:
    try:
        if item.is_symlink():
            return _resolve_link(Path(item.path), path, root)
        status = item.stat(follow_symlinks=False)
    except OSError:
        return TreeEntry(path=path, kind=TreeEntryKind.UNREADABLE, source=item.path)
    return _entry(path, item.path, status)


def _resolve_link(link: Path, path: str, root: Path) -> TreeEntry:
    try:
        target = link.resolve(strict=True)
        status = target.lstat()
    except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
        return TreeEntry(path=path, kind=TreeEntryKind.LINK_BROKEN, source=str(link))
    if not target.is_relative_to(root):
        return TreeEntry(path=path, kind=TreeEntryKind.LINK_OUT, source=str(link))
    if stat.S_ISDIR(status.st_mode):
        return TreeEntry(path=path, kind=TreeEntryKind.LINK_TO_FOLDER, source=str(link))
    return _entry(path, str(target), status)


def _entry(path: str, source: str, status: os.stat_result) -> TreeEntry:
    kind = TreeEntryKind.FILE if stat.S_ISREG(status.st_mode) else TreeEntryKind.SPECIAL
    return TreeEntry(path=path, kind=kind, source=source, size=status.st_size, identity=identity_of(status))
