"""GPU memory before the start, from the recipe's model and the peaks of earlier runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import RecipeInvalid
from stationmaster.estimate import MemoryEstimate, estimate_memory, why_unknown
from stationmaster.model import FinishedRun
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.recipes.schema import Recipe
from tests.support.jobs.recipe_texts import small_recipe

GPU = ("parameters:\n", "needs: {gpus: 1, vram_gib: 8}\nparameters:\n  batch: {type: int, default: 1, help: Items.}\n")
MODEL = (
    "time: {",
    "memory: {base_gib: 10, per_item_gib: 2.0, batch: parameters.batch, least_gib: 11.0, spread: 0.1, measured_on: x}\n"
    "time: {",
)
RECIPE = small_recipe(GPU, MODEL)


def memory(batch: int, *past: FinishedRun, gpu: str | None = "RTX 4090", size: float = 24.0) -> MemoryEstimate:
    found = estimate_memory(RECIPE, resolve(RECIPE, {"batch": batch}), gpu=gpu, gpu_gib=size, past=past)
    assert found is not None
    return found


def run(batch: int, peak: float | None, *, gpu: str = "RTX 4090", size: float | None = 24.0) -> FinishedRun:
    parameters = resolve(RECIPE, {"batch": batch})
    return FinishedRun(parameters=parameters, images=1, gpu=gpu, seconds=9.0, peak_gpu_gib=peak, gpu_gib=size)


def test_the_model_adds_an_item_s_memory_for_each_of_the_batch() -> None:
    found = memory(4)
    assert (found.low_gib, found.expected_gib, found.high_gib) == pytest.approx((16.2, 18.0, 19.8))
    assert (found.past_runs, found.basis) == (0, "from the recipe's model")


def test_loading_can_take_more_than_a_step() -> None:
    recipe = small_recipe(GPU, (MODEL[0], MODEL[1].replace("least_gib: 11.0", "least_gib: 15.0")))
    found = estimate_memory(recipe, resolve(recipe, {"batch": 1}))
    assert found is not None
    assert found.expected_gib == 15.0


def test_the_peak_of_runs_with_the_same_settings_is_what_is_expected() -> None:
    found = memory(2, run(2, 15.0), run(2, 15.4), run(2, 15.2), run(1, None))
    assert found.expected_gib == 15.2
    assert (found.low_gib, found.high_gib) == pytest.approx((15.0 * 0.97, 15.4 * 1.03))
    assert (found.past_runs, found.basis) == (3, "from 3 earlier runs")


def test_runs_with_other_settings_are_scaled_by_the_model() -> None:
    found = memory(4, run(2, 15.0))  # 1 GiB more than the model: once, or half a GiB for each item
    assert found.expected_gib == pytest.approx((19.0 + 20.0) / 2)
    assert found.low_gib < 19.0
    assert found.high_gib > 20.0
    assert "1 earlier run with other settings" in found.basis


def test_runs_on_the_same_gpu_count_before_those_on_others() -> None:
    found = memory(2, run(2, 15.0), run(2, 19.0, gpu="H200", size=140.0), run(2, 13.0, gpu="RTX 3090"))
    assert (found.expected_gib, found.past_runs) == (15.0, 1)


def test_a_peak_on_a_larger_gpu_counts_up_to_the_model_s_high_figure() -> None:
    """PyTorch keeps what it once used as long as there is room."""
    found = memory(2, run(2, 60.0, gpu="H200", size=140.0))
    assert found.expected_gib == pytest.approx(14.0 * 1.1)
    assert found.low_gib < 14.0
    assert memory(2, run(2, 13.0, gpu="H200", size=140.0)).expected_gib == 13.0
    assert memory(2, run(2, 17.0, gpu="RTX 3090")).expected_gib == 17.0, "a card of the same size had no more room"


def test_a_recipe_without_a_model_predicts_nothing_and_says_so() -> None:
    recipe = small_recipe(GPU)
    assert estimate_memory(recipe, resolve(recipe, {}), past=[run(1, 9.0)]) is None
    assert why_unknown(recipe) == "small@1 has no memory model"
    assert why_unknown(small_recipe(("parameters:\n", "needs: {gpus: 0}\nparameters:\n"))) == "", (
        "without a GPU there is nothing to say"
    )


def knows_small_ones() -> Recipe:
    base = """base_gib: "9 if parameters.size == 's' else none\""""
    return small_recipe(GPU, (MODEL[0], MODEL[1].replace("base_gib: 10", base)))


def test_parameters_that_the_model_does_not_know_need_a_run_with_the_same() -> None:
    recipe = knows_small_ones()
    parameters = resolve(recipe, {"size": "m"})
    assert estimate_memory(recipe, parameters) is None
    assert "size" in why_unknown(recipe)
    past = [replace(run(1, 7.0), parameters=resolve(recipe, {"size": size, "steps": 3})) for size in "ms"]
    found = estimate_memory(recipe, parameters, past=past)
    assert found is not None
    assert (found.expected_gib, found.past_runs) == (7.0, 1)


def test_a_base_model_that_llm_lora_does_not_know_is_predicted_from_a_run_with_it() -> None:
    recipe = find("llm-lora@2").recipe
    other = resolve(recipe, {"base_model": "owner/other"})
    assert estimate_memory(recipe, other) is None
    past = replace(run(1, 17.0), parameters={**other, "steps": 7})
    found = estimate_memory(recipe, other, past=[past])
    assert found is not None
    assert found.expected_gib == 17.0


def test_a_run_from_before_a_parameter_existed_is_left_out() -> None:
    old = FinishedRun(parameters={}, images=1, gpu="RTX 4090", seconds=9.0, peak_gpu_gib=20.0)
    assert memory(2, old) == memory(2)


def test_a_model_without_a_number_is_the_recipe_s_fault() -> None:
    recipe = small_recipe(GPU, (MODEL[0], MODEL[1].replace("base_gib: 10", "base_gib: parameters.note")))
    with pytest.raises(RecipeInvalid, match="not a number of at least 0"):
        estimate_memory(recipe, resolve(recipe, {}))


runs = st.lists(st.builds(run, st.integers(1, 8), st.floats(1.0, 30.0), gpu=st.sampled_from(["RTX 4090", "H200"])))


@given(st.integers(1, 20), st.integers(1, 20), runs)
def test_a_larger_batch_is_never_expected_to_take_less(one: int, other: int, past: list[FinishedRun]) -> None:
    small, large = (memory(batch, *past) for batch in sorted((one, other)))
    assert small.expected_gib <= large.expected_gib + 1e-9
    for found in (small, large):
        assert 0 <= found.low_gib <= found.expected_gib <= found.high_gib


SHIPPED: list[tuple[str, dict[str, Any], float]] = [
    ("flux-lora@2", {}, 21.6),
    ("flux-lora@2", {"low_vram": False}, 23.1),
    ("flux-kontext-lora@2", {}, 23.1),
    ("sdxl-lora@2", {}, 9.9),
    ("llm-lora@2", {}, 5.9),  # derived, not measured
]


@pytest.mark.parametrize(("recipe", "given", "measured"), SHIPPED)
def test_the_shipped_models_give_the_figures_in_their_files(
    recipe: str, given: dict[str, Any], measured: float
) -> None:
    """PyTorch's peak on an H200 and half a GiB for CUDA; the figures are in the recipes."""
    found = find(recipe).recipe
    predicted = estimate_memory(found, resolve(found, given))
    assert predicted is not None
    assert predicted.expected_gib == pytest.approx(measured, abs=0.05)
    assert predicted.high_gib < 24.5
