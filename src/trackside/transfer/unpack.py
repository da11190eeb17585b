"""Verify an archive from home and unpack it, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tarfile
from typing import Any, BinaryIO

from trackside.errors import Misuse, TracksideError
from trackside.machine.locks import one_at_a_time
from trackside.records import read_record, write_record
from trackside.root import Root, stays_inside
from trackside.transfer.hashing import sha256_of


class ArchiveRefused(TracksideError):
    """The archive has a member that could reach outside its folder."""


def unpack(root: Root, archive: str, directory: str, *, sha256: str) -> dict[str, Any]:
    """Unpack a tar archive into a folder under the root, replacing what was there. Repeating it does nothing.

    Returns `ok: False` with the real hash when the archive has another one. Raises ArchiveRefused for one that reaches
    out of its folder; then nothing of it stays.
    """
    name = os.path.normpath(directory)
    target = root.inside(name)
    if name.split("/")[0] in (".", ".trackside"):
        raise Misuse("cannot unpack into %r" % directory)
    marker = os.path.join(root.unpacked, "%s.json" % name.replace("%", "%25").replace("/", "%2F"))
    root.make_own_folders()
    # A call repeated after a lost connection waits for the first one, then finds its marker.
    with one_at_a_time(root.unpacked):
        already = _intact_marker(marker, target, sha256.lower())
        if already is not None:
            return {"ok": True, "sha256": already["sha256"], "files": already["files"], "already": True}
        return _verify_and_replace(os.path.join(root.path, archive), target, sha256=sha256.lower(), marker=marker)


def extract_safely(archive: BinaryIO, folder: str) -> int:
    """Extract a tar archive into an empty folder; the number of files. Raises ArchiveRefused before anything escapes.

    Links are created last, so nothing is ever written through one.
    """
    files: set[str] = set()
    links: list[tarfile.TarInfo] = []
    try:
        with tarfile.open(fileobj=archive, mode="r:*") as tar:
            for member in tar:
                name = _safe_name(member)
                if member.isdir():
                    os.makedirs(os.path.join(folder, name), exist_ok=True)
                elif member.isreg():
                    _extract_file(tar, member, os.path.join(folder, name))
                    files.add(name)
                elif member.issym() or member.islnk():
                    links.append(member)
                else:
                    raise ArchiveRefused("the archive contains a device or pipe: %r" % member.name)
    except tarfile.TarError as error:
        raise TracksideError("the archive cannot be read: %s" % error) from error
    for link in links:
        _make_link(link, folder, files)
    for link in links:
        _require_inside(os.path.join(folder, link.name), folder, link)
    return len(files) + len(links)


def _intact_marker(marker: str, target: str, sha256: str) -> dict[str, Any] | None:
    noted = read_record(marker)
    if noted is None or noted.get("sha256") != sha256:
        return None
    try:
        return noted if os.stat(target).st_ino == noted["inode"] else None
    except OSError:
        return None


def _verify_and_replace(archive: str, target: str, *, sha256: str, marker: str) -> dict[str, Any]:
    with open(archive, "rb") as file:
        found = sha256_of(file)
        if found != sha256:
            return {"ok": False, "sha256": found}
        file.seek(0)
        files = _replace_folder(file, target)
    record = {"sha256": found, "files": files, "inode": os.stat(target).st_ino}
    write_record(marker, record, durable=True)
    return {"ok": True, "sha256": found, "files": files, "already": False}


def _replace_folder(archive: BinaryIO, target: str) -> int:
    staging, replaced = target + ".unpacking", target + ".replaced"
    _remove(staging)
    _remove(replaced)
    os.makedirs(staging)
    try:
        files = extract_safely(archive, staging)
        if os.path.lexists(target):
            os.rename(target, replaced)
        os.rename(staging, target)
    finally:
        _remove(staging)
        _remove(replaced)
    return files


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _safe_name(member: tarfile.TarInfo) -> str:
    if not stays_inside(member.name):
        raise ArchiveRefused("the archive names a path outside its folder: %r" % member.name)
    return os.path.normpath(member.name)


def _extract_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    mode = 0o755 if member.mode & 0o100 else 0o644
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except FileExistsError:
        raise ArchiveRefused("the archive contains %r twice" % member.name) from None
    content = tar.extractfile(member)
    with open(descriptor, "wb") as file:
        if content is not None:
            shutil.copyfileobj(content, file, 1 << 20)


def _make_link(link: tarfile.TarInfo, folder: str, files: set[str]) -> None:
    path = os.path.join(folder, _safe_name(link))
    # Its folder may itself be a link that was just created.
    _require_inside(os.path.dirname(path), folder, link)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        raise ArchiveRefused("the archive contains %r twice" % link.name)
    if link.issym() and not os.path.isabs(link.linkname):
        os.symlink(link.linkname, path)
    elif link.islnk() and os.path.normpath(link.linkname) in files:
        os.link(os.path.join(folder, os.path.normpath(link.linkname)), path)
    else:
        raise ArchiveRefused("the archive links to something outside it: %r" % link.linkname)


def _require_inside(path: str, folder: str, link: tarfile.TarInfo) -> None:
    """Raise ArchiveRefused if the resolved path is outside: with links through links its name proves nothing."""
    if not (os.path.realpath(path) + "/").startswith(os.path.realpath(folder) + "/"):
        raise ArchiveRefused("the archive links to something outside it: %r" % link.linkname)
