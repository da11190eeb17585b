"""Hours and price of a job before it starts, from the recipe's time model and the GPU's speed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from stationmaster.errors import RecipeInvalid
from stationmaster.estimate.expressions import number_of
from stationmaster.estimate.gpus import REFERENCE_GPU, gpu_factor, same_gpu
from stationmaster.model import FinishedRun, Quote, Requirements
from stationmaster.money import MicroDollars, cost
from stationmaster.offers import HoursOn
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.templating import Values

_UNKNOWN_GPU_SPREAD = 0.5
_ENOUGH_RUNS = 3  # fewer prove little
_LEAST_SPREAD = 0.1  # no two runs take exactly the same time
_MOST_CORRECTION = 10.0
_MOST_LENGTH = 4.0  # a run this much longer or shorter spends another share of its time outside the steps
_UNKNOWN_GPU = 2.0  # slowdown against the reference, so that an unknown GPU does not look cheap
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

    `parameters` come from `resolve`; `past` are earlier runs of the recipe, and those on the same GPU that were about
    as long correct the recipe's own model. Raises RecipeInvalid if the time model gives no number for the parameters.
    """
    model = recipe.time
    factor, notes = _factor_or_reference(gpu, model.reference_gpu)
    fixed, working = _seconds(recipe, parameters, images=images)
    training = fixed + working * factor
    correction = _correction(recipe, past, gpu=gpu, training=training)
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
    factor, _ = _factor_or_reference(REFERENCE_GPU, recipe.time.reference_gpu)
    return Scaling(on_reference=(fixed + working * factor) / 3600, fixed=fixed / 3600)


def most_per_hour(quote: Quote, asked: MicroDollars | None = None) -> MicroDollars:
    """The highest price per hour, which the user sees before confirming: the one they set, else a little more than the
    best offer now, because others may rent that one first.
    """
    return MicroDollars(round(quote.price_per_hour * _ROOM)) if asked is None else asked


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


def _correction(recipe: Recipe, past: Iterable[FinishedRun], *, gpu: str | None, training: float) -> _Correction | None:
    """The correction by runs on the same GPU that were about as long; None if there are too few."""
    ratios = [
        run.seconds / modelled
        for run in past
        if same_gpu(run.gpu, gpu)
        and run.seconds > 0
        and (modelled := _modelled_seconds(recipe, run)) is not None
        and training / _MOST_LENGTH <= modelled <= training * _MOST_LENGTH
    ]
    if len(ratios) < _ENOUGH_RUNS:
        return None
    limits = 1 / _MOST_CORRECTION, _MOST_CORRECTION
    best, usual, worst = (min(max(ratio, limits[0]), limits[1]) for ratio in (min(ratios), median(ratios), max(ratios)))
    return _Correction(runs=len(ratios), best=best, usual=usual, worst=worst)


def _modelled_seconds(recipe: Recipe, run: FinishedRun) -> float | None:
    """How long the model expects an earlier run to take; None if it gives no number for it."""
    try:
        fixed, working = _seconds(recipe, run.parameters, images=run.images)
    except RecipeInvalid:
        return None
    expected = fixed + working * _factor_or_reference(run.gpu, recipe.time.reference_gpu)[0]
    return expected if expected > 0 else None


def _seconds(recipe: Recipe, parameters: Mapping[str, Any], *, images: int) -> tuple[float, float]:
    """Seconds that are the same on every GPU, and seconds of the steps on the recipe's reference GPU."""
    model = recipe.time
    values: Values = {"parameters": parameters, "dataset": {"images": images}}
    steps = _steps(recipe, parameters, images=images)
    working = steps * number_of(recipe, "time", model.seconds_per_step, values)
    return model.fixed + images * model.seconds_per_image, working


def _steps(recipe: Recipe, parameters: Mapping[str, Any], *, images: int) -> int:
    return int(number_of(recipe, "time", recipe.time.steps, {"parameters": parameters, "dataset": {"images": images}}))


def _factor_or_reference(gpu: str | None, reference: str | None) -> tuple[float, tuple[str, ...]]:
    if reference is None:
        return 1.0, ()
    theirs = gpu_factor(reference) or 1.0
    ours = gpu_factor(gpu) if gpu else theirs
    if ours is None:
        return 1.0, (f"the speed of {gpu} is unknown; estimated as {reference}",)
    return ours / theirs, ()


def hours_on(want: Requirements) -> HoursOn:
    """Scales the job's hours, given for an RTX 4090, except its fixed hours; without a GPU nothing is scaled."""

    def hours(gpu: str | None) -> float:
        factor = gpu_factor(gpu) if gpu else None
        slower = (factor if factor is not None else _UNKNOWN_GPU) if want.gpus else 1.0
        return want.fixed_hours + max(0.0, want.hours - want.fixed_hours) * slower

    return hours
