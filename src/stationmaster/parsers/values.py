"""What pairs of names and numbers mean: the loss, the learning rate, the pace, the time left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from stationmaster.parsers.pairs import Pair
from stationmaster.parsers.quantities import duration_seconds, per_second, steps_per_second
from stationmaster.parsers.wording import any_of

_VALIDATION = any_of(r"\b(?:val|valid|validation|eval|evaluation|test|testing|dev|holdout)\b")
# The losses that stand for the whole, the best first; a part (loss_cls) only counts when it is alone.
_MAIN_LOSSES = (
    any_of(r"^loss$"),
    any_of(
        r"^(?:train(?:ing)?[ _/]?)?(?:total|avr|step|global|overall|full|current|batch)[ _]?loss(?:[ _/]step)?$",
        r"^train(?:ing)?[ _/]?loss_step$",
    ),
    any_of(
        r"^(?:reduced_)?train(?:ing)?[ _/.-]?loss$",
        r"^loss[ _/.-]?train(?:ing)?$",
        r"^lm[ _]loss$",
    ),
)
_SMOOTHED_LOSS = any_of(
    r"^(?:running|avg|average|mean|smoothed|smooth)[ _]loss$",
    r"^loss[ _](?:avg|mean|average)$",
    r"^train(?:ing)?_loss_epoch$",
)
_NO_LOSS = any_of(
    r"smooth|median|best|min|max|scale|scaling|ema|mean|\bavg|average|std|weight|prev|_epoch$|thresh|delta|running",
)
_MAIN_RATE = any_of(r"^(?:lr|learning[ _]rate|last_lr|learning_rate_0|lr_?0)$")
_SOME_RATE = any_of(r"(?:^|[ _/.-])(?:lr\d?|learning[ _]rate)(?:$|[ _/.-])", r"_lr\d*$")
_STEP_TIME = any_of(
    r"^(?:train[ _])?(?:iter(?:ation)?|step|batch|per-step)[ _-]?(?:time|cost|timing|avg|duration)"
    r"(?:_ms| in s)?(?: \((?:m?s|sec)\))?$",
    r"^(?:avg_)?batch_cost$",
    r"^elapsed time per iteration(?: \(m?s\))?$",
    r"^(?:ms|s|sec|seconds?)(?:/| per )(?:step|iter|it|batch)$",
    r"^(?:time|timing_s)/(?:iter|step)$",
    r"^dt$",
)
_STEPS_PER_SECOND = any_of(
    r"^ups$",
    r"^(?:global_)?(?:steps?|it|iters?|batches)(?:/|_per_|[ _]per[ _])s(?:ec(?:ond)?)?$",
    r"^train_speed \(iter/s\)$",
)
_TIME_LEFT = any_of(
    r"(?:^|[ _])eta(?:$|[ _])",
    r"(?:^|[ _])remain(?:ing)?(?:$|[ _])",
    r"(?:^|[ _])time[ _]left$",
)
_GRADIENT_NORM = any_of(r"grad(?:ient)?s?[ _/.-]?norm", r"gnorm")


def training_loss(pairs: Sequence[Pair]) -> float | None:
    """The training loss among them: a main one before parts, never a validation loss. It may be nan or inf."""
    losses = [pair for pair in pairs if "loss" in pair.name and not pair.time and not is_validation(pair.name)]
    for wanted in _MAIN_LOSSES:
        # The last one counts: several redraws may have ended up on one line.
        if fits := [pair for pair in losses if wanted.search(pair.short_name)]:
            return fits[-1].value
    parts = [pair for pair in losses if not _NO_LOSS.search(pair.name)]
    if len({pair.name for pair in parts}) == 1:
        return parts[-1].value
    smoothed = [pair for pair in losses if _SMOOTHED_LOSS.search(pair.short_name)]
    return smoothed[-1].value if smoothed else None


def has_validation_loss(pairs: Iterable[Pair]) -> bool:
    return any("loss" in pair.name and is_validation(pair.name) for pair in pairs)


def is_validation(name: str) -> bool:
    """Whether a value was measured on data that is not trained on."""
    return _VALIDATION.search(name.translate(_AS_SPACE)) is not None


_AS_SPACE = str.maketrans("_/.-", "    ")


def learning_rate(pairs: Sequence[Pair]) -> float | None:
    """The learning rate; where each part of the model has its own, the first."""
    finite = [pair for pair in pairs if math.isfinite(pair.value)]
    if main := [pair for pair in finite if _MAIN_RATE.search(pair.short_name)]:
        return main[-1].value
    return next((pair.value for pair in finite if _SOME_RATE.search(pair.short_name)), None)


def has_broken_gradient(pairs: Iterable[Pair]) -> bool:
    return any(
        _GRADIENT_NORM.search(pair.name) and not pair.time and not math.isfinite(pair.value) for pair in pairs
    )


def eta_seconds(pairs: Sequence[Pair]) -> float | None:
    """The last printed remaining time."""
    for pair in reversed(pairs):
        if _TIME_LEFT.search(pair.name):
            return duration_seconds(pair.time or f"{pair.value:.6f}{pair.unit}") if pair.value >= 0 or pair.time else None
    return None


def speed(pairs: Sequence[Pair], *, bare_time: bool = False) -> float | None:
    """Steps per second, never samples or tokens; `bare_time`: a field called just `time` is that of one step."""
    found: float | None = None
    for pair in pairs:
        name = pair.short_name
        if pair.time or not math.isfinite(pair.value):
            continue
        if _STEP_TIME.search(name) or (bare_time and name in ("time", "seconds")):
            found = per_second(pair.value * _seconds_per_unit(pair)) or found
        elif "/" in pair.unit and not name.startswith(("train_", "eval_")):
            found = steps_per_second(f"{pair.value:.9f}{pair.unit}") or found
        elif _STEPS_PER_SECOND.search(name) and pair.value > 0:
            found = pair.value
    return found


def _seconds_per_unit(pair: Pair) -> float:
    if pair.unit.startswith("ms") or "(ms)" in pair.name or pair.name.endswith("_ms") or pair.name.startswith("ms"):
        return 1e-3
    return 1e-6 if pair.unit.startswith(("us", "µs")) else 1.0
