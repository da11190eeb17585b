"""What every face may rely on when it asks what can be rented."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stationmaster.errors import ConfigInvalid, NotFound, UserError
from stationmaster.station.offers import OfferSearch
from tests.support.jobs.local_world import LocalWorld


def search(**fields: Any) -> OfferSearch:
    return OfferSearch(**{"recipe": "tiny-lora@1", "provider": "loopback", **fields})


def test_an_offer_says_what_the_job_would_take_and_cost_on_it(world: LocalWorld) -> None:
    ranking = world.station.offers.ranking(search(hours=2.5))
    (best,) = ranking.chosen
    assert (best.offer.provider, best.hours) == ("loopback", 2.5)
    assert best.job_cost == best.offer.price_per_hour * 2.5
    assert (ranking.left_out, ranking.groups()) == ((), ())


def test_the_provider_of_the_settings_is_asked_unless_one_is_named(world: LocalWorld) -> None:
    assert world.station.offers.ranking(search(provider=None)) == world.station.offers.ranking(search())


def test_what_a_recipe_needs_counts(world: LocalWorld) -> None:
    assert world.station.offers.ranking(search(recipe="flux-lora@2")).chosen == (), "this computer offers no GPU"


def test_looking_writes_no_job_and_rents_nothing(world: LocalWorld) -> None:
    world.station.offers.ranking(search())
    assert world.station.jobs.listed(with_ended=True) == []
    assert world.station.costs.lines() == []


BAD_SEARCHES: list[tuple[dict[str, Any], type[UserError], str]] = [
    ({"recipe": "tiny-laura@1"}, NotFound, "tiny-laura"),
    ({"recipe": ""}, NotFound, "recipe"),
    ({"provider": "mars"}, ConfigInvalid, "mars"),
    ({"account": "work"}, ConfigInvalid, "no accounts"),
    ({"hours": 0.0}, UserError, "hours"),
    ({"hours": -1.0}, UserError, "hours"),
    ({"hours": float("nan")}, UserError, "hours"),
    ({"hours": float("inf")}, UserError, "hours"),
]


@pytest.mark.parametrize(("change", "error", "words"), BAD_SEARCHES)
def test_a_search_that_cannot_be_made_is_refused_in_one_line(
    world: LocalWorld, change: dict[str, Any], error: type[UserError], words: str
) -> None:
    with pytest.raises(error) as caught:
        world.station.offers.ranking(search(**change))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.fixture
def market(tmp_path: Path) -> None:
    """The settings of the world that is opened next name an account at a market."""
    (tmp_path / "stationmaster.toml").write_text('[vastai.accounts.work]\napi_key = "k"\n')


@pytest.mark.usefixtures("market")
def test_an_account_that_nobody_has_set_up_is_told_beside_those_that_are(world: LocalWorld) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        world.station.offers.ranking(search(provider="vastai", account="play"))
    assert "play" in str(caught.value)
    assert "work" in str(caught.value.hint)
