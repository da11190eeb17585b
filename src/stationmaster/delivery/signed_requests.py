"""Requests that anybody may send until they expire, the bytes that go with them, and who has those bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from stationmaster.errors import DeliveryError


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request that anybody may send until it expires, exactly as it is: `url` is a secret."""

    method: str
    url: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A signed request, and which bytes of the file go with it."""

    request: SignedRequest
    offset: int
    size: int

    def to_json(self) -> dict[str, Any]:
        """What the machine gets; `url` is a secret until it expires."""
        return {
            "url": self.request.url,
            "headers": dict(self.request.headers),
            "offset": self.offset,
            "size": self.size,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What came of sending pieces: the first of them worked and have ETags; `problem` is why the next did not.

    Without a problem the rest was left for later. `status` is what the address answered, where it refused.
    """

    etags: tuple[str, ...] = ()
    problem: DeliveryError | None = None
    status: int | None = None


class Source(Protocol):
    """Whoever has a file's bytes: home, or a machine. What it says is not believed."""

    async def first_bytes(self, count: int) -> bytes:
        """Fewer than `count` only where the file ends before. Raises DeliveryRefused if that is too much to ask."""

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> Sent:
        """Send the pieces in their order, beginning none after that time, except the first."""
