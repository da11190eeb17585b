"""The question which offer to rent: a yes is only to what was shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import typer

from stationmaster.cli.offer_table import choose_offer
from stationmaster.model import Offer, Quote
from stationmaster.money import MicroDollars, from_dollars
from stationmaster.station.proposals import OfferTerms, Terms
from tests.support.commands.scripted_person import ScriptedPerson


def offered(offer_id: str, gpu: str, per_hour: str, *, hours: float = 1.0, **fields: Any) -> OfferTerms:
    price = from_dollars(per_hour)
    cost = MicroDollars(round(price * hours))
    offer = Offer(
        id=offer_id, provider="vastai", price_per_hour=price, gpu=gpu, gpus=1, region="Sweden, SE", reliability=0.996
    )
    quote = Quote(
        hours_low=hours,
        hours_expected=hours,
        hours_high=hours,
        price_per_hour=price,
        cost_low=cost,
        cost_expected=cost,
        cost_high=cost,
        gpu=gpu,
        offer=offer_id,
    )
    values: dict[str, Any] = {
        "max_price_per_hour": MicroDollars(round(price * 1.2)),
        "max_seconds": hours * 7200,
        "max_spend": MicroDollars(cost * 2),
        "notes": ("a note",),
    }
    return OfferTerms(offer=offer, quote=quote, **{**values, **fields})


BEST = offered("11", "RTX 4090", "0.40")
CHEAPER = offered("22", "RTX 3090", "0.30")
DEARER = offered("33", "H100", "2.10", hours=0.5)


def terms(*offers: OfferTerms, about: OfferTerms = BEST) -> Terms:
    made = Terms(
        name="cats",
        recipe="tiny-lora@1",
        provider="vastai",
        parameters={},
        images=6,
        rows=0,
        dataset_bytes=0,
        quote=about.quote,
        max_price_per_hour=about.max_price_per_hour,
        max_seconds=about.max_seconds,
        max_spend=about.max_spend,
        steps=(),
        notes=about.notes,
        offers=offers,
    )
    assert made.on(about.offer.id) == made
    return made


ALL = terms(BEST, CHEAPER, DEARER)


def test_yes_takes_the_recommended_offer() -> None:
    person = ScriptedPerson("y")
    assert choose_offer(ALL, person, asked=None) == "11"
    assert person.asked == ["Rent number 1 (RTX 4090) for about $0.40? [y/n/number] "]
    assert "1  RTX 4090  $0.400    1h  $0.40  Sweden, SE    99.6 %  11     recommended" in person.saw()
    assert "3  H100      $2.100   30m  $1.05  Sweden, SE    99.6 %  33" in person.saw()


def test_a_cheaper_offer_is_taken_by_its_number_and_its_limits_are_told() -> None:
    person = ScriptedPerson("2")
    assert choose_offer(ALL, person, asked=None) == "22"
    assert person.told[-1] == "number 2: about $0.30 in 1h, at most $0.360/h and $0.60 in all"


def test_a_dearer_offer_is_shown_again_before_it_is_agreed_to() -> None:
    person = ScriptedPerson("3", "y")
    assert choose_offer(ALL, person, asked=None) == "33"
    assert person.asked[1] == (
        "Rent number 3 (H100) for about $1.05 in 30m, at most $2.520/h and $2.10 in all? [y/n/number] "
    )


def test_one_may_go_back_to_a_cheaper_one() -> None:
    assert choose_offer(ALL, ScriptedPerson("3", "1"), asked=None) == "11"


def test_an_offer_with_another_warning_is_asked_about_again() -> None:
    warned = replace(CHEAPER, notes=("a note", "it will not fit"))
    person = ScriptedPerson("2", "y")
    assert choose_offer(terms(BEST, warned), person, asked=None) == "22"
    assert "  note   it will not fit" in person.told
    assert len(person.asked) == 2


def test_enter_alone_rents_nothing() -> None:
    """One Enter too many after the questions before must not spend money."""
    person = ScriptedPerson("", "y")
    assert choose_offer(ALL, person, asked=None) == "11"
    assert "  answer y, n or a number of the table" in person.told


@pytest.mark.parametrize("answers", [("n",), ("No",), ("3", "n")])
def test_no_ends_without_an_error(answers: tuple[str, ...]) -> None:
    person = ScriptedPerson(*answers)
    with pytest.raises(typer.Exit) as left:
        choose_offer(ALL, person, asked=None)
    assert left.value.exit_code == 0
    assert person.told[-1] == "aborted; nothing was changed"


def test_an_answer_that_is_none_is_asked_for_again() -> None:
    person = ScriptedPerson("maybe", "0", "9", "11", "1")
    assert choose_offer(ALL, person, asked=None) == "11"
    assert "  answer y, n or a number of the table" in person.told
    assert "  there is no offer number 9 (1 to 3)" in person.told


def test_an_offer_that_was_asked_for_is_the_one_in_question() -> None:
    person = ScriptedPerson("y")
    assert choose_offer(terms(BEST, CHEAPER, DEARER, about=DEARER), person, asked="33") == "33"
    assert person.asked[0].startswith("Rent number 3 (H100)")
    assert "as asked" in person.saw()


def test_a_single_offer_has_no_number_to_choose() -> None:
    person = ScriptedPerson("2", "y")
    assert choose_offer(terms(BEST), person, asked=None) == "11"
    assert person.asked[0].endswith("[y/n] ")
