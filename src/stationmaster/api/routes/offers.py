"""Offers: what can be rented now for a recipe."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading
from stationmaster.station.job_file import price
from stationmaster.station.offers import OfferSearch
from stationmaster.station.wire.offers import RankingDocument

routes = APIRouter(prefix="/api", tags=["offers"], responses=problems(400, 401, 403, 404, 422, 502))


@routes.get("/offers", operation_id="list_offers", summary="What can be rented now for a recipe, best first")
def list_offers(
    visit: Reading,
    recipe: Annotated[
        str,
        Query(max_length=200, description="Recipe that the machine must be able to run.", examples=["flux-lora@2"]),
    ],
    provider: Annotated[
        str | None, Query(max_length=200, description="Provider to search; default: the server's.")
    ] = None,
    account: Annotated[
        str | None, Query(max_length=200, description="Account at the provider; for administrators.")
    ] = None,
    gpus: Annotated[int | None, Query(ge=0, le=64, description="Number of GPUs, if above the recipe's.")] = None,
    hours: Annotated[
        float, Query(description="Hours that the job takes on an RTX 4090, from 0.01 to 10000.", examples=[1.0])
    ] = 1.0,
    max_price_usd: Annotated[
        str | None, Query(max_length=40, description="Maximum price per hour, in dollars.", examples=["0.60"])
    ] = None,
    vram_gib: Annotated[
        float | None, Query(ge=0, le=10_000, description="Memory that each GPU is sold with, if above the recipe's.")
    ] = None,
    disk_gib: Annotated[float | None, Query(ge=0, le=1_000_000, description="Disk, if above the recipe's.")] = None,
    interruptible: Annotated[bool, Query(description="Search offers that can be outbid, which cost less.")] = False,
) -> RankingDocument:
    search = OfferSearch(
        recipe=recipe,
        provider=provider,
        account=account,
        gpus=gpus,
        hours=hours,
        max_price=price("max_price_usd", max_price_usd),
        vram_gib=vram_gib,
        disk_gib=disk_gib,
        interruptible=interruptible,
    )
    return RankingDocument.of(visit.station.offers.ranking(search))
