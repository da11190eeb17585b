"""Files come to this machine from a bucket by addresses that home signed, each verified, all of them or none."""

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


class _Lost(Exception):
    """A file could not be had whole."""


def download(root: Root, text: bytes) -> dict[str, Any]:
    """The order's files are in its folder, verified, or why not. Raises Misuse, without any address.

    They replace what was there in one go; what came before a lost connection is not fetched again.
    """
    order = _read_order(text)
    name = os.path.normpath(order.directory)
    target = root.inside(name)
    if name.split("/")[0] in (".", ".trackside"):
        raise Misuse("%r cannot be replaced by files from a bucket" % order.directory)
    marker = os.path.join(root.unpacked, "%s.json" % name.replace("%", "%25").replace("/", "%2F"))
    root.make_own_folders()
    with one_at_a_time(root.unpacked):
        noted = read_record(marker)
        if noted is not None and noted.get("sha256") == order.fingerprint and _inode(target) == noted.get("inode"):
            return {"ok": True, "files": len(order.files), "fetched": 0}
        try:
            fetched = _fetch_all(order, target + ".fetching")
        except _Lost as problem:
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
    """Every file is whole in `folder`, and nothing else; how many had to be fetched."""
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
            _go_on(file, path + ".part")
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
        problem = "what came does not have SHA-256 %s" % file.sha256
        os.unlink(path + ".part")
    raise _Lost("%s: %s" % (file.path, problem))


def _go_on(file: _File, part: str) -> None:
    """Add to the part what it lacks; begin anew where the other side does not know ranges."""
    have = os.path.getsize(part) if os.path.exists(part) else 0
    if have == file.size:
        open(part, "ab").close()  # an empty file is made, not fetched
        return
    have = have if have < file.size else 0
    request = urllib.request.Request(file.url, headers={"Range": "bytes=%d-" % have} if have else {})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
        _add(answer, part, anew=answer.status != 206)


def _add(answer: Any, part: str, *, anew: bool) -> None:
    with open(part, "wb" if anew else "ab") as target:
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
