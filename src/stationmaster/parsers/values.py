"""Values from the pairs of a line: the loss, the learning rate, the pace, the time left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from stationmaster.parsers.names import PART_LOSS, SMOOTHED_LOSS
from stationmaster.parsers.pairs import Pair
from stationmaster.parsers.quantities import duration_seconds, per_second, steps_per_second

#: A longer `time` is that since the start.
_LONGEST_STEP_SECONDS = 3_600.0
_SUMMARY_WORDS = ("train", "avg", "average", "mean", "epoch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The values in a line or bar beside its counter."""

    loss: float | None
    learning_rate: float | None
    rate: float | None
    eta_seconds: float | None
    broken_gradient: bool
    has_validation_loss: bool
    loss_stands_alone: bool  # its name is that of the loss, not of a part or a setting
    loss_is_part: bool
    loss_is_a_step: bool  # its name is that of one batch or step
    loss_may_be_a_mean: bool  # its name is that of an epoch's summary

    def are_empty(self) -> bool:
        return self.loss is self.learning_rate is self.rate is self.eta_seconds is None


def values_of(pairs: Sequence[Pair], *, bare_time: bool = False) -> Values:
    """Read the pairs; `bare_time`: a field called just `time` is that of one step."""
    if not pairs:
        return _NO_VALUES
    best = _best_loss(pairs)
    return Values(
        loss=best.value if best else None,
        learning_rate=learning_rate(pairs),
        rate=speed(pairs, bare_time=bare_time),
        eta_seconds=eta_seconds(pairs),
        broken_gradient=any(
            pair.means.is_gradient_norm and not pair.time and not math.isfinite(pair.value) for pair in pairs
        ),
        has_validation_loss=any(pair.means.is_validation_loss for pair in pairs),
        loss_stands_alone=best is not None and best.means.loss is not None and best.means.loss < PART_LOSS,
        loss_is_part=best is not None and best.means.loss == PART_LOSS,
        loss_is_a_step=best is not None and _names_a_step(best.name),
        loss_may_be_a_mean=best is not None and _names_a_summary(best.name),
    )


@lru_cache(maxsize=512)
def _names_a_step(name: str) -> bool:
    return any(word in name for word in ("batch", "step", "iter"))


@lru_cache(maxsize=512)
def _names_a_summary(name: str) -> bool:
    return any(word in name for word in _SUMMARY_WORDS)


_NO_VALUES = Values(
    loss=None,
    learning_rate=None,
    rate=None,
    eta_seconds=None,
    broken_gradient=False,
    has_validation_loss=False,
    loss_stands_alone=False,
    loss_is_part=False,
    loss_is_a_step=False,
    loss_may_be_a_mean=False,
)


def training_loss(pairs: Sequence[Pair]) -> float | None:
    """The training loss among them: one for the whole before parts, never a validation loss. It may be nan or inf."""
    best = _best_loss(pairs)
    return best.value if best else None


def learning_rate(pairs: Sequence[Pair]) -> float | None:
    """The learning rate; where each part of the model has its own, the first."""
    main = [pair.value for pair in pairs if pair.means.is_learning_rate and math.isfinite(pair.value)]
    if main:
        return main[-1]
    return next((pair.value for pair in pairs if pair.means.is_part_rate and math.isfinite(pair.value)), None)


def eta_seconds(pairs: Sequence[Pair]) -> float | None:
    """The last printed remaining time."""
    left = next((pair for pair in reversed(pairs) if pair.means.is_time_left), None)
    if left is None:
        return None
    return duration_seconds(left.time or f"{left.value:.6f}{left.unit}")


def speed(pairs: Sequence[Pair], *, bare_time: bool = False) -> float | None:
    """Steps per second, never samples or tokens."""
    found: float | None = None
    for pair in pairs:
        if pair.time or not math.isfinite(pair.value):
            continue
        if pair.means.is_step_time or (bare_time and _may_be_step_time(pair)):
            found = per_second(pair.value * _seconds_per_unit(pair)) or found
        elif "/" in pair.unit and not pair.means.short.startswith(("train_", "eval_")):
            found = steps_per_second(f"{pair.value:.9f}{pair.unit}") or found
        elif pair.means.is_steps_per_second and pair.value > 0:
            found = pair.value
    return found


def _best_loss(pairs: Sequence[Pair]) -> Pair | None:
    losses = [pair for pair in pairs if pair.means.loss is not None and not pair.time]
    if len(losses) < 2:
        return losses[0] if losses else None
    best = min(pair.means.loss for pair in losses if pair.means.loss is not None)
    fits = [pair for pair in losses if pair.means.loss == best]
    if best == PART_LOSS and len({pair.name for pair in fits}) > 1:
        smoothed = [pair for pair in losses if pair.means.loss == SMOOTHED_LOSS]
        return smoothed[-1] if smoothed else None
    return fits[-1]  # several redraws may have ended up on one line


def _may_be_step_time(pair: Pair) -> bool:
    is_long = pair.unit.startswith(("h", "min")) or pair.value * _seconds_per_unit(pair) > _LONGEST_STEP_SECONDS
    return pair.means.short in ("time", "seconds") and not is_long


def _seconds_per_unit(pair: Pair) -> float:
    if pair.unit.startswith("ms") or "(ms)" in pair.name or pair.name.endswith("_ms") or pair.name.startswith("ms"):
        return 1e-3
    return 1e-6 if pair.unit.startswith(("us", "µs")) else 1.0
