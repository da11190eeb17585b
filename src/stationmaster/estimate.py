"""Hours and price of a job before it starts, from the recipe's time model and the GPU's speed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stationmaster.errors import RecipeInvalid
from stationmaster.money import MicroDollars, cost
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.templating import TemplateFault, Values, evaluate

# Time of a training step relative to an RTX 4090. Rough, for 16-bit trainings that fit the card: enough to compare
# offers and to set limits, and always shown with its spread.
GPU_FACTORS: Mapping[str, float] = {
    "B200": 0.25,
    "H200": 0.40,
    "H100 SXM": 0.42,
    "H100": 0.52,
    "GH200": 0.42,
    "A100 SXM4": 0.80,
    "A100": 0.88,
    "RTX PRO 6000": 0.65,
    "RTX 5090": 0.70,
    "RTX 5080": 1.25,
    "RTX 4090": 1.00,
    "RTX 4080": 1.45,
    "RTX 4070": 2.10,
    "RTX 3090": 1.90,
    "RTX 3080": 2.30,
    "RTX 3060": 4.20,
    "RTX 6000 ADA": 1.05,
    "RTX 6000ADA": 1.05,
    "RTX A6000": 1.80,
    "RTX A5000": 2.20,
    "L40S": 1.00,
    "L40": 1.20,
    "L4": 3.00,
    "A40": 1.90,
    "A10": 2.40,
    "V100": 2.50,
    "T4": 6.50,
}
_UNKNOWN_GPU_SPREAD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a job will take: a usual best, the expected, and a usual worst case."""

    steps: int
    low_hours: float
    expected_hours: float
    high_hours: float
    low_cost: MicroDollars
    expected_cost: MicroDollars
    high_cost: MicroDollars
    notes: tuple[str, ...]
    """What was assumed, for the person who reads the numbers."""


def estimate(
    recipe: Recipe,
    parameters: Mapping[str, ParameterValue],
    *,
    images: int,
    gpu: str | None,
    rate_per_hour: MicroDollars,
    start_seconds: float = 0.0,
) -> Estimate:
    """Hours and cost of one run; `start_seconds` is what the provider needs before and after the training.

    `parameters` are those that `resolve` returned. Raises RecipeInvalid if the time model has no number for them.
    """
    model = recipe.time
    values: Values = {"parameters": parameters, "dataset": {"images": images}}
    steps = int(_number(recipe, model.steps, values))
    factor, notes = _factor_or_reference(gpu, model.reference_gpu)
    working = steps * _number(recipe, model.seconds_per_step, values) * factor
    expected = start_seconds + model.fixed + images * model.seconds_per_image + working
    spread = max(model.spread, _UNKNOWN_GPU_SPREAD) if notes else model.spread
    low, high = expected * (1 - spread), expected * (1 + spread)
    return Estimate(
        steps=steps,
        low_hours=low / 3600,
        expected_hours=expected / 3600,
        high_hours=high / 3600,
        low_cost=cost(rate_per_hour, low),
        expected_cost=cost(rate_per_hour, expected),
        high_cost=cost(rate_per_hour, high),
        notes=notes,
    )


def gpu_factor(name: str) -> float | None:
    """A GPU's time per step relative to an RTX 4090; None if it is not in the table.

    >>> gpu_factor("NVIDIA GeForce RTX 3090 Ti"), gpu_factor("H100_SXM"), gpu_factor("Voodoo 2")
    (1.9, 0.42, None)
    """
    words = f" {re.sub(r'[^A-Z0-9]+', ' ', name.upper())} "
    fitting = [known for known in GPU_FACTORS if f" {known} " in words]
    return GPU_FACTORS[max(fitting, key=len)] if fitting else None


def _number(recipe: Recipe, expression: str | float, values: Values) -> float:
    try:
        value = evaluate(expression, values) if isinstance(expression, str) else expression
    except TemplateFault as fault:
        raise RecipeInvalid(f"{recipe.reference}: time: {fault}") from None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise RecipeInvalid(f"{recipe.reference}: time: `{expression}` is {value!r}, not a number of at least 0")
    return value


def _factor_or_reference(gpu: str | None, reference: str | None) -> tuple[float, tuple[str, ...]]:
    if reference is None:
        return 1.0, ()
    theirs = gpu_factor(reference) or 1.0
    ours = gpu_factor(gpu) if gpu else theirs
    if ours is None:
        return 1.0, (f"the speed of {gpu} is not known; counted as {reference}",)
    return ours / theirs, ()
