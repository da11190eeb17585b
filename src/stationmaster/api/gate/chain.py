"""The order in which a request passes the gate."""

from __future__ import annotations

from fastapi import FastAPI

from stationmaster.api.gate.audit import Auditing
from stationmaster.api.gate.body_limits import BodyLimits
from stationmaster.api.gate.headers import SecurityHeaders
from stationmaster.api.gate.hosts import HostCheck
from stationmaster.api.gate.policy import GatePolicy
from stationmaster.api.gate.rate_limits import RateLimit
from stationmaster.api.gate.signing_in import SigningIn
from stationmaster.api.gate.unexpected import Unexpected
from stationmaster.station.doorkeeper import Doorkeeper

ANSWERS = (400, 401, 403, 408, 413, 421, 429, 503)
"""The error responses that any route may give, because the gate gives them."""


def add_gate(app: FastAPI, policy: GatePolicy, doorkeeper: Doorkeeper) -> None:
    """The first line below is the innermost, the last one sees a request first."""
    app.add_middleware(BodyLimits, policy=policy)
    app.add_middleware(RateLimit, policy=policy)
    app.add_middleware(SigningIn, policy=policy, doorkeeper=doorkeeper)
    app.add_middleware(HostCheck, policy=policy)
    app.add_middleware(Auditing, doorkeeper=doorkeeper)
    app.add_middleware(Unexpected)
    app.add_middleware(SecurityHeaders, policy=policy)
