"""Whether a job fits a card: the warning, and what would make it fit."""

from __future__ import annotations

import pytest

from stationmaster.estimate import Card, MemoryEstimate, change_that_fits, estimate_memory, fit_warning, fits_well
from stationmaster.model import Offer
from stationmaster.money import from_dollars
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find

CARD = Card(name="RTX 4090", gib=24.0)


def memory(expected: float, *, high: float) -> MemoryEstimate:
    return MemoryEstimate(low_gib=expected * 0.9, expected_gib=expected, high_gib=high)


@pytest.mark.parametrize(
    ("expected", "high", "problem"),
    [
        (21.0, 23.9, None),
        (21.7, 23.9, None),  # 90 %, as it is shown
        (22.0, 23.9, "little room is left: 22.0 of the 24.0 GiB of RTX 4090"),
        (21.0, 24.1, "it may not fit: 21.0 of the 24.0 GiB of RTX 4090 expected, up to 24.1 GiB possible"),
        (24.1, 24.2, "it probably does not fit: about 24.1 of the 24.0 GiB of RTX 4090"),
        (27.0, 29.0, "it will not fit: about 27.0 of the 24.0 GiB of RTX 4090"),
    ],
)
def test_the_warning_says_how_sure_it_is(expected: float, high: float, problem: str | None) -> None:
    warning = fit_warning(memory(expected, high=high), CARD)
    assert warning == (None if problem is None else f"warning: GPU memory: {problem}")
    assert fits_well(memory(expected, high=high), CARD.gib) is (problem is None)


def test_the_warning_names_what_would_help() -> None:
    larger = Offer(id="1", provider="x", price_per_hour=from_dollars("0.8"), gpu="A100", gpus=1, vram_gib=80.0)
    warning = fit_warning(memory(30.0, high=33.0), CARD, change="batch_size=2", larger=larger)
    assert warning is not None
    assert "to fit, set batch_size=2 or take A100 with 80 GiB at $0.800/h, the cheapest that fits" in warning


@pytest.mark.parametrize(
    ("recipe", "given", "gib", "change"),
    [
        ("sdxl-lora@2", {"batch_size": 16}, 12.0, "batch_size=7"),
        ("flux-lora@2", {"low_vram": False}, 24.0, "low_vram=true"),
        ("flux-kontext-lora@2", {"largest_resolution": "1024", "rank": 128}, 32.0, "largest_resolution=768"),
        ("flux-lora@2", {"rank": 128, "ema": True}, 29.0, "ema=false"),
        ("flux-lora@2", {}, 16.0, None),
    ],
)
def test_the_largest_batch_that_fits_comes_first_then_other_parameters(
    recipe: str, given: dict[str, object], gib: float, change: str | None
) -> None:
    found = find(recipe).recipe
    parameters = resolve(found, given)
    assert change_that_fits(found, parameters, lambda those: estimate_memory(found, those), size_gib=gib) == change
