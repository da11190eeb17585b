"""Whether a job's GPU memory fits a card, and what would make it fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from stationmaster.estimate.memory import MemoryEstimate, memory_parameters
from stationmaster.model import Offer
from stationmaster.money import format_dollars
from stationmaster.recipes.parameters import ParameterValue
from stationmaster.recipes.schema import BoolParameter, ChoiceParameter, IntParameter, Recipe

_COMFORTABLE_PERCENT = 90
_PREFIX = "parameters."

Predicts = Callable[[Mapping[str, ParameterValue]], MemoryEstimate | None]
"""Returns the memory that a job with these parameters takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A GPU with its memory."""

    name: str | None
    gib: float


def share_percent(used_gib: float, size_gib: float) -> int:
    """The share of a card's memory in whole percent, as it is shown."""
    return round(100 * used_gib / size_gib)


def fits_well(memory: MemoryEstimate, size_gib: float) -> bool:
    """Whether the expected peak leaves a tenth of the card free, and the high one fits."""
    return share_percent(memory.expected_gib, size_gib) <= _COMFORTABLE_PERCENT and memory.high_gib <= size_gib


def fit_warning(
    memory: MemoryEstimate, card: Card, *, change: str | None = None, larger: Offer | None = None
) -> str | None:
    """The warning for a job on a card, with what would help: another parameter or a larger card; None if it fits."""
    if fits_well(memory, card.gib):
        return None
    name = card.name or "the GPU"
    expected = f"{memory.expected_gib:.1f} of the {card.gib:.1f} GiB of {name}"
    if memory.low_gib > card.gib:
        problem = f"it will not fit: about {expected}"
    elif memory.expected_gib > card.gib:
        problem = f"it probably does not fit: about {expected}"
    elif memory.high_gib > card.gib:
        problem = f"it may not fit: {expected} expected, up to {memory.high_gib:.1f} GiB possible"
    else:
        problem = f"little room is left: {expected}"
    help_texts = [f"set {change}"] if change else []
    if larger is not None:
        price = format_dollars(larger.price_per_hour, 3)
        help_texts.append(f"take {larger.gpu} with {larger.vram_gib:.0f} GiB at {price}/h, the cheapest that fits")
    return f"warning: GPU memory: {problem}" + (f"; to fit, {' or '.join(help_texts)}" if help_texts else "")


def change_that_fits(
    recipe: Recipe, parameters: Mapping[str, ParameterValue], predicts: Predicts, *, size_gib: float
) -> str | None:
    """The change of one parameter, as `name=value`, with which the job fits a card well; None if there is none.

    The batch size comes first, as large as fits; then whatever else the memory depends on and has few values.
    """

    def fits(name: str, value: ParameterValue) -> bool:
        memory = predicts({**parameters, name: value})
        return memory is not None and fits_well(memory, size_gib)

    batch, smaller = _smaller_batches(recipe, parameters)
    fitting = bisect_left(smaller, True, key=lambda size: not fits(batch, size))
    if fitting:
        return f"{batch}={smaller[fitting - 1]}"
    changes = ((name, value) for name, value in _other_values(recipe, parameters) if fits(name, value))
    return next((f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in changes), None)


def _smaller_batches(recipe: Recipe, parameters: Mapping[str, ParameterValue]) -> tuple[str, range]:
    """The parameter that is the batch size, and the smaller sizes that it may have."""
    expression = recipe.memory.batch if recipe.memory else ""
    name = expression.removeprefix(_PREFIX) if isinstance(expression, str) else ""
    declared, now = recipe.parameters.get(name), parameters.get(name)
    if not isinstance(declared, IntParameter) or not isinstance(now, int):
        return name, range(0)
    return name, range(1 if declared.min is None else declared.min, now)


def _other_values(recipe: Recipe, parameters: Mapping[str, ParameterValue]) -> Iterator[tuple[str, ParameterValue]]:
    if recipe.memory is None:
        return
    relevant = memory_parameters(recipe.memory)
    for name, parameter in recipe.parameters.items():
        if name not in relevant:
            continue
        if isinstance(parameter, BoolParameter):
            yield name, not parameters.get(name)
        if isinstance(parameter, ChoiceParameter):
            yield from ((name, choice) for choice in reversed(parameter.choices) if choice != parameters.get(name))
