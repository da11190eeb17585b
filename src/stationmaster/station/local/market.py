"""What could be rented now in place of a job's machine."""

from __future__ import annotations

import asyncio

from stationmaster.analysis.recorded_run import MarketOffer
from stationmaster.errors import StationmasterError
from stationmaster.model import Job, Requirements
from stationmaster.station.local.installation import Installation


def market_offers(installation: Installation, job: Job) -> tuple[MarketOffer, ...]:
    """Return what the job's provider offers for money, with any GPU; nothing if the provider does not answer."""
    want = Requirements(gpus=1, vram_gib=0.0, disk_gib=job.spec.quote.disk_gib, hours=job.spec.quote.hours_expected)
    try:
        found = asyncio.run(installation.provider(job.spec.provider).offers(want))
    except StationmasterError:
        return ()
    return tuple(
        MarketOffer(gpu=offer.gpu, gpu_memory_gb=offer.vram_gib, price_per_hour_usd=offer.price_per_hour / 1_000_000)
        for offer in found
        if offer.gpu and offer.price_per_hour
    )
