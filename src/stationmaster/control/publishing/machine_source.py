"""A file on the job's machine as the Hub's conversation needs it: the machine gets signed addresses, and no token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stationmaster.control.destinations.job_bucket import slowest_seconds, upload_problem
from stationmaster.delivery.signed_requests import Piece, SendResult
from stationmaster.errors import DeliveryRefused
from stationmaster.model import OutputFile
from stationmaster.remote.host import Host

_MOST_BYTES_READ = 1 << 20
_LONGEST_ETAG = 256


class MachineSource:
    """One output file on the job's machine. Every call is one order to trackside and raises RemoteError."""

    def __init__(self, file: OutputFile, host: Host) -> None:
        self._file = file
        self._host = host

    async def first_bytes(self, count: int) -> bytes:
        if count > _MOST_BYTES_READ:
            size = f"{self._file.size:,} bytes"
            raise DeliveryRefused(f"the Hub wants {self._file.path} inside the commit; {size} are too many for that")
        return await self._host.first_bytes(self._file.path, count)

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> SendResult:
        order: dict[str, Any] = {
            "path": self._file.path,
            "size": self._file.size,
            "requests": [piece.to_json() for piece in pieces],
        }
        if begin_within_seconds is not None:
            order["begin_within"] = begin_within_seconds
        size = sum(piece.size for piece in pieces)
        answer = await self._host.carry_out("upload", order, further_seconds=slowest_seconds(size))
        return sent_by_machine(answer, len(pieces))


def sent_by_machine(answer: Mapping[str, Any], pieces: int) -> SendResult:
    """The machine's report of what it sent, bounded: no more ETags than pieces, and nothing but ETags.

    >>> sent_by_machine({"ok": True, "etags": ['"a"', '"b"', '"c"']}, 2).etags
    ('"a"', '"b"')
    """
    reported = answer.get("etags")
    etags = [str(etag) for etag in reported[:pieces]] if isinstance(reported, list) else []
    if any(len(etag) > _LONGEST_ETAG or not etag.isprintable() for etag in etags):
        return SendResult(problem=DeliveryRefused("the machine's answer to an upload contains a false ETag"))
    if answer.get("ok"):
        return SendResult(etags=tuple(etags))
    status = answer.get("status")
    known = status if isinstance(status, int) else None
    return SendResult(etags=tuple(etags), problem=upload_problem(answer), status=known)
