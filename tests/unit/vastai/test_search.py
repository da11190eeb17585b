from __future__ import annotations

from typing import Any

import pytest

from stationmaster.model import Requirements
from stationmaster.providers.vastai.search import candidate, disk_gb, search_query
from stationmaster.providers.vastai.wire import OfferRow, read
from tests.support.vast.vast_client_bench import offer_row
from tests.support.vast.vast_wishes import vast_settings

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=40.0, hours=4.0)
PREFERENCES = vast_settings(preferred_gpus=("4090",))


def row(**changes: Any) -> OfferRow:
    return read(OfferRow, offer_row(**changes), what="an offer")


def test_a_search_asks_for_all_that_must_hold() -> None:
    assert search_query(WANT, PREFERENCES, storage_gb=64.0) == {
        "type": "on-demand",
        "allocated_storage": 64.0,
        "verified": {"eq": True},
        "external": {"eq": False},
        "rentable": {"eq": True},
        "num_gpus": {"eq": 1},
        "disk_space": {"gte": 64.0},
        "direct_port_count": {"gte": 1},
        "duration": {"gte": 1.5 * 4 * 3600},
        "reliability": {"gte": 0.95},
        "gpu_ram": {"gte": 24 * 950},
        "cuda_max_good": {"gte": 12.0},
    }


def test_the_share_of_a_hosts_gpus_is_never_asked_for() -> None:
    assert "gpu_frac" not in search_query(WANT, PREFERENCES, storage_gb=64.0)


def test_work_without_a_gpu_takes_any_machine() -> None:
    query = search_query(Requirements(gpus=0, vram_gib=0.0), vast_settings(min_vram_gb=24.0), storage_gb=8.0)
    assert query["num_gpus"] == {"eq": 1}
    assert "gpu_ram" not in query


@pytest.mark.parametrize(
    ("needed_gib", "default_gb", "rented_gb"), [(40.0, 64.0, 64.0), (100.0, 64.0, 108.0), (1.0, 0.0, 8.0)]
)
def test_the_disk_is_what_is_needed_and_never_less_than_the_default(
    needed_gib: float, default_gb: float, rented_gb: float
) -> None:
    assert disk_gb(Requirements(disk_gib=needed_gib), default_gb=default_gb) == rented_gb


def test_an_offer_is_told_in_our_units() -> None:
    found = candidate(row(), WANT, provider="vastai", bid_share=1.1)
    assert (found.offer.id, found.offer.machine_id, found.offer.gpu) == ("31415926", "12345", "RTX 4090")
    assert found.offer.price_per_hour == 371_900
    assert found.offer.vram_gib == pytest.approx(23.99, abs=0.01)
    assert found.offer.bid_per_hour is None
    assert found.contract_hours == 2750.0
    assert found.disk_gib == pytest.approx(756.6, abs=0.1)
    assert found.traffic_per_gib == 3222  # the dearer way, $0.003 per GB
    assert found.datacenter


def test_a_bid_is_a_little_above_the_least_and_its_price_includes_the_disk() -> None:
    want = Requirements(gpus=1, interruptible=True)
    found = candidate(row(min_bid=0.2, dph_total=0.212, is_bid=True), want, provider="vastai", bid_share=1.1)
    assert found.offer.bid_per_hour == 220_000
    assert found.offer.price_per_hour == 232_000
    assert search_query(want, PREFERENCES, storage_gb=8.0)["type"] == "bid"


@pytest.mark.parametrize(
    ("changes", "verified"),
    [({}, True), ({"verification": "unverified"}, False), ({"verification": "deverified", "verified": True}, False)],
)
def test_only_verified_is_verified(changes: dict[str, Any], verified: bool) -> None:
    assert candidate(row(**changes), WANT, provider="vastai", bid_share=1.1).verified is verified
