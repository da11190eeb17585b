"""Dependencies of every route: the service, the caller, and the body."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Request

from stationmaster.simulator import api_refusals
from stationmaster.simulator.accounts import Identity
from stationmaster.simulator.cloud import Cloud


def cloud_of(request: Request) -> Cloud:
    cloud: Cloud = request.app.state.cloud
    return cloud


def identity_of(request: Request) -> Identity:
    """Bearer authentication; the old way, the key in the URL, still works."""
    header = request.headers.get("authorization", "")
    token = header.removeprefix("Bearer ").strip() if header.startswith("Bearer ") else None
    return cloud_of(request).identify(token or request.query_params.get("api_key"))


async def document_of(request: Request) -> dict[str, Any]:
    """The body as a JSON object; an empty one is an empty object."""
    body = await request.body()
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        raise api_refusals.invalid_request("Invalid json body") from None
    if not isinstance(document, dict):
        raise api_refusals.invalid_request("Invalid json body")
    return document


CloudDep = Annotated[Cloud, Depends(cloud_of)]
Caller = Annotated[Identity, Depends(identity_of)]
Document = Annotated[dict[str, Any], Depends(document_of)]
