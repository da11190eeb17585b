"""The quote's GPU memory: which offers are considered, what is warned of, and what a worker asks for later."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.states.provisioning.market import requirements
from stationmaster.errors import UserError
from stationmaster.model import FinishedRun, Offer, Requirements
from stationmaster.money import from_dollars
from stationmaster.offers import least_vram_mib
from stationmaster.providers.fake import FakeProvider
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.station.local.proposing.offer_choice import AskedCard
from stationmaster.station.local.proposing.quoting import Quoted, Work, quote_work
from tests.support.jobs.spine_values import job, spec

FLUX = find("flux-lora@2").recipe


def card(gpu: str, vram_gib: float, price: str) -> Offer:
    return Offer(id=gpu, provider="fake", price_per_hour=from_dollars(price), gpu=gpu, gpus=1, vram_gib=vram_gib)


CARDS = (
    card("RTX 3060", 12.0, "0.08"),
    card("RTX 4090", 24.0, "0.30"),
    card("RTX A6000", 48.0, "0.50"),
    card("A100", 80.0, "0.90"),
)


@dataclass
class Market(FakeProvider):
    """Offers its cards with enough memory, in their order, and remembers what was asked for."""

    cards: tuple[Offer, ...] = CARDS
    asked: list[Requirements] = field(default_factory=list)

    async def offers(self, want: Requirements) -> list[Offer]:
        self.asked.append(want)
        return [offer for offer in self.cards if offer.vram_gib * 1024 >= least_vram_mib(want.vram_gib)]


def quoted(
    market: Market,
    home: Path,
    *,
    asked: AskedCard | None = None,
    past: tuple[FinishedRun, ...] = (),
    **given: Any,
) -> Quoted:
    work = Work(recipe=FLUX, parameters=resolve(FLUX, given), images=20, card=asked)
    return quote_work(work, market, past_runs=lambda _recipe: past, home=home)


def test_the_quote_has_the_memory_beside_the_card_s(tmp_path: Path) -> None:
    found = quoted(Market(), tmp_path)
    quote = found.quote
    assert (quote.gpu, quote.gpu_gib, quote.min_vram_gib) == ("RTX 4090", 24.0, 24.0)
    assert quote.memory_expected_gib == pytest.approx(21.6, abs=0.05)
    assert found.notes == ()


def test_cards_that_are_too_small_are_left_out_and_a_worker_leaves_them_out_too(tmp_path: Path) -> None:
    found = quoted(Market(), tmp_path, batch_size=4)
    assert found.quote.gpu == "RTX A6000"
    assert found.notes == (
        "only GPUs with at least 27.5 GiB of memory are considered, because 27.5 GiB are expected; without the "
        "prediction it would be 24 GiB",
    )
    want = requirements(job(spec=spec(quote=found.quote)), FLUX)
    assert least_vram_mib(want.vram_gib) / 1024 == pytest.approx(found.quote.memory_expected_gib)


def test_earlier_runs_on_the_card_count_more_than_the_model(tmp_path: Path) -> None:
    past = FinishedRun(
        parameters=resolve(FLUX, {}), images=20, gpu="RTX 4090", seconds=9_000.0, peak_gpu_gib=23.8, gpu_gib=24.0
    )
    found = quoted(Market(), tmp_path, past=(past,))
    assert (found.quote.memory_expected_gib, found.quote.memory_runs) == (23.8, 1)
    assert found.quote.memory_basis == "from 1 earlier run"
    assert "it may not fit: 23.8 of the 24.0 GiB of RTX 4090" in found.notes[0]


def test_where_no_larger_card_is_offered_a_prediction_only_warns(tmp_path: Path) -> None:
    market = Market(cards=CARDS[:2])
    found = quoted(market, tmp_path, batch_size=4)
    assert (found.quote.gpu, found.quote.min_vram_gib) == ("RTX 4090", 24.0)
    assert [least_vram_mib(want.vram_gib) / 1024 > 24 for want in market.asked] == [True, False]
    assert found.notes == (
        "warning: GPU memory: it will not fit: about 27.5 of the 24.0 GiB of RTX 4090; to fit, set batch_size=1",
    )


def test_a_card_with_little_room_is_chosen_with_a_warning_that_names_the_cheapest_larger_one(tmp_path: Path) -> None:
    found = quoted(Market(), tmp_path, low_vram=False)
    assert found.quote.gpu == "RTX 4090"
    (warning,) = found.notes
    assert "it may not fit: 23.1 of the 24.0 GiB" in warning
    assert "set low_vram=true or take RTX A6000 with 48 GiB at $0.500/h, the cheapest that fits" in warning


def test_a_person_who_asks_about_a_small_card_gets_its_price_and_the_warning(tmp_path: Path) -> None:
    found = quoted(Market(), tmp_path, asked=AskedCard(name="RTX 3060"))
    assert (found.quote.gpu, found.quote.price_per_hour, found.is_offered) == ("RTX 3060", from_dollars("0.08"), True)
    assert (
        "it will not fit: about 21.6 of the 12.0 GiB of RTX 3060; to fit, take RTX 4090 with 24 GiB at $0.300/h"
        in found.notes[0]
    )


def test_a_card_that_is_not_offered_has_memory_and_hours_but_no_price(tmp_path: Path) -> None:
    found = quoted(Market(), tmp_path, asked=AskedCard(name="RTX 5090"))
    assert (found.quote.gpu, found.quote.gpu_gib, found.is_offered) == ("RTX 5090", 32.0, False)
    assert found.quote.hours_expected < quoted(Market(), tmp_path).quote.hours_expected
    assert found.notes == ("fake offers no RTX 5090 now, so there is no price",)


def test_a_card_can_be_asked_about_by_its_memory_alone(tmp_path: Path) -> None:
    assert quoted(Market(), tmp_path, asked=AskedCard(vram_gib=80)).quote.gpu == "A100"
    found = quoted(Market(), tmp_path, asked=AskedCard(name="A100", vram_gib=40))
    assert (found.is_offered, found.quote.gpu_gib) == (False, 40)


def test_without_any_offer_the_recipe_s_own_need_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        quoted(Market(cards=()), tmp_path, batch_size=4)
    assert "1 GPU with 24 GiB" in str(refused.value)
