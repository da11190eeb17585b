from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.model import Offer, Requirements
from stationmaster.money import MicroDollars, from_dollars
from stationmaster.offers import Candidate, Preferences, least_vram_mib, rank, why_none
from tests.support.vast.vast_wishes import vast_settings

WANT = Requirements(gpus=1, vram_gib=24.0, disk_gib=40.0, hours=10.0)
PLAIN = vast_settings()
HOURS = {"RTX 4090": 10.0, "RTX 3090": 19.0, "H100 SXM": 4.2, "A100 PCIE": 8.8}


def hours_on(gpu: str | None) -> float:
    return HOURS.get(gpu or "", 20.0)


def offered(**changes: Any) -> Candidate:
    facts = {name: changes.pop(name) for name in list(changes) if name in Candidate.__dataclass_fields__}
    offer = Offer(
        id=changes.pop("id", "1"),
        provider="vastai",
        price_per_hour=from_dollars(changes.pop("price", "0.40")),
        gpu=changes.pop("gpu", "RTX 4090"),
        gpus=changes.pop("gpus", 1),
        vram_gib=changes.pop("vram_gib", 24564 / 1024),
        machine_id=changes.pop("machine_id", "12345"),
        region=changes.pop("region", "Quebec, CA"),
        reliability=changes.pop("reliability", 0.99),
    )
    assert not changes
    defaults = {"disk_gib": 500.0, "direct_ports": 50, "contract_hours": 1000.0, "cuda": 12.8}
    return Candidate(offer=offer, **(defaults | facts))


def ids(*candidates: Candidate, want: Requirements = WANT, preferences: Preferences = PLAIN) -> list[str]:
    return [one.offer.id for one in rank(candidates, want, preferences, hours_on).chosen]


def why(candidate: Candidate, *, want: Requirements = WANT, preferences: Preferences = PLAIN) -> str | None:
    ranking = rank([candidate], want, preferences, hours_on)
    return ranking.left_out[0].why if ranking.left_out else None


def test_a_dearer_gpu_wins_when_the_whole_job_is_cheaper_on_it() -> None:
    slow = offered(id="slow", gpu="RTX 3090", price="0.30")
    fast = offered(id="fast", gpu="RTX 4090", price="0.40")
    assert ids(slow, fast) == ["fast", "slow"]
    assert ids(replace(slow, offer=replace(slow.offer, price_per_hour=from_dollars("0.20"))), fast) == ["slow", "fast"]


def test_the_cost_of_the_whole_job_is_told() -> None:
    ranking = rank([offered(gpu="H100 SXM", price="2.00")], WANT, vast_settings(), hours_on)
    assert ranking.chosen[0].hours == 4.2
    assert ranking.chosen[0].job_cost == from_dollars("8.40")


def test_traffic_is_part_of_the_price_and_can_decide() -> None:
    want = replace(WANT, traffic_gib=100.0)
    cheap_machine = offered(id="dear traffic", price="0.40", traffic_per_gib=from_dollars("0.02"))
    free_traffic = offered(id="free traffic", price="0.50")
    assert ids(cheap_machine, free_traffic) == ["dear traffic", "free traffic"]
    assert ids(cheap_machine, free_traffic, want=want) == ["free traffic", "dear traffic"]
    ranking = rank([cheap_machine], want, vast_settings(), hours_on)
    assert ranking.chosen[0].offer.price_per_hour == from_dollars("0.60")
    assert ranking.chosen[0].job_cost == from_dollars("6.00")


def test_the_cap_is_on_the_total_price() -> None:
    want = replace(WANT, traffic_gib=100.0, max_price_per_hour=from_dollars("0.45"))
    assert why(offered(price="0.40"), want=want) is None
    assert why(offered(price="0.40", traffic_per_gib=from_dollars("0.02")), want=want) == (
        "$0.600 per hour is above the cap of $0.450"
    )


@given(st.integers(1, 10**7), st.none() | st.integers(1, 10**7), st.integers(1, 10**7))
def test_no_offer_above_either_cap_is_ever_chosen(price: int, jobs: int | None, everyones: int) -> None:
    candidate = offered()
    candidate = replace(candidate, offer=replace(candidate.offer, price_per_hour=MicroDollars(price)))
    want = replace(WANT, max_price_per_hour=None if jobs is None else MicroDollars(jobs))
    preferences = vast_settings(max_bid_per_hour=MicroDollars(everyones))
    allowed = all(cap is None or price <= cap for cap in (jobs, everyones))
    assert bool(ids(candidate, want=want, preferences=preferences)) is allowed


def test_preferred_gpus_come_first_in_their_order_and_others_last() -> None:
    offers = [
        offered(id="h100", gpu="H100 SXM", price="0.10"),
        offered(id="a100", gpu="A100 PCIE", price="0.20"),
        offered(id="4090", gpu="RTX 4090", price="0.90"),
    ]
    assert ids(*offers, preferences=vast_settings(preferred_gpus=("4090", "A100"))) == ["4090", "a100", "h100"]


def test_work_without_a_gpu_prefers_none() -> None:
    offers = [offered(id="dear", gpu="RTX 4090", price="0.90"), offered(id="cheap", gpu="RTX 3090", price="0.10")]
    want = Requirements(gpus=0, disk_gib=1.0)
    assert rank(offers, want, vast_settings(preferred_gpus=("4090",)), lambda gpu: 1.0).chosen[0].offer.id == "cheap"


def test_preferred_regions_come_first_and_blocked_ones_never() -> None:
    offers = [
        offered(id="se", region="Sweden, SE", price="0.30"),
        offered(id="ca", region="Quebec, CA", price="0.50"),
        offered(id="hk", region="Hong Kong, HK", price="0.01"),
        offered(id="de", region="Germany, DE", price="0.40"),
    ]
    assert ids(*offers, preferences=vast_settings(preferred_regions=("CA", "Germany"))) == ["ca", "de", "se"]
    assert why(offers[2]) == "HK is blocked"
    assert why(offers[2], preferences=vast_settings(blocked_regions=())) is None


def test_california_is_not_canada() -> None:
    assert why(offered(region="California, US"), preferences=vast_settings(blocked_regions=("CA",))) is None
    assert why(offered(region="Quebec, CA"), preferences=vast_settings(blocked_regions=("CA",))) == "CA is blocked"


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (offered(rentable=False), "already rented"),
        (offered(verified=False), "not verified"),
        (offered(gpus=0), "GPU (1 needed)"),
        (offered(vram_gib=16376 / 1024), "GiB of GPU memory"),
        (offered(disk_gib=39.0), "GiB of disk"),
        (offered(direct_ports=0), "no direct port"),
        (offered(contract_hours=14.9), "available for"),
        (offered(reliability=0.949), "reliability"),
        (offered(cuda=11.8), "CUDA"),
    ],
)
def test_what_a_loose_filter_let_through_is_left_out_with_its_reason(candidate: Candidate, reason: str) -> None:
    assert reason in str(why(candidate))


def test_a_host_that_failed_lately_is_avoided_whatever_its_offer_is_called() -> None:
    want = replace(WANT, avoided_machines=frozenset({"12345"}))
    assert why(offered(id="new-number"), want=want) == "this host failed recently"
    assert why(offered(machine_id=None), want=want) is None


def test_only_data_centres_where_that_is_wanted() -> None:
    preferences = vast_settings(datacenter_only=True)
    assert why(offered(), preferences=preferences) == "not in a data centre"
    assert why(offered(datacenter=True), preferences=preferences) is None


def test_a_blocked_machine_is_never_taken_whatever_its_offer_is_called() -> None:
    preferences = vast_settings(blocked_machines=("12345",))
    assert why(offered(id="new-number"), preferences=preferences) == "machine 12345 is blocked"
    assert why(offered(machine_id="678"), preferences=preferences) is None
    assert why(offered(machine_id=None), preferences=preferences) is None


def test_machines_that_nobody_verified_are_taken_only_where_that_is_wanted() -> None:
    assert why(offered(verified=False), preferences=vast_settings(verified_only=False)) is None


def test_what_was_left_out_for_the_same_reason_is_told_once_with_the_least_price() -> None:
    cap = replace(WANT, max_price_per_hour=from_dollars("0.45"))
    dear = [offered(id=price, price=price) for price in ("0.90", "0.60", "2.00")]
    slow = [offered(id=f"r{share}", reliability=share, price="0.10") for share in (0.90, 0.91)]
    groups = rank([*dear, *slow, offered(region="Hong Kong, HK")], cap, PLAIN, hours_on).groups()
    assert [(group.count, group.kind, group.cheapest.price_per_hour) for group in groups] == [
        (3, "above the cap of $0.450 per hour", from_dollars("0.60")),
        (2, "reliability below 0.95", from_dollars("0.10")),
        (1, "HK is blocked", from_dollars("0.40")),
    ]


@pytest.mark.parametrize("mib", [24564, 24576, 23028])
def test_every_card_sold_with_24_gigabytes_counts_as_one(mib: int) -> None:
    assert mib >= least_vram_mib(24.0)
    assert why(offered(vram_gib=mib / 1024)) is None


OFFERS = st.lists(
    st.builds(
        offered,
        id=st.uuids().map(str),
        gpu=st.sampled_from(["RTX 4090", "RTX 3090", "H100 SXM", "A100 PCIE", "Voodoo 2"]),
        price=st.decimals("0.01", "9", places=3).map(str),
        region=st.sampled_from(["Quebec, CA", "Sweden, SE", "Hong Kong, HK", None]),
        reliability=st.floats(0.9, 1.0),
        verified=st.booleans(),
        traffic_per_gib=st.integers(0, 20_000).map(MicroDollars),
    ),
    max_size=12,
    unique_by=lambda candidate: candidate.offer.id,
)


@given(OFFERS)
def test_every_offer_is_either_chosen_or_left_out_with_a_reason(candidates: list[Candidate]) -> None:
    ranking = rank(candidates, WANT, vast_settings(preferred_gpus=("4090",)), hours_on)
    told = [one.offer.id for one in ranking.chosen] + [one.offer.id for one in ranking.left_out]
    assert sorted(told) == sorted(candidate.offer.id for candidate in candidates)
    assert all(one.why for one in ranking.left_out)


@given(OFFERS, st.randoms())
def test_the_order_of_the_market_does_not_matter(candidates: list[Candidate], draw: Any) -> None:
    shuffled = list(candidates)
    draw.shuffle(shuffled)
    preferences = vast_settings(preferred_gpus=("4090", "A100"), preferred_regions=("SE",))
    assert rank(candidates, WANT, preferences, hours_on).chosen == rank(shuffled, WANT, preferences, hours_on).chosen


@given(OFFERS)
def test_among_equals_in_preference_the_cheapest_for_the_job_is_first(candidates: list[Candidate]) -> None:
    costs = [one.job_cost for one in rank(candidates, WANT, vast_settings(), hours_on).chosen]
    assert costs == sorted(costs)


@given(OFFERS)
def test_groups_count_everything_that_was_left_out(candidates: list[Candidate]) -> None:
    ranking = rank(candidates, WANT, vast_settings(preferred_gpus=("4090",)), hours_on)
    assert sum(group.count for group in ranking.groups()) == len(ranking.left_out)


def remedies(*candidates: Candidate, want: Requirements = WANT, preferences: Preferences = PLAIN) -> list[str]:
    """What helps besides waiting."""
    return list(why_none(rank(candidates, want, preferences, hours_on)).remedies[:-1])


def test_no_offer_is_explained_by_how_many_each_requirement_excluded() -> None:
    want = replace(WANT, max_price_per_hour=from_dollars("0.45"))
    dear = [offered(id=price, price=price) for price in ("0.90", "0.6001")]
    none = why_none(rank([*dear, offered(vram_gib=8.0, price="0.10")], want, PLAIN, hours_on))
    assert none.reasons == (
        "2 × above the cap of $0.450 per hour (from $0.600 per hour)",
        "1 × less than 24 GiB of GPU memory (from $0.100 per hour)",
    )
    assert none.remedies == ("submit with --max-price 0.601 or more", "wait until the market has other offers")


@pytest.mark.parametrize(
    ("candidate", "remedy"),
    [
        (offered(region="Hong Kong, HK"), ["remove HK from vastai.blocked_regions"]),
        (offered(verified=False), ["set vastai.verified_only to false"]),
        (offered(reliability=0.9496), ["lower vastai.min_reliability to 0.949"]),
        (offered(cuda=11.8), ["lower vastai.min_cuda to 11.8"]),
        (offered(price="9"), ["raise vastai.max_bid_per_hour to 9.000 or more"]),
        (offered(rentable=False), []),
        (offered(gpus=0), []),
        (offered(vram_gib=8.0), []),
        (offered(disk_gib=39.0), []),
        (offered(contract_hours=14.9), []),
    ],
)
def test_only_a_change_that_allows_an_offer_is_named(candidate: Candidate, remedy: list[str]) -> None:
    assert remedies(candidate, preferences=vast_settings(max_bid_per_hour=from_dollars("4.50"))) == remedy


def test_a_higher_price_is_no_remedy_if_the_dear_offers_do_not_fit_either() -> None:
    want = replace(WANT, max_price_per_hour=from_dollars("0.45"))
    assert remedies(offered(price="0.90", vram_gib=8.0), want=want) == []
    assert remedies(offered(price="0.90", region="Hong Kong, HK"), want=want) == []


def test_what_a_setting_asks_for_beyond_the_job_can_be_given_up() -> None:
    small = replace(WANT, vram_gib=12.0)
    asks_more = vast_settings(min_vram_gb=24.0)
    card = offered(vram_gib=16376 / 1024)
    assert remedies(card, want=small, preferences=asks_more) == ["lower vastai.min_vram_gb to 16"]
    assert remedies(offered(vram_gib=8.0), want=small, preferences=asks_more) == []


def test_an_empty_market_and_one_that_has_changed_are_told_as_such() -> None:
    assert why_none(rank([], WANT, PLAIN, hours_on)).reasons == ("nothing is offered now",)
    assert why_none(rank([offered()], WANT, PLAIN, hours_on)).remedies == ("try again",)
