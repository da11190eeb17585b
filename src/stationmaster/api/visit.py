"""What a route gets: who asks, and the station as they may see it.

A route declares the right that it needs by the type of its parameter: `visit: Reading`, `Training` or `Managing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from stationmaster.errors import NotSignedIn
from stationmaster.model import SINGLE_USER, Caller, Right
from stationmaster.station.base import Station
from stationmaster.station.owned.rights import require
from stationmaster.station.owned.station import station_of_caller

_BEARER = HTTPBearer(auto_error=False, description="A token of `stationmaster tokens create`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request: its caller, and the station that they may see."""

    caller: Caller
    station: Station

    def user_named(self, name: str) -> str:
        """The user that a path names: `me` is the caller."""
        return self.caller.user if name == SINGLE_USER else name


def _needs(right: Right) -> Callable[..., Visit]:
    def visit(request: Request, _bearer: Annotated[object, Security(_BEARER)] = None) -> Visit:
        caller: Caller | None = getattr(request.state, "caller", None)  # the gate has put it there
        if caller is None:
            raise NotSignedIn(hint="send a token: Authorization: Bearer TOKEN")
        require(caller, right)
        about = request.app.state
        return Visit(caller=caller, station=station_of_caller(caller, about.station, about.allowances))

    visit.right = right  # type: ignore[attr-defined]  # read by the tests of every role on every route
    return visit


Reading = Annotated[Visit, Depends(_needs(Right.READ))]
Training = Annotated[Visit, Depends(_needs(Right.TRAIN))]
Managing = Annotated[Visit, Depends(_needs(Right.MANAGE))]
