"""Terms that a newer version stored are read by this one."""

from __future__ import annotations

import dataclasses
import json

from stationmaster.model import Offer, Quote
from stationmaster.money import MicroDollars
from stationmaster.station.local.proposing.stored import terms_of
from stationmaster.station.proposals import OfferTerms, PlannedStep, Terms

_QUOTE = Quote(
    hours_expected=1.0,
    hours_low=0.9,
    hours_high=1.5,
    cost_expected=MicroDollars(400_000),
    cost_low=MicroDollars(300_000),
    cost_high=MicroDollars(900_000),
    price_per_hour=MicroDollars(400_000),
)
_OFFER = OfferTerms(
    offer=Offer(id="11", provider="vastai", price_per_hour=MicroDollars(400_000), gpu="RTX 4090"),
    quote=_QUOTE,
    max_price_per_hour=MicroDollars(480_000),
    max_seconds=14_400.0,
    max_spend=MicroDollars(1_800_000),
    notes=("a note",),
)
_TERMS = Terms(
    name="cats",
    recipe="tiny-lora@1",
    provider="vastai",
    parameters={"steps": 600},
    images=12,
    rows=0,
    dataset_bytes=1,
    quote=_QUOTE,
    max_price_per_hour=MicroDollars(480_000),
    max_seconds=14_400.0,
    max_spend=MicroDollars(1_800_000),
    steps=(PlannedStep(name="train", argv=("python", "train.py"), env={}),),
    notes=(),
    offers=(_OFFER,),
)


def test_terms_are_read_as_they_were_stored() -> None:
    assert terms_of(json.loads(json.dumps(dataclasses.asdict(_TERMS)))) == _TERMS


def test_what_a_newer_version_added_is_left_out() -> None:
    stored = json.loads(json.dumps(dataclasses.asdict(_TERMS)))
    for place in (stored, stored["quote"], stored["steps"][0], stored["offers"][0], stored["offers"][0]["offer"]):
        place["of_tomorrow"] = 1
    assert terms_of(stored) == _TERMS
