"""GPU memory of a job before it starts, from the recipe's memory model and the peaks of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from stationmaster.errors import RecipeInvalid
from stationmaster.estimate.expressions import number_or_none
from stationmaster.estimate.gpus import same_gpu
from stationmaster.model import FinishedRun
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import MemoryModel, Recipe
from stationmaster.recipes.templating import names_in

_LEAST_SPREAD = 0.03  # no run repeats another to the last megabyte
_LARGER = 1.05  # cards that are sold with the same memory differ by less
_SAME = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """The peak of memory on one GPU: low, expected and high."""

    low_gib: float
    expected_gib: float
    high_gib: float
    past_runs: int = 0
    """Number of earlier runs that it rests on."""
    basis: str = "from the recipe's model"
    """What it rests on, for the user."""


def estimate_memory(
    recipe: Recipe,
    parameters: Mapping[str, ParameterValue],
    *,
    gpu: str | None = None,
    gpu_gib: float | None = None,
    past: Iterable[FinishedRun] = (),
) -> MemoryEstimate | None:
    """The memory that the training takes on each GPU; None if neither the recipe nor an earlier run gives a number.

    `gpu` and `gpu_gib` name the card if it is known. `past` are earlier runs of the recipe: those on the same card
    correct the model, else those on any. Raises RecipeInvalid if the model gives something else than a number.
    """
    model = recipe.memory
    if model is None or not recipe.needs.gpus:
        return None
    measured = [run for run in past if run.peak_gpu_gib is not None]
    card = _Card(gpu=gpu, gib=gpu_gib)
    chosen = [run for run in measured if same_gpu(run.gpu, gpu)] or measured
    figures = _figures(recipe, model, parameters)
    if figures is None:
        return _of_same_parameters(model, parameters, chosen)
    peaks = [peak for run in chosen if (peak := _peak(recipe, model, run, card)) is not None]
    if not peaks:
        spread = model.spread
        return MemoryEstimate(
            low_gib=figures.peak * (1 - spread), expected_gib=figures.peak, high_gib=figures.peak * (1 + spread)
        )
    return _corrected(figures, peaks, spread=model.spread)


def why_unknown(recipe: Recipe) -> str:
    """Why no memory is predicted, after `estimate_memory` returned None; empty if no GPU is used."""
    if not recipe.needs.gpus:
        return ""
    if recipe.memory is None:
        return f"{recipe.reference} has no memory model"
    names = ", ".join(sorted(memory_parameters(recipe.memory)))
    return f"{recipe.reference} has no figure for these parameters ({names}), and no earlier run had the same"


def memory_parameters(model: MemoryModel) -> frozenset[str]:
    """The parameters that the memory depends on."""
    expressions = (model.base_gib, model.per_item_gib, model.batch, model.least_gib)
    return frozenset().union(*(names_in(one, "parameters") for one in expressions if isinstance(one, str)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Card:
    gpu: str | None
    gib: float | None

    def may_cache_less_than(self, run: FinishedRun) -> bool:
        """Whether a run had more memory than this card: PyTorch keeps what it once used as long as there is room."""
        if same_gpu(run.gpu, self.gpu):
            return False
        return self.gib is None or run.gpu_gib is None or run.gpu_gib > self.gib * _LARGER


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """What the model gives for some parameters."""

    base: float
    items: float  # of the whole batch
    least: float

    @property
    def peak(self) -> float:
        return max(self.least, self.base + self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peak:
    """The measured peak of an earlier run beside the model's figures for its parameters."""

    gib: float
    figures: _Figures
    is_upper_bound: bool

    def of_others(self, figures: _Figures) -> tuple[float, float]:
        """What the run lets expect for other parameters: if the model errs in the base, and if it errs per item."""
        wrong_base = max(0.0, figures.peak + self.gib - self.figures.peak)
        if not self.figures.items or self.figures.peak > self.figures.base + self.figures.items:
            return wrong_base, wrong_base  # its peak was not that of a step
        share = max(0.0, self.gib - self.figures.base) / self.figures.items
        return wrong_base, max(figures.least, figures.base + figures.items * share)

    def is_of(self, figures: _Figures) -> bool:
        return abs(self.figures.peak - figures.peak) <= _SAME


def _figures(recipe: Recipe, model: MemoryModel, parameters: Mapping[str, Any]) -> _Figures | None:
    """The model's figures; None if it does not know them for these parameters."""
    expressions = (model.base_gib, model.per_item_gib, model.batch, model.least_gib)
    values = {"parameters": parameters}
    base, item, batch, least = (number_or_none(recipe, "memory", one, values) for one in expressions)
    if base is None or item is None or batch is None or least is None:
        return None
    return _Figures(base=base, items=item * batch, least=least)


def _peak(recipe: Recipe, model: MemoryModel, run: FinishedRun, card: _Card) -> _Peak | None:
    try:
        figures = _figures(recipe, model, run.parameters)
    except RecipeInvalid:  # a parameter that the recipe did not have then
        return None
    if figures is None or not figures.peak or run.peak_gpu_gib is None:
        return None
    if not card.may_cache_less_than(run):
        return _Peak(gib=run.peak_gpu_gib, figures=figures, is_upper_bound=False)
    # What is above the model's high figure there counts as cache.
    most = figures.peak * (1 + model.spread)
    return _Peak(gib=min(run.peak_gpu_gib, most), figures=figures, is_upper_bound=True)


def _corrected(figures: _Figures, peaks: Sequence[_Peak], *, spread: float) -> MemoryEstimate:
    """The estimate that earlier runs give, scaled to these parameters by the model.

    More memory by the model never gives less here: measured peaks of smaller and larger jobs are the limits.
    """
    others = [one for peak in peaks for one in peak.of_others(figures)]
    scaled = median(sum(peak.of_others(figures)) / 2 for peak in peaks)
    medians = {
        peak.figures.peak: median(one.gib for one in peaks if one.is_of(peak.figures)) for peak in peaks
    }  # by the model's figure
    at_least = max((gib for modelled, gib in medians.items() if modelled <= figures.peak + _SAME), default=0.0)
    at_most = min((gib for modelled, gib in medians.items() if modelled >= figures.peak - _SAME), default=float("inf"))
    expected = max(at_least, min(at_most, scaled))
    same = [peak.gib for peak in peaks if peak.is_of(figures)]
    margin = _LEAST_SPREAD if same else max(_LEAST_SPREAD, spread / 2)
    low, high = min(same or others, default=expected), max(same or others, default=expected)
    if any(peak.is_upper_bound for peak in peaks):
        low = min(low, figures.peak * (1 - spread))
    count = len(same) or len(peaks)
    runs = f"{count} earlier run{'s' if count > 1 else ''}"
    return MemoryEstimate(
        low_gib=min(low, expected) * (1 - margin),
        expected_gib=expected,
        high_gib=max(high, expected) * (1 + margin),
        past_runs=count,
        basis=f"from {runs}" if same else f"from {runs} with other settings, scaled by the recipe's model",
    )


def _of_same_parameters(
    model: MemoryModel, parameters: Mapping[str, Any], runs: Iterable[FinishedRun]
) -> MemoryEstimate | None:
    """The peaks of runs with the same parameters, where the model has no number to scale others by."""
    relevant = memory_parameters(model)
    peaks = [
        run.peak_gpu_gib
        for run in runs
        if run.peak_gpu_gib is not None and all(run.parameters.get(name) == parameters.get(name) for name in relevant)
    ]
    if not peaks:
        return None
    count = len(peaks)
    return MemoryEstimate(
        low_gib=min(peaks) * (1 - _LEAST_SPREAD),
        expected_gib=median(peaks),
        high_gib=max(peaks) * (1 + _LEAST_SPREAD),
        past_runs=count,
        basis=f"from {count} earlier run{'s' if count > 1 else ''}",
    )
