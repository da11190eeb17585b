"""The station of an administrator whose token may not manage."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from stationmaster.model import Caller
from stationmaster.station.base import Station
from stationmaster.station.owned.credits import OwnedCredits
from stationmaster.station.owned.tokens import OwnedTokens
from stationmaster.station.owned.users import OwnedUsers


class OverseeingStation:
    """All of a station; but nothing in it gives rights, or credits, that the token itself does not have."""

    def __init__(self, caller: Caller, station: Station) -> None:
        self._caller = caller
        self._all = station

    @cached_property
    def users(self) -> OwnedUsers:
        return OwnedUsers(self._caller, self._all.users)

    @cached_property
    def tokens(self) -> OwnedTokens:
        return OwnedTokens(self._caller, self._all)

    @cached_property
    def credits(self) -> OwnedCredits:
        return OwnedCredits(self._caller, self._all.credits)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._all, name)
