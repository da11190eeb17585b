"""Which parameter of a recipe is which lever of an analysis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from stationmaster.analysis.levers import Lever
from stationmaster.recipes.schema import (
    BoolParameter,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Recipe,
    StrParameter,
)

_SWITCHES = frozenset(
    {
        Lever.CACHE_LATENTS,
        Lever.DISABLE_SAMPLING,
        Lever.EMA,
        Lever.GRADIENT_CHECKPOINTING,
        Lever.HALF_VAE,
        Lever.PACKING,
        Lever.QUANTIZE,
    }
)
_NUMBERS = frozenset(
    {
        Lever.BATCH_SIZE,
        Lever.KEEP_SAVES,
        Lever.LEARNING_RATE,
        Lever.MACHINE_DISK_SIZE,
        Lever.MACHINE_GPU_MEMORY,
        Lever.MACHINE_MEMORY,
        Lever.MACHINE_POWER,
        Lever.MACHINE_SHM,
        Lever.MAX_BATCH_SIZE,
        Lever.RESOLUTION,
        Lever.SAMPLE_EVERY,
        Lever.SAMPLE_HEIGHT,
        Lever.SAMPLE_WIDTH,
        Lever.SAVE_EVERY,
        Lever.STEPS,
        Lever.WORKERS,
    }
)


def parameter_with(recipe: Recipe, lever: Lever) -> str | None:
    """Return the name of the parameter that declares the lever; None if none does."""
    return next((name for name, parameter in recipe.parameters.items() if parameter.lever is lever), None)


def trained_resolution(recipe: Recipe, parameters: Mapping[str, Any]) -> int | None:
    """Return the pixels a side that pictures are trained at, given or by default; None if the recipe does not tell."""
    name = parameter_with(recipe, Lever.RESOLUTION)
    if name is None:
        return None
    number = as_number(str(parameters.get(name, recipe.parameters[name].default)))
    return None if number is None else round(number)


def wrong_levers(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield each parameter whose lever cannot be right, with the problem."""
    first: dict[Lever, str] = {}
    for name, parameter in recipe.parameters.items():
        lever = parameter.lever
        if lever is None:
            continue
        if not _fits(lever, parameter):
            yield name, f"the lever {lever} needs {_fitting(lever)}, not a parameter of type {parameter.type}"
        if first.setdefault(lever, name) != name:
            yield name, f"the parameter {first[lever]} has the lever {lever} already"


def as_number(choice: str) -> float | None:
    """Return the number that a choice is; None for any other text."""
    try:
        number = float(choice)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _fits(lever: Lever, parameter: Parameter) -> bool:
    match parameter:
        case BoolParameter():
            return lever in _SWITCHES
        case IntParameter() | FloatParameter():
            return lever in _NUMBERS
        case ChoiceParameter() if lever in _NUMBERS:
            return all(as_number(choice) is not None for choice in parameter.choices)
        case ChoiceParameter() | StrParameter():
            return lever not in _SWITCHES | _NUMBERS


def _fitting(lever: Lever) -> str:
    if lever in _SWITCHES:
        return "a bool"
    return "an int, a float or a choice of numbers" if lever in _NUMBERS else "a str or a choice"
