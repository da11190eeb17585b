"""Names and numbers in a line, whatever stands between them: `loss=0.1`, `loss: 0.1`, `'loss': '0.1'`, `loss 0.1 (0.2)`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stationmaster.parsers.quantities import duration_seconds, per_second, steps_per_second

_WORD = r"(?!(?:nan|inf|infinity)\b)[^\W\d][\w./@%#-]*+"
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++(?!\d)|(?=\.\d))(?:\.\d*+)?(?:e[-+]?\d++)?"
_TIME = (
    r"\d++ days?, *\d++:\d\d:\d\d|\d++:\d\d(?::\d\d)?(?:\.\d++)?(?![\d:])"
    r"|\d++ ?[dhm],? ?\d++ ?[hms](?:,? ?\d++ ?s)?(?![a-z/])"
)
# A name may only start at a word boundary and takes at most six words, so a line is read in linear time.
_PAIR = re.compile(
    rf"(?<![\w./@%#-])(?P<name>{_WORD}(?: {_WORD}){{0,5}}+)(?: ?\((?P<note>[\w/]{{1,12}})\))?+"
    rf"['\"`]?\s*+(?P<tie>[:=]?)\s*+(?:tensor|np\.float\d\d)?['\"`\[(]*+\s*+"
    rf"(?:(?P<time>{_TIME})|(?P<number>{_NUMBER}|[-+]?(?:nan|inf(?:inity)?)\b)"
    rf"(?:\s*/\s*(?P<of>\d[\d,]*+)(?![\d.]*[a-z])| of (?P<out_of>\d[\d,]*+)"
    rf"| ?(?P<unit>(?:ms|us|µs|sec|secs|seconds|s|it|iter|iters|steps?|batch|batches)(?:/[a-z]+)?)(?![\w/])|(?P<glued>[a-z%][\w/]*+))?)",
    re.IGNORECASE,
)
_QUIET_WORDS = re.compile(r"\b(?:val|valid|validation|eval|evaluation|test|testing|dev|holdout)(?:\b|(?=loss))")
_SMOOTHED = re.compile(
    r"smooth|median|best|min|max|scale|scaling|ema|last_epoch|mean|\bavg|average|std|weight|prev|_epoch$|thresh|delta"
)
_MAIN_LOSS = (
    re.compile(r"^loss$"),
    re.compile(
        r"^(?:train(?:ing)?[ _/]?)?(?:total|avr|step|global|overall|full|current|batch)[ _]?loss(?:[ _/]step)?$|^train[ _/]?loss_step$"
    ),
    re.compile(r"^(?:reduced_)?train(?:ing)?[ _/.-]?loss(?:_step)?$|^loss[ _/.-]?train(?:ing)?$|^lm[ _]loss$"),
    re.compile(
        r"^(?:running|avg|average|mean|smoothed|smooth)[ _]loss$|^loss[ _](?:avg|mean|average)$|^train_loss_epoch$"
    ),
)
_MAIN_RATE = re.compile(r"^(?:lr|learning[ _]rate|last_lr|learning_rate_0|lr_0|lr0)$")
_SOME_RATE = re.compile(r"(?:^|[ _/.-])(?:lr\d?|learning[ _]rate)(?:$|[ _/.-])|_lr\d*$")
_STEP_TIME = re.compile(
    r"^(?:iter(?:ation)?|step|batch|train[ _]step|per[- ]step|train[ _]iter)[ _-]?(?:time|cost|timing|avg|duration)(?: in s)?(?: \((?:m?s|sec)\))?$"
    r"|^(?:avg_)?batch_cost$|^elapsed time per iteration(?: \(m?s\))?$|^(?:ms|s|sec|seconds?)[/ ](?:per )?(?:step|iter|it|batch)$"
    r"|^step_avg$|^dt$|^time/iter$|^(?:time|timing_s)/step$|^train_step_timing in s$|^(?:iter|step)_?time(?:_ms)?$"
)
_STEPS_PER_SECOND = re.compile(
    r"^(?:ups|(?:global_)?(?:steps?|it|iters?|batches)(?:/|_per_|_/|[ _]per[ _])s(?:ec(?:ond)?)?|train_speed(?: \(iter/s\)))$"
)
_ETA = re.compile(
    r"(?:^|[ _])(?:eta|remaining(?:[ _]time)?|time[ _](?:left|remaining)|remain|remaining_time)(?:$|[ _])"
)
_GRADIENT = re.compile(r"grad(?:ient)?s?[ _/.-]?norm|gnorm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A name and the number printed after it."""

    name: str  # lower case
    value: float  # nan for a clock time
    of: int | None = None  # the M of N/M
    unit: str = ""
    time: str = ""  # the value when it is a time such as 1:02:03 or 20m 1s
    tied: bool = True  # by a colon or an equals sign
    whole: bool = False
    start: int = 0


def find_pairs(text: str) -> list[Pair]:
    """All numbers with a name before them, in order.

    >>> [(pair.name, pair.value) for pair in find_pairs("Step 120: loss=0.5, lr 1e-4")]
    [('step', 120.0), ('loss', 0.5), ('lr', 0.0001)]
    """
    return [_pair(found) for found in _PAIR.finditer(text)]


def training_loss(pairs: Sequence[Pair]) -> float | None:
    """The training loss among them: a main one before parts, never a validation loss. It may be nan or inf."""
    losses = [pair for pair in pairs if "loss" in pair.name and not pair.time and not is_validation(pair.name)]
    for wanted in _MAIN_LOSS:
        # The last one counts: several redraws may have ended up on one line.
        if fits := [pair for pair in losses if wanted.search(last_words(pair.name))]:
            return fits[-1].value
    parts = [pair for pair in losses if not _SMOOTHED.search(pair.name)]
    if len({pair.name for pair in parts}) == 1:
        return parts[-1].value
    return None


def has_validation_loss(pairs: Iterable[Pair]) -> bool:
    return any("loss" in pair.name and is_validation(pair.name) for pair in pairs)


def is_validation(name: str) -> bool:
    return _QUIET_WORDS.search(name.replace("_", " ").replace("/", " ").replace("-", " ").replace(".", " ")) is not None


def learning_rate(pairs: Sequence[Pair]) -> float | None:
    for wanted in (_MAIN_RATE, _SOME_RATE):
        fits = [pair for pair in pairs if wanted.search(last_words(pair.name)) and math.isfinite(pair.value)]
        if fits:
            return fits[-1].value if wanted is _MAIN_RATE else fits[0].value
    return None


def has_broken_gradient(pairs: Iterable[Pair]) -> bool:
    return any(_GRADIENT.search(pair.name) and not pair.time and not math.isfinite(pair.value) for pair in pairs)


def eta_seconds(pairs: Sequence[Pair]) -> float | None:
    """The last printed remaining time."""
    for pair in reversed(pairs):
        if _ETA.search(pair.name):
            return duration_seconds(pair.time or f"{pair.value:g}{pair.unit}")
    return None


def speed(pairs: Sequence[Pair], *, bare_time: bool = False) -> float | None:
    """Steps per second; `bare_time`: a field called just `time` is the seconds of one step."""
    found: float | None = None
    for pair in pairs:
        name = last_words(pair.name)
        if pair.time or not math.isfinite(pair.value):
            continue
        if _STEP_TIME.search(name) or (bare_time and name in ("time", "seconds")):
            found = per_second(pair.value * _seconds_of_unit(pair, name)) or found
        elif pair.unit.count("/") == 1 and not name.startswith(("train_", "eval_")):
            found = steps_per_second(f"{pair.value}{pair.unit}") or found
        elif _STEPS_PER_SECOND.search(name) and pair.value > 0:
            found = pair.value
    return found


def last_words(name: str) -> str:
    """A name without words of prose before it and without its logger's folder."""
    words = name.split(" ")
    kept = (
        words[-2:]
        if len(words) > 1 and words[-1] in ("loss", "rate", "norm", "time", "avg", "mean", "average")
        else words[-1:]
    )
    if len(words) > 2 and (" per " in name or " in s" in name or words[-1].startswith("(")):
        kept = words
    elif len(words) > 1 and words[-1].startswith("("):
        kept = words[-3:] if words[-2] == "time" else words[-2:]
    text = " ".join(kept)
    return text.removeprefix("train/").removeprefix("training/")


def _pair(found: re.Match[str]) -> Pair:
    name = found["name"].lower()
    if found["note"]:
        name += f" ({found['note'].lower()})"
    number = found["number"]
    bare = number.replace(",", "") if number else ""
    of = found["of"] or found["out_of"]
    return Pair(
        name=name,
        value=float(bare) if bare else math.nan,
        of=int(of.replace(",", "")) if of and len(of) < 20 else None,
        unit=(found["unit"] or found["glued"] or "").lower(),
        time=found["time"] or "",
        tied=bool(found["tie"]),
        whole=bare.isdigit(),
        start=found.start(),
    )


def _seconds_of_unit(pair: Pair, name: str) -> float:
    if pair.unit.startswith("ms") or "(ms)" in name or name.endswith("_ms") or name.startswith("ms"):
        return 1e-3
    return 1e-6 if pair.unit.startswith(("us", "µs")) else 1.0
