"""A recommended value as a value that a parameter accepts."""

from __future__ import annotations

import math
from typing import Any

from stationmaster.analysis.levers import Lever
from stationmaster.recipes.parameter_levers import as_number
from stationmaster.recipes.parameters import ParameterValue, allowed, check_value
from stationmaster.recipes.schema import ChoiceParameter, FloatParameter, IntParameter, Parameter


class DoesNotFit(Exception):
    """The parameter accepts neither the value nor one near it."""


def fitted(parameter: Parameter, recommended: Any, *, lever: Lever) -> ParameterValue:
    """Return the recommended value in the parameter's type, or the nearest one that it accepts.

    Of a list the largest number counts. Between two accepted values a setting of the training gets the lower one, for
    it was computed to fit, and a machine the higher one. Raises DoesNotFit, with the reason.

    >>> fitted(ChoiceParameter(type="choice", help="…", choices=("512", "1024")), [512, 768], lever=Lever.RESOLUTION)
    '512'
    """
    if recommended is None:
        raise DoesNotFit("the analysis has no value for it")
    is_least = lever.is_outside
    match parameter:
        case IntParameter() | FloatParameter():
            return _within(_number(recommended, parameter), parameter, is_least=is_least)
        case ChoiceParameter() if all(as_number(choice) is not None for choice in parameter.choices):
            return _nearest_choice(_number(recommended, parameter), parameter, is_least=is_least)
    try:
        return check_value(parameter, recommended)
    except ValueError as error:
        raise DoesNotFit(f"it accepts {error}") from None


def _number(value: Any, parameter: Parameter) -> float:
    """The value as a number, the largest of a list."""
    numbers = [_plain_number(each) for each in (value if isinstance(value, list | tuple) else [value])]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        raise DoesNotFit(f"it accepts {allowed(parameter)}")
    return max(known)


def _plain_number(value: Any) -> float | None:
    if isinstance(value, str):
        return as_number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # a whole number that no float can hold
        return None


def _within(number: float, parameter: IntParameter | FloatParameter, *, is_least: bool) -> ParameterValue:
    if isinstance(parameter, IntParameter):
        number = math.ceil(number) if is_least else math.floor(number)
    if parameter.min is not None:
        number = max(number, parameter.min)
    if parameter.max is not None:
        number = min(number, parameter.max)
    return check_value(parameter, number)


def _nearest_choice(wanted: float, parameter: ChoiceParameter, *, is_least: bool) -> str:
    by_size = sorted(parameter.choices, key=lambda choice: as_number(choice) or 0.0)
    if is_least:
        return next((choice for choice in by_size if (as_number(choice) or 0.0) >= wanted), by_size[-1])
    return next((choice for choice in reversed(by_size) if (as_number(choice) or 0.0) <= wanted), by_size[0])
