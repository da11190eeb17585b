"""What a server says about itself and about the caller."""

from __future__ import annotations

from typing import Self

from stationmaster.model import Caller, Right, Role
from stationmaster.station.wire.document import Document, Instant


class CallerDocument(Document):
    """Who makes this request, and what they may do."""

    user: str
    """Name of the user."""
    role: Role
    """Their role."""
    rights: tuple[Right, ...]
    """`read`: see what is theirs; `train`: submit and stop jobs; `manage`: everything."""

    @classmethod
    def of(cls, caller: Caller) -> Self:
        return cls(user=caller.user, role=caller.role, rights=tuple(sorted(caller.rights)))


class ServerDocument(Document):
    """The server, and who is asking."""

    version: str
    """Of Stationmaster."""
    now: Instant
    """The time of the store, which all times use."""
    caller: CallerDocument
    """Who asks."""
