"""Signed requests, which need no key until they expire; the bytes they carry, and where those bytes come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stationmaster.errors import DeliveryError


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request that anyone with the `url` can send, unchanged, until it expires: treat `url` as a secret."""

    method: str
    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A signed request, and which bytes of the file it carries."""

    request: SignedRequest
    offset: int
    size: int

    def to_json(self) -> dict[str, Any]:
        """The form that is sent to the machine; `url` is a secret until it expires."""
        return {
            "url": self.request.url,
            "headers": dict(self.request.headers),
            "offset": self.offset,
            "size": self.size,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The outcome of sending pieces: one ETag for each piece that was sent; `problem` is why the next one failed.

    Without a problem the remaining pieces were left for later. `status` is the HTTP status of a refusal.
    """

    etags: tuple[str, ...] = ()
    problem: DeliveryError | None = None
    status: int | None = None


class Source(Protocol):
    """Where a file's bytes are: on this computer, or on a rented machine, whose answers are not trusted."""

    async def first_bytes(self, count: int) -> bytes:
        """Fewer than `count` only if the file is shorter. Raises DeliveryRefused if `count` is over the limit."""

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> SendResult:
        """Send the pieces in order; starts no further piece after that time, but always the first."""
