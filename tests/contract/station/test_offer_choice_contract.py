"""The offers of a proposal: one search, and whichever is confirmed is what the job is about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.errors import NoOfferFits, NotFound
from stationmaster.money import from_dollars
from stationmaster.providers.vastai.ssh_keys import ensure_pair
from stationmaster.simulator.harness import simulator_thread
from tests.contract.station.conftest import OpenWorld
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Customer]:
    """A simulated Vast.ai whose offers stay as they are."""
    with simulator_thread(quick_settings(tmp_path_factory.mktemp("simulator"))) as url:
        customer = Customer(url)
        yield customer
        customer.close()


@pytest.fixture
def priced(open_world: OpenWorld, market: Customer, tmp_path: Path) -> LocalWorld:
    return open_world(**rents_at(market.url, tmp_path))


def rents_at(url: str, folder: Path) -> dict[str, str]:
    return {
        "VASTAI_API_KEY": API_KEY,
        "VASTAI_API_BASE_URL": f"{url}/api/v0",
        "VASTAI_SSH_KEY_PATH": str(ensure_pair(folder / "keys" / "id_ed25519").private_path),
        "STATIONMASTER_VASTAI__CALL_SPACING": "0",
        "STATIONMASTER_PROVIDER": "vastai",
    }


def test_the_proposal_has_the_best_offers_each_with_its_own_price_and_limits(
    priced: LocalWorld, pictures: Path
) -> None:
    terms = priced.station.proposals.propose(priced.request(pictures)).terms
    assert 2 <= len(terms.offers) <= 5
    assert terms.offers[0].quote == terms.quote
    assert terms.quote.offer == terms.offers[0].offer.id
    for one in terms.offers:
        assert one.quote.offer == one.offer.id
        assert one.quote.price_per_hour == one.offer.price_per_hour
        assert one.max_price_per_hour == round(1.2 * one.offer.price_per_hour)
    assert len({one.offer.id for one in terms.offers}) == len(terms.offers)


@every_station
def test_the_job_gets_the_quote_and_the_limits_that_were_shown_for_the_chosen_offer(
    priced: LocalWorld, pictures: Path
) -> None:
    proposals = priced.station.proposals
    proposal = proposals.propose(priced.request(pictures, id="mine"))
    assert proposals.find(proposal.id) == proposal
    second = proposal.terms.offers[1]
    accepted = proposals.submit(proposal.id, offer=second.offer.id)
    spec = accepted.job.spec
    assert (spec.quote, spec.max_seconds, spec.max_spend) == (second.quote, second.max_seconds, second.max_spend)
    again = proposals.submit(proposal.id, offer=proposal.terms.offers[0].offer.id)
    assert (again.created, again.job.spec.quote) == (False, second.quote)


def test_nothing_is_searched_or_asked_again_after_the_choice(
    open_local_world: OpenWorld, pictures: Path, tmp_path: Path
) -> None:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        world = open_local_world(**rents_at(url, tmp_path))
        proposal = world.station.proposals.propose(world.request(pictures, id="mine"))
    chosen = proposal.terms.offers[-1]  # the provider can no longer be reached
    assert world.station.proposals.submit(proposal.id, offer=chosen.offer.id).job.spec.quote == chosen.quote


def test_an_offer_that_was_not_shown_is_refused(priced: LocalWorld, pictures: Path) -> None:
    proposal = priced.station.proposals.propose(priced.request(pictures, id="mine"))
    with pytest.raises(NotFound, match="the proposal has no offer 1"):
        priced.station.proposals.submit(proposal.id, offer="1")
    assert priced.station.jobs.listed(with_ended=True) == []


def test_a_request_may_name_the_offer(priced: LocalWorld, pictures: Path) -> None:
    best = priced.station.proposals.check(priced.request(pictures)).offers
    named = priced.station.proposals.check(priced.request(pictures, offer=best[-1].offer.id))
    assert named.quote == best[-1].quote
    assert [one.offer.id for one in named.offers] == [one.offer.id for one in best]
    with pytest.raises(NotFound, match="vastai has no offer 1 that fits tiny-lora@1 now") as problem:
        priced.station.proposals.propose(priced.request(pictures, offer="1"))
    assert "stationmaster offers --recipe tiny-lora@1" in str(problem.value.hint)


def test_a_plan_without_an_offer_says_why_and_a_proposal_fails(priced: LocalWorld, pictures: Path) -> None:
    request = priced.request(pictures, max_price=from_dollars("0.001"))
    terms = priced.station.proposals.check(request)
    assert terms.no_offer is not None
    assert "no offer of vastai fits tiny-lora@1: " in terms.no_offer
    assert "what helps: submit with --max-price" in terms.no_offer
    assert (terms.offers, terms.quote.price_per_hour, terms.quote.offer) == ((), 0, None)
    assert terms.steps
    with pytest.raises(NoOfferFits):
        priced.station.proposals.propose(request)


def test_what_is_free_has_no_offers_to_choose_from(world: LocalWorld, pictures: Path) -> None:
    terms = world.station.proposals.check(world.request(pictures))
    assert (terms.offers, terms.quote.offer, terms.no_offer) == ((), None, None)
