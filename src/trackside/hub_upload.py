"""Files go from this machine to a repository of the Hugging Face Hub, large ones as LFS objects.

Repeating it sends only what is missing: the Hub itself says which objects and files it has.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
from typing import Any, BinaryIO, Iterator, List, NamedTuple
from urllib.parse import quote

from trackside.errors import Misuse
from trackside.locks import one_at_a_time
from trackside.root import Root
from trackside.web import Busy, Refused, Web

_SAMPLE_BYTES = 512
_LFS_TYPE = "application/vnd.git-lfs+json"


class HubFile(NamedTuple):
    """A file to be there: one of the machine's, or one whose content came with the order."""

    name: str
    size: int
    sha256: str
    path: str | None
    content: bytes

    def open(self) -> BinaryIO:
        if self.path is not None:
            return open(self.path, "rb")
        return io.BytesIO(self.content)


class HubOrder(NamedTuple):
    endpoint: str
    token: str
    repo: str
    message: str
    files: List[HubFile]


def publish(root: Root, text: bytes, *, web: Web | None = None) -> dict[str, Any]:
    """What came of an order: all its files are there in one commit, or why not. Raises Misuse, without the token."""
    order = _read_order(root, text)
    root.make_own_folders()
    try:
        with one_at_a_time(root.own):  # one whose line was cut may still be sending
            commit = _publish(order, web or Web())
    except Refused as problem:
        return {"ok": False, "refused": True, "problem": str(problem)}
    except Busy as problem:
        return {"ok": False, "refused": False, "problem": str(problem), "retry_after": problem.retry_after_seconds}
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        said = "the Hub's answer makes no sense: %s" % type(problem).__name__
        return {"ok": False, "refused": False, "problem": said, "retry_after": None}
    return {"ok": True, "commit": commit, "files": [file.name for file in order.files]}


def _read_order(root: Root, text: bytes) -> HubOrder:
    try:
        given = json.loads(text)
        files = [_read_file(root, one) for one in given["files"]]
        order = HubOrder(
            str(given["endpoint"]).rstrip("/"), str(given["token"]), str(given["repo"]), str(given["message"]), files
        )
    except (ValueError, KeyError, TypeError):
        raise Misuse("the order on stdin is not complete") from None
    return order


def _read_file(root: Root, given: dict[str, Any]) -> HubFile:
    if "content" in given:
        content = base64.b64decode(given["content"])
        return HubFile(given["name"], len(content), hashlib.sha256(content).hexdigest(), None, content)
    path = root.inside(given["path"])
    return HubFile(given["name"], int(given["size"]), given["sha256"], path, b"")


def _publish(order: HubOrder, web: Web) -> str | None:
    known = _known(order, web)
    missing = [file for file in order.files if not _is_there(file, known)]
    if not missing:
        return None
    for file in missing:
        if file.path is not None and _size(file.path) != file.size:
            raise Refused("%s is not the file that was meant" % os.path.basename(file.path))
    large = _large(order, missing, web)
    _send_objects(order, [file for file in missing if file.name in large], web)
    return _commit(order, missing, large, web)


def _known(order: HubOrder, web: Web) -> dict[str, dict[str, Any]]:
    """What the repository has under the names that are wanted."""
    names = [file.name for file in order.files]
    found = _ask(web, order, "/paths-info/main", {"paths": names, "expand": False})
    return {str(entry.get("path")): entry for entry in found if isinstance(entry, dict)}


def _is_there(file: HubFile, known: dict[str, dict[str, Any]]) -> bool:
    entry = known.get(file.name)
    if entry is None or entry.get("size") != file.size:
        return False
    if "lfs" in entry:
        return bool(entry["lfs"].get("oid") == file.sha256)
    return bool(entry.get("oid") == _blob_id(file))


def _blob_id(file: HubFile) -> str:
    """The name that git itself gives to the content of a small file."""
    with file.open() as opened:
        content = opened.read()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _large(order: HubOrder, files: list[HubFile], web: Web) -> set[str]:
    """Names of the files that the Hub wants as LFS objects."""
    asked = [{"path": file.name, "size": file.size, "sample": _sample(file)} for file in files]
    answer = _ask(web, order, "/preupload/main", {"files": asked})
    return {one["path"] for one in answer["files"] if one["uploadMode"] == "lfs"}


def _sample(file: HubFile) -> str:
    with file.open() as opened:
        return base64.b64encode(opened.read(_SAMPLE_BYTES)).decode()


def _send_objects(order: HubOrder, files: list[HubFile], web: Web) -> None:
    if not files:
        return
    body = {
        "operation": "upload",
        "transfers": ["basic", "multipart"],
        "objects": [{"oid": file.sha256, "size": file.size} for file in files],
        "hash_algo": "sha256",
        "ref": {"name": "main"},
    }
    url = "%s/%s.git/info/lfs/objects/batch" % (order.endpoint, order.repo)
    headers = {"Authorization": "Bearer %s" % order.token, "Content-Type": _LFS_TYPE, "Accept": _LFS_TYPE}
    answer = web.call("POST", url, headers=headers, body=lambda: json.dumps(body).encode()).document()
    actions = {one["oid"]: one for one in answer["objects"]}
    for file in files:
        _send_object(file, actions[file.sha256], order, web)


def _send_object(file: HubFile, answer: dict[str, Any], order: HubOrder, web: Web) -> None:
    if "error" in answer:
        raise Refused("%s: %s" % (file.name, answer["error"].get("message", "not wanted")))
    actions = answer.get("actions")
    if not actions:
        return  # the Hub has these very bytes
    upload = actions["upload"]
    chunk = (upload.get("header") or {}).get("chunk_size")
    if chunk is None:
        length = {"Content-Length": str(file.size), "Content-Type": "application/octet-stream"}
        web.call("PUT", upload["href"], headers=length, body=file.open)
    else:
        _send_parts(file, upload, int(chunk), web)
    if "verify" in actions:
        headers = {"Authorization": "Bearer %s" % order.token, "Content-Type": _LFS_TYPE, "Accept": _LFS_TYPE}
        body = json.dumps({"oid": file.sha256, "size": file.size}).encode()
        web.call("POST", actions["verify"]["href"], headers=headers, body=lambda: body)


def _send_parts(file: HubFile, upload: dict[str, Any], chunk: int, web: Web) -> None:
    links = [link for _, link in sorted((int(name), link) for name, link in upload["header"].items() if name.isdigit())]
    tags = []
    for number, link in enumerate(links):
        part = Part(file, start=number * chunk, size=min(chunk, file.size - number * chunk))
        answer = web.call("PUT", link, headers={"Content-Length": str(part.size)}, body=part.open)
        tags.append({"partNumber": number + 1, "etag": answer.headers.get("etag", "")})
    body = json.dumps({"oid": file.sha256, "parts": tags}).encode()
    web.call("POST", upload["href"], headers={"Content-Type": _LFS_TYPE, "Accept": _LFS_TYPE}, body=lambda: body)


class Part:
    """A piece of a file that reads like a file of its own."""

    def __init__(self, file: HubFile, *, start: int, size: int) -> None:
        self.size = size
        self._file = file
        self._start = start

    def open(self) -> Part:
        self._opened = self._file.open()
        self._opened.seek(self._start)
        self._left = self.size
        return self

    def read(self, count: int = -1) -> bytes:
        wanted = self._left if count < 0 else min(count, self._left)
        piece = self._opened.read(wanted)
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self._opened.close()


def _commit(order: HubOrder, files: list[HubFile], large: set[str], web: Web) -> str | None:
    lines = list(_commit_lines(order, files, large))
    url = "%s/api/models/%s/commit/main" % (order.endpoint, quote(order.repo))
    headers = {"Authorization": "Bearer %s" % order.token, "Content-Type": "application/x-ndjson"}
    answer = web.call("POST", url, headers=headers, body=lambda: b"\n".join(lines) + b"\n")
    return str(answer.document().get("commitOid") or "") or None


def _commit_lines(order: HubOrder, files: list[HubFile], large: set[str]) -> Iterator[bytes]:
    yield _line("header", {"summary": order.message, "description": ""})
    for file in files:
        if file.name in large:
            yield _line("lfsFile", {"path": file.name, "algo": "sha256", "oid": file.sha256, "size": file.size})
        else:
            with file.open() as opened:
                content = base64.b64encode(opened.read()).decode()
            yield _line("file", {"path": file.name, "encoding": "base64", "content": content})


def _line(key: str, value: dict[str, Any]) -> bytes:
    return json.dumps({"key": key, "value": value}).encode()


def _ask(web: Web, order: HubOrder, rest: str, document: dict[str, Any]) -> Any:
    url = "%s/api/models/%s%s" % (order.endpoint, quote(order.repo), rest)
    headers = {"Authorization": "Bearer %s" % order.token, "Content-Type": "application/json"}
    return web.call("POST", url, headers=headers, body=lambda: json.dumps(document).encode()).document()


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None
