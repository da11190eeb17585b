"""Hours and price of a job before it starts, from the recipe's time model and the GPU's speed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from stationmaster.errors import RecipeInvalid
from stationmaster.model import FinishedRun, Quote
from stationmaster.money import MicroDollars, cost
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.templating import TemplateFault, Values, evaluate

# Time of a training step relative to an RTX 4090. Rough values for 16-bit trainings that fit into GPU memory: good
# enough to compare offers and to set limits. Estimates are always shown with their spread.
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
_REFERENCE_GPU = "RTX 4090"
_UNKNOWN_GPU_SPREAD = 0.5
_ENOUGH_RUNS = 3  # fewer prove little
_LEAST_SPREAD = 0.1  # no two runs take exactly the same time
_MOST_CORRECTION = 10.0
_ROOM = 1.2  # the most that is paid, relative to the best offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Hours and cost of a job: low, expected and high."""

    steps: int
    low_hours: float
    expected_hours: float
    high_hours: float
    low_cost: MicroDollars
    expected_cost: MicroDollars
    high_cost: MicroDollars
    notes: tuple[str, ...]
    """Assumptions behind the numbers, for the user."""
    past_runs: int = 0
    """Number of earlier runs that corrected the hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """A job's hours on an RTX 4090, and the part of them that is the same on every GPU."""

    on_reference: float
    fixed: float


def estimate(
    recipe: Recipe,
    parameters: Mapping[str, ParameterValue],
    *,
    images: int,
    gpu: str | None,
    rate_per_hour: MicroDollars,
    start_seconds: float = 0.0,
    slow_start_seconds: float | None = None,
    past: Iterable[FinishedRun] = (),
) -> Estimate:
    """Hours and cost of one run. `start_seconds` is the time for boot, transfers and release around the training;
    the high figure uses `slow_start_seconds`, the same on a slow machine and line.

    `parameters` come from `resolve`; `past` are earlier runs of the recipe, and those on the same GPU correct the
    recipe's own model. Raises RecipeInvalid if the time model gives no number for the parameters.
    """
    model = recipe.time
    factor, notes = _factor_or_reference(gpu, model.reference_gpu)
    fixed, working = _seconds(recipe, parameters, images=images)
    training = fixed + working * factor
    correction = _correction(recipe, past, gpu=gpu)
    if correction is not None:
        notes = (
            f"corrected by {correction.runs} earlier runs: {correction.usual:.2f} times the recipe's own estimate",
        )
        low, expected, high = (start_seconds + training * ratio for ratio in correction.ratios)
    else:
        spread = max(model.spread, _UNKNOWN_GPU_SPREAD) if notes else model.spread
        expected = start_seconds + training
        low, high = expected * (1 - spread), expected * (1 + spread)
    if slow_start_seconds is not None:
        high += max(0.0, slow_start_seconds - start_seconds)
    return Estimate(
        steps=_steps(recipe, parameters, images=images),
        low_hours=low / 3600,
        expected_hours=expected / 3600,
        high_hours=high / 3600,
        low_cost=cost(rate_per_hour, low),
        expected_cost=cost(rate_per_hour, expected),
        high_cost=cost(rate_per_hour, high),
        notes=notes,
        past_runs=0 if correction is None else correction.runs,
    )


def scaling(
    recipe: Recipe, parameters: Mapping[str, ParameterValue], *, images: int, start_seconds: float = 0.0
) -> Scaling:
    """The hours used to compare offers with other GPUs. Raises RecipeInvalid as `estimate` does."""
    fixed, working = _seconds(recipe, parameters, images=images)
    fixed += start_seconds
    if recipe.time.reference_gpu is None:
        return Scaling(on_reference=(fixed + working) / 3600, fixed=(fixed + working) / 3600)
    factor, _ = _factor_or_reference(_REFERENCE_GPU, recipe.time.reference_gpu)
    return Scaling(on_reference=(fixed + working * factor) / 3600, fixed=fixed / 3600)


def gpu_factor(name: str) -> float | None:
    """A GPU's time per step relative to an RTX 4090; None if it is not in the table.

    >>> gpu_factor("NVIDIA GeForce RTX 3090 Ti"), gpu_factor("H100_SXM"), gpu_factor("Voodoo 2")
    (1.9, 0.42, None)
    """
    words = f" {_words(name)} "
    fitting = [known for known in GPU_FACTORS if f" {known} " in words]
    return GPU_FACTORS[max(fitting, key=len)] if fitting else None


def most_per_hour(quote: Quote, asked: MicroDollars | None = None) -> MicroDollars:
    """The highest price per hour, which the user sees before confirming: the one they set, else a little more than the
    best offer now, because others may rent that one first.
    """
    return MicroDollars(round(quote.price_per_hour * _ROOM)) if asked is None else asked


def is_as_fast(gpu: str | None, as_this: str | None) -> bool:
    """Whether a GPU is the same as another or known to be at least as fast; True if no GPU is needed.

    >>> is_as_fast("RTX 5090", "RTX 4090"), is_as_fast("RTX 3090", "RTX 4090"), is_as_fast("Voodoo 2", "RTX 4090")
    (True, False, False)
    """
    if as_this is None or _same(gpu, as_this):
        return True
    ours, others = gpu_factor(gpu or ""), gpu_factor(as_this)
    return ours is not None and others is not None and ours <= others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Correction:
    """How long earlier runs took, relative to the recipe's model."""

    runs: int
    best: float
    usual: float
    worst: float

    @property
    def ratios(self) -> tuple[float, float, float]:
        """For the low, the expected and the high figure."""
        low, high = self.usual * (1 - _LEAST_SPREAD), self.usual * (1 + _LEAST_SPREAD)
        return min(self.best, low), self.usual, max(self.worst, high)


def _correction(recipe: Recipe, past: Iterable[FinishedRun], *, gpu: str | None) -> _Correction | None:
    ratios = [ratio for run in past if _same(run.gpu, gpu) and (ratio := _ratio(recipe, run)) is not None]
    if len(ratios) < _ENOUGH_RUNS:
        return None
    limits = 1 / _MOST_CORRECTION, _MOST_CORRECTION
    best, usual, worst = (min(max(ratio, limits[0]), limits[1]) for ratio in (min(ratios), median(ratios), max(ratios)))
    return _Correction(runs=len(ratios), best=best, usual=usual, worst=worst)


def _ratio(recipe: Recipe, run: FinishedRun) -> float | None:
    """How long an earlier run took relative to the model; None if the model gives no number for it."""
    try:
        fixed, working = _seconds(recipe, run.parameters, images=run.images)
    except RecipeInvalid:
        return None
    expected = fixed + working * _factor_or_reference(run.gpu, recipe.time.reference_gpu)[0]
    return run.seconds / expected if expected > 0 and run.seconds > 0 else None


def _same(one: str | None, other: str | None) -> bool:
    return _words(one or "") == _words(other or "")


def _words(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", " ", name.upper()).strip()


def _seconds(recipe: Recipe, parameters: Mapping[str, Any], *, images: int) -> tuple[float, float]:
    """Seconds that are the same on every GPU, and seconds of the steps on the recipe's reference GPU."""
    model = recipe.time
    values: Values = {"parameters": parameters, "dataset": {"images": images}}
    steps = _steps(recipe, parameters, images=images)
    working = steps * _number(recipe, model.seconds_per_step, values)
    return model.fixed + images * model.seconds_per_image, working


def _steps(recipe: Recipe, parameters: Mapping[str, Any], *, images: int) -> int:
    return int(_number(recipe, recipe.time.steps, {"parameters": parameters, "dataset": {"images": images}}))


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
        return 1.0, (f"the speed of {gpu} is unknown; estimated as {reference}",)
    return ours / theirs, ()
