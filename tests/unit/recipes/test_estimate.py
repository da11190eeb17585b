"""Hours and price before the start, from the recipe's time model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stationmaster.errors import RecipeInvalid
from stationmaster.estimate import GPU_FACTORS, estimate, gpu_factor
from stationmaster.money import MicroDollars, from_dollars
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from tests.support.jobs.recipe_texts import small_recipe

ON_A_4090 = ("fixed: 1m", "fixed: 1m, seconds_per_image: 0.5, reference_gpu: RTX 4090, spread: 0.2")
RATE = from_dollars("0.36")


def test_the_demo_takes_about_a_minute() -> None:
    recipe = find("tiny-lora@1").recipe
    result = estimate(recipe, resolve(recipe, {}), images=12, gpu=None, rate_per_hour=RATE)
    assert result.steps == 600
    assert 60 <= result.expected_hours * 3600 <= 70


def test_fixed_images_and_steps_add_up() -> None:
    recipe = small_recipe(ON_A_4090)
    result = estimate(recipe, resolve(recipe, {"steps": 20}), images=10, gpu="RTX 4090", rate_per_hour=RATE)
    assert result.expected_hours * 3600 == pytest.approx(60 + 5 + 40)
    assert result.low_hours * 3600 == pytest.approx(105 * 0.8)
    assert result.high_hours * 3600 == pytest.approx(105 * 1.2)
    assert result.expected_cost == 10_500
    assert result.notes == ()


def test_a_slower_gpu_takes_longer_for_the_steps_only() -> None:
    recipe = small_recipe(ON_A_4090)
    result = estimate(recipe, resolve(recipe, {}), images=0, gpu="NVIDIA GeForce RTX 3090", rate_per_hour=RATE)
    assert result.expected_hours * 3600 == pytest.approx(60 + 10 * 2.0 * GPU_FACTORS["RTX 3090"])


def test_an_unknown_gpu_is_said_and_widens_the_range() -> None:
    recipe = small_recipe(ON_A_4090)
    result = estimate(recipe, resolve(recipe, {}), images=0, gpu="Voodoo 2", rate_per_hour=RATE)
    assert result.notes == ("the speed of Voodoo 2 is unknown; estimated as RTX 4090",)
    assert result.high_hours == pytest.approx(result.expected_hours * 1.5)


@pytest.mark.parametrize(
    ("name", "known_as"),
    [("H100_SXM", "H100 SXM"), ("H100 NVL", "H100"), ("RTX 6000Ada", "RTX 6000 ADA"), ("NVIDIA L40S", "L40S")],
)
def test_gpus_are_known_under_the_names_that_providers_use(name: str, known_as: str) -> None:
    assert gpu_factor(name) == GPU_FACTORS[known_as]


def test_a_gpu_is_not_taken_for_one_whose_name_begins_alike() -> None:
    assert gpu_factor("L400") is None


def test_a_time_model_without_a_number_is_the_recipes_fault() -> None:
    recipe = small_recipe(("seconds_per_step: 2.0", "seconds_per_step: parameters.note"))
    with pytest.raises(RecipeInvalid, match="not a number"):
        estimate(recipe, resolve(recipe, {}), images=1, gpu=None, rate_per_hour=RATE)


@settings(deadline=None)
@given(
    steps=st.integers(1, 100),
    images=st.integers(0, 10_000),
    gpu=st.sampled_from([None, "X", *GPU_FACTORS]),
    rate=st.integers(0, 50_000_000),
)
def test_low_is_never_above_expected_nor_expected_above_high(
    steps: int, images: int, gpu: str | None, rate: int
) -> None:
    recipe = small_recipe(ON_A_4090)
    result = estimate(
        recipe, resolve(recipe, {"steps": steps}), images=images, gpu=gpu, rate_per_hour=MicroDollars(rate)
    )
    assert 0 < result.low_hours <= result.expected_hours <= result.high_hours
    assert 0 <= result.low_cost <= result.expected_cost <= result.high_cost
