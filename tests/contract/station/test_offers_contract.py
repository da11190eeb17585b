"""What every face may rely on when it asks what can be rented."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import ConfigInvalid, NotFound, UserError
from stationmaster.money import cost
from stationmaster.simulator.harness import simulator_thread
from stationmaster.station.offers import OfferSearch, Ranking
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.recipe_texts import small, write_recipe
from tests.support.jobs.station_kinds import every_station
from tests.support.machines.gpu_tools import nvidia_gpu, write_nvidia_smi
from tests.support.trusted_settings import write_trusted
from tests.support.vast.simulated_vast import API_KEY, quick_settings

OpenWorld = Callable[..., LocalWorld]


def search(**fields: Any) -> OfferSearch:
    return OfferSearch(**{"recipe": "tiny-lora@1", "provider": "loopback", **fields})


def test_an_offer_says_what_the_job_would_take_on_it(untouched: LocalWorld) -> None:
    ranking = untouched.station.offers.ranking(search(hours=2.5))
    (best,) = ranking.chosen
    assert (best.offer.provider, best.hours) == ("loopback", 2.5)
    assert (ranking.left_out, ranking.groups()) == ((), ())


def test_the_provider_of_the_settings_is_asked_unless_one_is_named(untouched: LocalWorld) -> None:
    assert untouched.station.offers.ranking(search(provider=None)) == untouched.station.offers.ranking(search())


def test_what_a_recipe_needs_counts(untouched: LocalWorld) -> None:
    assert untouched.station.offers.ranking(search(recipe="flux-lora@2")).chosen == (), "this computer offers no GPU"


def test_a_gpu_of_this_computer_is_offered_with_what_is_free_of_it(open_world: OpenWorld, tmp_path: Path) -> None:
    tools = write_nvidia_smi(tmp_path / "tools", [nvidia_gpu(free=20480), nvidia_gpu(1, free=1024)])
    world = open_world(PATH=f"{tools}:{os.environ['PATH']}")
    ranking = world.station.offers.ranking(search(gpus=1, vram_gib=16))
    (best,), (left,) = ranking.chosen, ranking.left_out
    assert (best.offer.gpu, best.offer.note) == ("RTX 4090", "number 0, 20.0 of 24.0 GiB free")
    assert left.why == "RTX 4090: 1.0 of 24.0 GiB are free (14.8 needed); other programs use 23.0"
    none = world.station.offers.ranking(search(gpus=2, vram_gib=16)).no_offer
    assert none is not None
    assert none.remedies == ("end the programs that use the GPU", "ask for fewer --gpus")


def test_looking_writes_no_job_and_rents_nothing(untouched: LocalWorld) -> None:
    untouched.station.offers.ranking(search())
    assert untouched.station.jobs.listed(with_ended=True) == []
    assert untouched.station.costs.lines() == []


BAD_SEARCHES: list[tuple[dict[str, Any], type[UserError], str]] = [
    ({"recipe": "tiny-laura@1"}, NotFound, "tiny-laura"),
    ({"recipe": ""}, NotFound, "recipe"),
    ({"provider": "mars"}, ConfigInvalid, "mars"),
    ({"account": "work"}, ConfigInvalid, "no accounts"),
    ({"provider": "vastai"}, ConfigInvalid, "needs a key"),
    ({"provider": "ssh"}, ConfigInvalid, "none of your own machines"),
    ({"provider": "local"}, ConfigInvalid, "none of your own machines"),
    ({"hours": 0.0}, UserError, "hours"),
    ({"hours": -1.0}, UserError, "hours"),
    ({"hours": float("nan")}, UserError, "hours"),
    ({"hours": float("inf")}, UserError, "hours"),
]


@pytest.mark.parametrize(("change", "error", "words"), BAD_SEARCHES)
def test_a_search_that_cannot_be_made_is_refused_in_one_line(
    untouched: LocalWorld, change: dict[str, Any], error: type[UserError], words: str
) -> None:
    with pytest.raises(error) as caught:
        untouched.station.offers.ranking(search(**change))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.fixture
def market(tmp_path: Path) -> Iterator[None]:
    """The settings of the world that is opened next name an account at a market with many offers."""
    with simulator_thread(quick_settings(tmp_path / "simulator", backend="paper", hosts=60)) as url:
        place = f'api_base_url = "{url}/api/v0"\ncall_spacing = 0'
        settings = f'[vastai]\n{place}\n[vastai.accounts.work]\napi_key = "{API_KEY}"\n'
        write_trusted(tmp_path / "stationmaster.toml", settings, home=tmp_path / "home")
        yield


def on_market(world: LocalWorld, **fields: Any) -> Ranking:
    return world.station.offers.ranking(search(recipe="llm-lora@2", provider="vastai", account="work", **fields))


@every_station
@pytest.mark.usefixtures("market")
def test_what_a_market_has_is_ranked_by_the_cost_of_the_whole_job_and_the_rest_is_told(world: LocalWorld) -> None:
    plain = on_market(world, hours=4.0)
    costs = [ranked.job_cost for ranked in plain.chosen]
    assert costs
    assert costs == [cost(ranked.offer.price_per_hour, ranked.hours * 3600) for ranked in plain.chosen]
    assert len({ranked.hours for ranked in plain.chosen}) > 1, "a faster GPU takes less time"
    prices = sorted(ranked.offer.price_per_hour for ranked in plain.chosen)
    middle = prices[len(prices) // 2]
    capped = on_market(world, hours=4.0, max_price=middle)
    assert {ranked.offer.id for ranked in capped.chosen} == {
        ranked.offer.id for ranked in plain.chosen if ranked.offer.price_per_hour <= middle
    }
    (dear,) = (group for group in capped.groups() if group.too_dear)
    assert "above the cap" in dear.kind
    assert sum(group.count for group in capped.groups()) == len(capped.left_out)


@pytest.mark.usefixtures("market")
def test_a_machine_whose_driver_is_too_old_for_the_recipe_is_no_offer(open_world: OpenWorld, tmp_path: Path) -> None:
    world = open_world(STATIONMASTER_RECIPES=str(tmp_path / "recipes"))
    for name, cuda in (("any", ""), ("new", ", cuda: 13.0"), ("none", ", cuda: 99.0")):
        needs = f"name: {name}\nneeds: {{gpus: 1, vram_gib: 24{cuda}}}"
        write_recipe(tmp_path / "recipes", name, small(("name: small", needs)))

    def offered(recipe: str) -> set[str]:
        found = world.station.offers.ranking(search(recipe=f"{recipe}@1", provider="vastai", account="work"))
        return {ranked.offer.id for ranked in found.chosen}

    assert offered("any") > offered("new") > offered("none") == set()


@pytest.mark.usefixtures("market")
def test_bids_are_cheaper_than_machines_that_stay(world: LocalWorld) -> None:
    bids = {ranked.offer.id: ranked.offer.price_per_hour for ranked in on_market(world, interruptible=True).chosen}
    stays = {ranked.offer.id: ranked.offer.price_per_hour for ranked in on_market(world).chosen}
    assert bids.keys() & stays.keys()
    assert all(bids[each] < stays[each] for each in bids.keys() & stays.keys())


@pytest.mark.usefixtures("market")
def test_an_account_that_nobody_has_set_up_is_told_beside_those_that_are(world: LocalWorld) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        world.station.offers.ranking(search(provider="vastai", account="play"))
    assert "play" in str(caught.value)
    assert "work" in str(caught.value.hint)
