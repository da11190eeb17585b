"""Download files from a bucket by signed addresses, each verified, all of them or none."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, NamedTuple

from trackside.errors import Misuse
from trackside.machine.locks import one_at_a_time
from trackside.records import read_record, write_record
from trackside.root import Root, stays_inside
from trackside.transfer.hashing import sha256_of

_TIMEOUT_SECONDS = 60.0
_AT_ONCE = 8
_TRIES = 3
_CHUNK_BYTES = 1 << 20


class _File(NamedTuple):
    url: str
    path: str
    size: int
    sha256: str


class _Order(NamedTuple):
    directory: str
    fingerprint: str
    files: List[_File]


class _DownloadFailed(Exception):
    """A file could not be downloaded completely."""


def download(root: Root, text: bytes) -> dict[str, Any]:
    """Download the order's files into its folder, verified; return the result. Raises Misuse, without any address.

    They replace what was there at once; what arrived before a lost connection is not downloaded again.
    """
    order = _read_order(text)
    name = os.path.normpath(order.directory)
    target = root.inside(name)
    if name.split("/")[0] in (".", ".trackside"):
        raise Misuse("cannot download into %r" % order.directory)
    marker = os.path.join(root.unpacked, "%s.json" % name.replace("%", "%25").replace("/", "%2F"))
    root.make_own_folders()
    with one_at_a_time(root.unpacked):
        noted = read_record(marker)
        if noted is not None and noted.get("sha256") == order.fingerprint and _inode(target) == noted.get("inode"):
            return {"ok": True, "files": len(order.files), "fetched": 0}
        try:
            fetched = _fetch_all(order, target + ".fetching")
        except _DownloadFailed as problem:
            return {"ok": False, "problem": str(problem)}
        _replace(target + ".fetching", target)
        write_record(marker, {"sha256": order.fingerprint, "files": len(order.files), "inode": _inode(target)})
    return {"ok": True, "files": len(order.files), "fetched": fetched}


def _read_order(text: bytes) -> _Order:
    try:
        given = json.loads(text)
        files = [
            _File(str(one["url"]), str(one["path"]), int(one["size"]), str(one["sha256"])) for one in given["files"]
        ]
        order = _Order(str(given["directory"]), str(given["fingerprint"]), files)
    except (ValueError, KeyError, TypeError):
        raise Misuse("the order on stdin is not complete") from None
    if not all(stays_inside(file.path) for file in order.files):
        raise Misuse("the order names a path outside its folder")
    return order


def _fetch_all(order: _Order, folder: str) -> int:
    """Make `folder` hold every file, complete, and nothing else; return how many were downloaded."""
    os.makedirs(folder, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        fetched = sum(pool.map(lambda file: _fetch(file, os.path.join(folder, file.path)), order.files))
    wanted = {os.path.join(folder, os.path.normpath(file.path)) for file in order.files}
    for place, _, names in os.walk(folder):
        for name in names:
            if os.path.join(place, name) not in wanted:
                os.unlink(os.path.join(place, name))
    return fetched


def _fetch(file: _File, path: str) -> bool:
    if _is_whole(file, path):
        return False
    os.makedirs(os.path.dirname(path), exist_ok=True)
    problem = ""
    for _ in range(_TRIES):
        try:
            _download_rest(file, path + ".part")
        except urllib.error.HTTPError as error:
            with error:
                problem = "the bucket answered %d" % error.code
            if error.code in (403, 404):
                break
            continue
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            problem = str(getattr(error, "reason", None) or error)
            continue
        if _is_whole(file, path + ".part"):
            os.replace(path + ".part", path)
            return True
        problem = "the download does not have SHA-256 %s" % file.sha256
        os.unlink(path + ".part")
    raise _DownloadFailed("%s: %s" % (file.path, problem))


def _download_rest(file: _File, part: str) -> None:
    """Append to the part what it lacks; start over where the server does not support ranges."""
    have = os.path.getsize(part) if os.path.exists(part) else 0
    if have == file.size:
        open(part, "ab").close()  # an empty file is created, not downloaded
        return
    have = have if have < file.size else 0
    request = urllib.request.Request(file.url, headers={"Range": "bytes=%d-" % have} if have else {})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
        _add(answer, part, start_over=answer.status != 206)


def _add(answer: Any, part: str, *, start_over: bool) -> None:
    with open(part, "wb" if start_over else "ab") as target:
        shutil.copyfileobj(answer, target, _CHUNK_BYTES)


def _is_whole(file: _File, path: str) -> bool:
    try:
        if os.path.getsize(path) != file.size:
            return False
        with open(path, "rb") as opened:
            return bool(sha256_of(opened) == file.sha256)
    except OSError:
        return False


def _replace(fresh: str, target: str) -> None:
    replaced = target + ".replaced"
    shutil.rmtree(replaced, ignore_errors=True)
    if os.path.lexists(target):
        os.rename(target, replaced)
    os.rename(fresh, target)
    shutil.rmtree(replaced, ignore_errors=True)


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None
