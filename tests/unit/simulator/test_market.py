from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.simulator.market import GPUS, Market

moments = st.floats(min_value=0, max_value=2e9)


@given(st.integers(0, 1000), moments)
def test_the_same_seed_and_moment_give_the_same_offers(seed: int, now: float) -> None:
    first, second = Market(seed=seed, hosts=20), Market(seed=seed, hosts=20)
    assert first.offers(now, rented=(), listings={}) == second.offers(now, rented=(), listings={})


@given(st.integers(0, 1000), moments)
def test_every_gpu_can_be_had_from_a_dependable_host_at_any_time(seed: int, now: float) -> None:
    offers = Market(seed=seed).offers(now, rented=(), listings={})
    dependable = {offer.gpu.name for offer in offers if offer.verified and offer.reliability > 0.99 and offer.ports}
    assert dependable >= {gpu.name for gpu in GPUS}


@given(st.integers(0, 1000), moments)
def test_a_bid_costs_less_than_the_full_price(seed: int, now: float) -> None:
    for offer in Market(seed=seed, hosts=30).offers(now, rented=(), listings={}):
        assert 0 < offer.min_bid_usd_per_hour < offer.gpu_usd_per_hour


def test_prices_and_offers_change_from_period_to_period() -> None:
    market = Market(seed=1, period_seconds=600)
    now, later = (market.offers(moment, rented=(), listings={}) for moment in (0.0, 600.0))
    assert {offer.ask_id for offer in now} != {offer.ask_id for offer in later}
    assert [offer.gpu_usd_per_hour for offer in now[:5]] != [offer.gpu_usd_per_hour for offer in later[:5]]


def test_a_rented_machine_is_not_offered_and_comes_back_under_another_ask() -> None:
    market = Market(seed=1)
    offer = market.offers(0.0, rented=(), listings={})[0]
    rest = market.offers(0.0, rented={offer.machine_id}, listings={})
    assert offer.machine_id not in {other.machine_id for other in rest}
    again = market.offers(0.0, rented=(), listings={offer.machine_id: 1})[0]
    assert (again.machine_id, again.ask_id) == (offer.machine_id, offer.ask_id + 1)
