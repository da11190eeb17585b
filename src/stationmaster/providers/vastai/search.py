"""Builds a search from a job's requirements, and candidates for the ranking from its rows."""

from __future__ import annotations

import math
from typing import Any

from stationmaster.model import Offer, Requirements
from stationmaster.money import MicroDollars
from stationmaster.offers import CONTRACT_SHARE, Candidate, Preferences, least_cuda, least_vram_mib
from stationmaster.providers.vastai.wire import OfferRow

_GIB_IN_GB = 1024**3 / 1000**3
_LEAST_DISK_GB = 8.0  # the service's minimum


def disk_gb(want: Requirements, *, default_gb: float) -> float:
    """The disk size to rent; it cannot grow later."""
    return max(math.ceil(want.disk_gib * _GIB_IN_GB), default_gb, _LEAST_DISK_GB)


def gib(gigabytes: float) -> float:
    return gigabytes / _GIB_IN_GB


def search_query(want: Requirements, preferences: Preferences, *, storage_gb: float) -> dict[str, Any]:
    """The body of a search. The ranking applies the price cap, so that it can report what it excluded."""
    vram_gib = max(want.vram_gib, preferences.min_vram_gb) if want.gpus else 0.0
    query: dict[str, Any] = {
        "type": "bid" if want.interruptible else "on-demand",
        "allocated_storage": storage_gb,
        "external": {"eq": False},
        "rentable": {"eq": True},
        "num_gpus": {"eq": max(want.gpus, 1)},
        "disk_space": {"gte": storage_gb},
        "direct_port_count": {"gte": 1},
        "duration": {"gte": want.hours * CONTRACT_SHARE * 3600},
        "reliability": {"gte": preferences.min_reliability},
    }
    if preferences.verified_only:
        query["verified"] = {"eq": True}
    if want.gpus:
        query |= {"gpu_ram": {"gte": least_vram_mib(vram_gib)}, "cuda_max_good": {"gte": least_cuda(want, preferences)}}
    return query


def wide_query(want: Requirements, *, storage_gb: float) -> dict[str, Any]:
    """The body of a search for all that can be rented, with no more GPUs than are wanted.

    The ranking applies every requirement to what is found, so that it can report which one excluded how many.
    """
    return {
        "type": "bid" if want.interruptible else "on-demand",
        "allocated_storage": storage_gb,
        "external": {"eq": False},
        "rentable": {"eq": True},
        "num_gpus": {"lte": max(want.gpus, 1)},
    }


def candidate(row: OfferRow, want: Requirements, *, provider: str, bid_share: float) -> Candidate:
    """One row of a search in our units. We bid `bid_share` of the minimum bid, so that we are not outbid at once."""
    bid, price = None, row.dph_total
    if want.interruptible:
        least = row.min_bid if row.min_bid is not None else row.dph_total
        bid = MicroDollars(max(least, round(least * bid_share)))
        # A search for bids shows the least bid in `dph_total`, disk included.
        price = MicroDollars(row.dph_total + bid - least)
    return Candidate(
        offer=Offer(
            id=str(row.id),
            provider=provider,
            price_per_hour=price,
            gpu=row.gpu_name,
            gpus=row.num_gpus,
            vram_gib=(row.gpu_ram or 0.0) / 1024,
            machine_id=None if row.machine_id is None else str(row.machine_id),
            region=row.geolocation,
            reliability=row.reliability if row.reliability is not None else row.reliability2,
            bid_per_hour=bid,
        ),
        rentable=row.rentable is not False,
        verified=row.is_verified,
        datacenter=row.is_datacenter,
        disk_gib=None if row.disk_space is None else gib(row.disk_space),
        direct_ports=row.direct_port_count,
        contract_hours=None if row.duration is None else row.duration / 3600,
        cuda=row.cuda_max_good,
        traffic_per_gib=_traffic_price(row),
    )


def _traffic_price(row: OfferRow) -> MicroDollars:
    """Price per GiB; the direction is not known beforehand, so the higher price counts."""
    dearer = max(row.inet_down_cost or 0, row.inet_up_cost or 0)
    return MicroDollars(math.ceil(dearer * _GIB_IN_GB))
