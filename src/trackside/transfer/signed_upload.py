"""Upload one file to a bucket or the Hub by signed requests; this machine has no key."""

from __future__ import annotations

import json
import os
import time
from typing import Any, BinaryIO, Callable, Mapping, NamedTuple

from trackside.errors import Misuse
from trackside.machine.locks import one_at_a_time
from trackside.root import Root
from trackside.transfer.web import Busy, Refused, Web

#: Signed requests expire and home makes new ones, so none is started long after it arrived.
_BEGIN_WITHIN_SECONDS = 600.0

#: If home's address does not answer, home sends the requests itself: do not wait long.
_PATIENCE_WITH_HOME_SECONDS = 5.0


class _Order(NamedTuple):
    path: str
    size: int
    requests: list[dict[str, Any]]
    home_url: str | None
    token: str
    begin_within_seconds: float


def upload(
    root: Root, text: bytes, *, web: Web | None = None, clock: Callable[[], float] = time.monotonic
) -> dict[str, Any]:
    """Send what the order's requests ask for; return the result. Raises Misuse, without any address.

    An order has either the signed requests, or an address of home that returns them for a token. In every result
    `etags` has the answers to the requests that worked, in their order.
    """
    order = _read_order(root, text)
    web = web or Web()
    etags: list[str] = []
    try:
        with one_at_a_time(_turn(root)):  # an upload whose connection was lost may still be sending
            _require_size(order)
            if order.home_url is None:
                _send(order, order.requests, web, clock, etags)
            else:
                _send_with_home(order, order.home_url, web, clock, etags)
    except Refused as problem:
        return {"ok": False, "refused": True, "problem": str(problem), "status": problem.status, "etags": etags}
    except Busy as problem:
        after = problem.retry_after_seconds
        return {"ok": False, "refused": False, "problem": str(problem), "retry_after": after, "etags": etags}
    return {"ok": True, "sent": len(etags), "etags": etags}


def _turn(root: Root) -> str:
    """Return the folder whose lock uploads take, a separate one: nothing else may wait for a long upload."""
    folder = os.path.join(root.own, "uploads")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return root.unpacked  # nothing can be created; what was unpacked there is not locked any more
    return folder


def _read_order(root: Root, text: bytes) -> _Order:
    try:
        given = json.loads(text)
        home_url = given.get("door")
        requests = [_checked(one) for one in given.get("requests") or ()]
        seconds = min(float(given.get("begin_within", _BEGIN_WITHIN_SECONDS)), _BEGIN_WITHIN_SECONDS)
        path, size, token = root.inside(given["path"]), int(given["size"]), str(given.get("token") or "")
        return _Order(path, size, requests, home_url, token, seconds)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Misuse("the order on stdin is not complete") from None


def _checked(one: Mapping[str, Any]) -> dict[str, Any]:
    headers = {str(name): str(value) for name, value in one["headers"].items()}
    return {"url": str(one["url"]), "headers": headers, "offset": int(one["offset"]), "size": int(one["size"])}


def _require_size(order: _Order) -> None:
    try:
        found = os.stat(order.path).st_size
    except OSError as error:
        raise Refused("%s cannot be read: %s" % (os.path.basename(order.path), error.strerror)) from error
    if found != order.size:
        raise Refused("%s has %d bytes, not %d" % (os.path.basename(order.path), found, order.size))


def _send_with_home(order: _Order, home_url: str, web: Web, clock: Callable[[], float], etags: list[str]) -> None:
    """Get signed requests from home until it confirms that everything arrived."""
    answer = _ask(order, home_url, Web(patience_seconds=_PATIENCE_WITH_HOME_SECONDS))
    while answer.get("state") != "DONE":
        requests = [_checked(one) for one in answer.get("requests") or ()]
        if not requests:
            raise Refused("home sent no request for %s, but the upload is not complete" % os.path.basename(order.path))
        _send(order, requests, web, clock, etags)
        answer = _ask(order, home_url + "/done", web)


def _ask(order: _Order, url: str, web: Web) -> dict[str, Any]:
    headers = {"Authorization": "Bearer %s" % order.token, "Content-Type": "application/json"}
    answer = web.call("POST", url, headers=headers, body=lambda: b"{}").document()
    if not isinstance(answer, dict):
        raise Busy("home's answer is not a JSON object")
    return answer


def _send(
    order: _Order, requests: list[dict[str, Any]], web: Web, clock: Callable[[], float], etags: list[str]
) -> None:
    began = clock()
    for number, request in enumerate(requests):
        if number and clock() - began > order.begin_within_seconds:
            return
        part = _Slice(order.path, request["offset"], request["size"])
        # 412: the key exists, as after a lost answer. Home checks what is there.
        headers = {"Content-Type": "application/octet-stream", **request["headers"]}
        answer = web.call("PUT", request["url"], headers=headers, body=part.open, fine=(412,))
        etags.append(answer.headers.get("etag", ""))


class _Slice:
    """A part of a file that reads like a whole file."""

    def __init__(self, path: str, offset: int, size: int) -> None:
        self._path = path
        self._offset = offset
        self._size = size

    def open(self) -> _Slice:
        self._file: BinaryIO = open(self._path, "rb")
        self._file.seek(self._offset)
        self._left = self._size
        return self

    def read(self, count: int = -1) -> bytes:
        piece = self._file.read(self._left if count < 0 else min(count, self._left))
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self._file.close()
