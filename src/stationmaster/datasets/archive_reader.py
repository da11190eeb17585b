"""Opens a dataset: a folder, or a tar or zip file that is unpacked into a temporary folder."""

from __future__ import annotations

import errno
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from stationmaster.datasets.tree import MAX_ENTRIES, shown
from stationmaster.errors import DatasetInvalid, DiskFull, NotFound

_KEEP_FREE_BYTES = 64 << 20
_BROKEN = (  # raised for damaged, encrypted or unknown content
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError,
    ValueError,
)  # fmt: skip

Member = tuple[str, int, IO[bytes]]  # name, size and content, all untrusted


@contextmanager
def open_dataset(source: Path, *, scratch: Path | None = None, most_bytes: int | None = None) -> Iterator[Path]:
    """The folder with the dataset's files; for an archive a temporary one, in `scratch` or the system's default.

    Raises NotFound, DatasetInvalid (damaged or hostile archive, or more than `most_bytes` in it) and DiskFull.
    """
    if source.is_dir():
        yield source
        return
    if not source.is_file():
        raise NotFound(f"there is no dataset {shown(str(source))}", hint="pass a folder, or a .tar or .zip file")
    with tempfile.TemporaryDirectory(prefix="stationmaster-dataset-", dir=scratch) as temporary:
        target = Path(temporary)
        _unpack(source, target, most_bytes=most_bytes)
        yield _only_folder_in(target)


def _unpack(archive: Path, target: Path, *, most_bytes: int | None) -> None:
    """Unpack only regular files and folders into a new folder: without links nothing can point out of it."""
    total = 0
    try:
        for count, (name, size, content) in enumerate(_members(archive), start=1):
            if count > MAX_ENTRIES:
                raise _refused(archive, f"contains more than {MAX_ENTRIES:,} files")
            total += size
            if most_bytes is not None and total > most_bytes:
                raise _refused(archive, f"unpacks to more than {most_bytes:,} bytes")
            _require_room(target, size)
            with content:
                _write(content, target / _inside(name, archive))
    except _BROKEN as exc:
        raise _refused(archive, "is damaged, encrypted or of an unknown format") from exc
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"not enough disk space to unpack {shown(str(archive))}", hint="free disk space") from exc
        raise _refused(archive, f"cannot be unpacked: {exc.strerror or exc}") from exc


def _members(archive: Path) -> Iterator[Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    yield info.filename, info.file_size, packed.open(info)
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            if member.isdir():
                continue
            content = tar.extractfile(member) if member.isreg() else None
            if content is None:
                raise _refused(archive, f"contains {shown(member.name)}, which is a link or a device")
            yield member.name, member.size, content


def _inside(name: str, archive: Path) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise _refused(archive, f"contains {shown(name)}, which points outside of it")
    return path


def _require_room(target: Path, size: int) -> None:
    free = shutil.disk_usage(target).free
    if size > free - _KEEP_FREE_BYTES:
        raise DiskFull(
            f"unpacking needs {size / 1e6:,.1f} MB for one file; {free / 1e6:,.1f} MB are free in {shown(str(target))}",
            hint="free disk space, or unpack the dataset yourself on another disk",
        )


def _write(content: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)


def _only_folder_in(folder: Path) -> Path:
    """The only folder in an archive, or the archive's top: many archives contain one folder with everything."""
    inside = [item for item in folder.iterdir() if item.name != "__MACOSX"]
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _refused(archive: Path, why: str) -> DatasetInvalid:
    return DatasetInvalid(f"{shown(str(archive))} {why}", hint="pack the dataset again, or pass its folder")
