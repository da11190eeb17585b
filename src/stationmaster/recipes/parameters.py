"""A recipe's parameters: what was given, checked, and completed with the defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TypeVar

from stationmaster.errors import UserError
from stationmaster.near_names import did_you_mean
from stationmaster.recipes.schema import (
    BoolParameter,
    ChoiceParameter,
    FloatParameter,
    IntParameter,
    Parameter,
    Recipe,
    StrParameter,
)

ParameterValue = int | float | str | bool
Number = TypeVar("Number", int, float)

_SURROGATE = re.compile("[\ud800-\udfff]")


def resolve(recipe: Recipe, given: Mapping[str, object]) -> dict[str, ParameterValue]:
    """Every parameter's value, in the recipe's order; raises UserError naming parameter, value and what is allowed.

    Values may be typed or, as from a command line, text.
    """
    for name in given:
        if name not in recipe.parameters:
            raise _unknown(recipe, name)
    return {name: _resolved(recipe, name, parameter, given) for name, parameter in recipe.parameters.items()}


def check_value(parameter: Parameter, value: object) -> ParameterValue:
    """`value` as the parameter's type; raises ValueError whose text is what is allowed."""
    match parameter:
        case IntParameter():
            return _bounded(_whole(value), parameter)
        case FloatParameter():
            return _bounded(_number(value), parameter)
        case BoolParameter():
            return _truth(value)
        case ChoiceParameter():
            if not isinstance(value, str) or value not in parameter.choices:
                raise ValueError(allowed(parameter))
            return value
        case StrParameter():
            return _text(value, parameter)


def allowed(parameter: Parameter) -> str:
    """The values that the parameter accepts, in words.

    >>> allowed(IntParameter(type="int", help="…", min=1, max=9))
    'a whole number from 1 to 9'
    """
    match parameter:
        case IntParameter():
            return "a whole number" + _bounds(parameter)
        case FloatParameter():
            return "a number" + _bounds(parameter)
        case BoolParameter():
            return "true or false"
        case ChoiceParameter():
            return "one of " + ", ".join(parameter.choices)
        case StrParameter():
            return f"a text of at most {parameter.max_length} characters"


def sample_value(parameter: Parameter) -> ParameterValue:
    """Some value that the parameter accepts: its default, if it has one."""
    if parameter.default is not None:
        return parameter.default
    match parameter:
        case IntParameter() | FloatParameter():
            return next((bound for bound in (parameter.min, parameter.max) if bound is not None), 1)
        case BoolParameter():
            return False
        case ChoiceParameter():
            return parameter.choices[0]
        case StrParameter():
            return "x"


def is_plain_text(text: str) -> bool:
    """Whether `text` can be an argument or an environment variable of a program."""
    return "\0" not in text and (text.isascii() or _SURROGATE.search(text) is None)


def _unknown(recipe: Recipe, name: str) -> UserError:
    names = ", ".join(recipe.parameters) or "none"
    hint = did_you_mean(name, recipe.parameters) or f"use one of: {names}"
    return UserError(f"{recipe.reference} has no parameter `{name}`", hint=hint)


def _resolved(recipe: Recipe, name: str, parameter: Parameter, given: Mapping[str, object]) -> ParameterValue:
    if name in given:
        try:
            return check_value(parameter, given[name])
        except ValueError as error:
            message = f"parameter {name} of {recipe.reference}: {_shown(given[name])} is not allowed; use {error}"
            raise UserError(message, hint=parameter.help) from None
    if parameter.default is None:
        raise UserError(f"{recipe.reference} needs the parameter {name}: {allowed(parameter)}", hint=parameter.help)
    return check_value(parameter, parameter.default)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) <= 40:
        try:
            return int(value.replace("_", " "))  # int() itself would read 1_0 as 10
        except ValueError:
            pass
    raise ValueError("a whole number")


def _number(value: object) -> float:
    if isinstance(value, str) and len(value) <= 40 and "_" not in value:
        try:
            value = float(value)
        except ValueError:
            pass
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _truth(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError("true or false")


def _text(value: object, parameter: StrParameter) -> str:
    if not isinstance(value, str) or len(value) > parameter.max_length:
        raise ValueError(allowed(parameter))
    if not is_plain_text(value):
        raise ValueError("text without NUL and without invalid characters")
    return value


def _bounded(number: Number, parameter: IntParameter | FloatParameter) -> Number:
    below = parameter.min is not None and number < parameter.min
    above = parameter.max is not None and number > parameter.max
    if below or above:
        raise ValueError(allowed(parameter))
    return number


def _bounds(parameter: IntParameter | FloatParameter) -> str:
    match parameter.min, parameter.max:
        case None, None:
            return ""
        case low, None:
            return f" of at least {low}"
        case None, high:
            return f" of at most {high}"
        case low, high:
            return f" from {low} to {high}"
