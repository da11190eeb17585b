"""What most trainers print in some way: counters with values beside them, headers, epochs, saves, the end."""

from __future__ import annotations

import math
import re

from stationmaster.parsers.base import Family, Phase, Scope, Seen
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import (
    Pair,
    eta_seconds,
    has_broken_gradient,
    has_validation_loss,
    is_validation,
    learning_rate,
    speed,
    training_loss,
)
from stationmaster.parsers.saves import read_save

_HEADER_TOTAL = re.compile(
    r"(?:total (?:optimi[sz]ation |training |train |number of (?:training )?)?steps|max[_ ](?:train(?:ing)?[_ ])?steps|num[_ ](?:train(?:ing)?[_ ])steps|学習ステップ数)\s*[:=]\s*([\d,]+)",
    re.IGNORECASE,
)
_HEADER_EPOCHS = re.compile(
    r"(?:num(?:ber of)?[_ ](?:train(?:ing)?[_ ])?epochs?|total[_ ]epochs?|epoch数|max[_ ]epochs?|num_train_epochs)\s*[:=]\s*([\d,]+)",
    re.IGNORECASE,
)
_STARTS = re.compile(
    r"\*{3,} ?running training|^(?:\W*)(?:start(?:ing|ed)?|begin(?:ning)?|commencing)(?: the)?(?: model)? (?:training|train|fine-?tuning)\b|^running training\b|^training (?:started|begins|starts)|\bnum examples = .*\btotal steps = ",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:training|train|fine-?tuning|optimi[sz]ation)(?: (?!epoch|step|iter|stage|phase|batch|will|is not|not|may|can|before)\w+){0,3}[ :]+(?:complete[d]?|finished|done|ended|succeeded|successful(?:ly)?)\b(?! (?:for |of )?(?:epoch|step|iter|stage|batch))"
    r"|\b(?:finished|completed|done)(?: with)?(?: the)? (?:training|fine-?tuning)\b(?! (?:epoch|step|batch|stage))|^\d+ epochs? completed in\b|^\W*(?:train|predict) metrics \*|^total training time|^overall training speed|^training time\b"
    r"|\*\*\* best metric:|^early stopping\b|: early stopping$|\[after training is done\]",
    re.IGNORECASE,
)
_EVAL_METRICS = re.compile(r"^\W*(?:eval|evaluation|predict|test)\w* metrics \*", re.IGNORECASE)
_PHASES: tuple[tuple[re.Pattern[str], Phase], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), phase)
    for pattern, phase in (
        (
            r"^(?:caching|cache) (?:latents?|text|embed|prompt|vae|outputs?)|^checking cache validity|^(?:pre-?)?(?:computing|encoding) (?:text|prompt|latents?|embed|vae)|^building .{0,20}cache",
            Phase.CACHING,
        ),
        (
            r"^(?:running validation.*|)generating \d+ images|^generating (?:sample|image|first sample|baseline)|^sampling\b|^generating samples|サンプル画像生成",
            Phase.SAMPLING,
        ),
        (
            r"\*{3,} ?running (?:evaluation|prediction|testing)|^(?:running|starting|begin\w*|start) (?:evaluation|validation|testing)|^evaluating\b|^validating\b|^(?:validation|evaluation)\b",
            Phase.EVALUATING,
        ),
        (
            r"^(?:loading|load|downloading|download|fetching|quantizing|resolving|preparing (?:model|data)|building (?:model|dataset)|initiali[sz]ing|creating (?:model|dataset)|reading|importing)\b|^using downloaded",
            Phase.LOADING,
        ),
        (r"^saving\b", Phase.SAVING),
    )
)
_STEP_NAME = re.compile(
    r"(?:^|[ _/.-])(?:global[ _]?steps?|current[ _]steps?|steps?|iter(?:ation)?s?|num_updates|updates?|global[ _]iter|batch(?: idx)?|it)(?:/max_steps)?$"
)
_NOT_PROGRESS = re.compile(
    r"\b(?:accumulation|accum|warm-?up|total|max|num|per|logging|log|save|saving|eval|evaluation|sampl\w+|inference|every|resum\w+|skip\w*|override|size|decay|denois\w+|starting|start|from|ddim|until|lr|in|optim\w*|train_steps|than|least)\b"
)
_EPOCH_NAME = re.compile(r"(?:^|[ _/.])epochs?(?: idx| num(?:ber)?| id)?$")
_EVALUATES = re.compile(
    r"^(?:\W*)(?:val(?:id(?:ation|ating)?)?|eval(?:uat(?:ion|ing|e))?|test(?:ing)?(?: set)?|dev|predict\w*)\b(?!.{0,12}\btrain)|^(?:epoch|iter)\((?:val|test)\)",
    re.IGNORECASE,
)
_BATCH_WORD = re.compile(r"batch$")
_FINISHED_EPOCH = re.compile(r"\bepoch \d+/\d+ (?:completed|finished|done)", re.IGNORECASE)


def read_line(line: Line, memory: Memory) -> Seen | None:
    """The general reading of a line; every family falls back on it."""
    return (
        _read_end(line, memory)
        or _read_header(line)
        or _read_saved(line)
        or read_values(line, memory)
        or _read_phase(line)
    )


def read_values(line: Line, memory: Memory) -> Seen | None:
    """Progress told as names and numbers."""
    if line.message.startswith("wandb:") or not line.pairs:
        return None
    pairs = line.pairs
    if _EVALUATES.match(line.message):
        return Seen(phase=Phase.EVALUATING)
    step, total, bare_time = _step(pairs)
    epoch, total_epochs = _epoch(pairs)
    loss = training_loss(pairs)
    rate_of_learning = learning_rate(pairs)
    if step is None and epoch is None:
        return _values_alone(line, loss, rate_of_learning)
    has_values = (
        loss is not None or rate_of_learning is not None or eta_seconds(pairs) is not None or speed(pairs) is not None
    )
    if loss is None and rate_of_learning is None and has_validation_loss(pairs):
        return Seen(phase=Phase.EVALUATING, epoch=epoch, total_epochs=total_epochs)
    if step is not None and not has_values and (total is None or len(pairs) > 3):
        step = total = None
    if step is None and epoch is None:
        return None
    if epoch is not None and step is None:
        if not (has_values or total_epochs is not None or line.lower.startswith("epoch")):
            return None
        memory.has_epoch_lines = memory.has_epoch_lines or total_epochs is not None
    return Seen(
        step=step,
        total=total,
        scope=_scope(pairs, step, total, epoch, memory) if step is not None else None,
        epoch=epoch,
        total_epochs=total_epochs,
        loss=loss,
        loss_is_epoch_mean=step is None,
        broken_gradient=has_broken_gradient(pairs),
        learning_rate=rate_of_learning,
        rate=speed(pairs, bare_time=bare_time) if step is not None else None,
        eta_seconds=eta_seconds(pairs),
        phase=Phase.TRAINING,
        finished=step is not None
        and total is not None
        and step >= total
        and _scope(pairs, step, total, epoch, memory) == Scope.RUN,
        evidence=line.message,
    )


def _read_end(line: Line, memory: Memory) -> Seen | None:
    if _EVAL_METRICS.match(line.message):
        memory.doubt_bar()
        return Seen(finished=True)
    if _ENDS.search(line.message) and not _NOT_YET.search(line.message):
        return Seen(finished=True, saved=read_save(line))
    return None


_NOT_YET = re.compile(r"\b(?:when|once|after|until|before|will|not|if)\b.{0,20}\btrain", re.IGNORECASE)


def _read_header(line: Line) -> Seen | None:
    starts = _STARTS.search(line.message) is not None
    total = _HEADER_TOTAL.search(line.message)
    epochs = _HEADER_EPOCHS.search(line.message)
    if not (starts or total or epochs):
        return None
    count = int(epochs[1].replace(",", "")) if epochs else None
    return Seen(
        starts_training=starts,
        header_total=int(total[1].replace(",", "")) if total else None,
        total_epochs=count if count is not None and count < 10**9 else None,  # streaming sets: sys.maxsize epochs
        phase=Phase.TRAINING if starts else None,
    )


def _read_saved(line: Line) -> Seen | None:
    saved = read_save(line)
    return Seen(saved=saved, phase=Phase.SAVING) if saved else None


def _read_phase(line: Line) -> Seen | None:
    for pattern, phase in _PHASES:
        if pattern.search(line.message):
            announces = phase if phase != Phase.SAVING and phase != Phase.LOADING else None
            return Seen(phase=phase, announces=announces)
    return None


def _values_alone(line: Line, loss: float | None, rate_of_learning: float | None) -> Seen | None:
    """A line of values without a counter: it belongs to the step told before or after it."""
    pairs = line.pairs
    pace, remaining = speed(pairs), eta_seconds(pairs)
    if loss is None and rate_of_learning is None and pace is None and remaining is None:
        return None
    if not any(pair.tied for pair in pairs):
        return None
    return Seen(
        loss=loss,
        learning_rate=rate_of_learning,
        rate=pace,
        eta_seconds=remaining,
        broken_gradient=has_broken_gradient(pairs),
        phase=Phase.TRAINING if loss is not None else None,
        evidence=line.message,
    )


def _step(pairs: list[Pair]) -> tuple[int | None, int | None, bool]:
    """The step counter and its total, and whether a bare `time` beside it is the time of one step."""
    best: Pair | None = None
    for pair in pairs:
        name = pair.name
        if (
            not pair.whole
            or pair.unit.startswith("/")
            or not _STEP_NAME.search(name)
            or _NOT_PROGRESS.search(name.replace("_", " "))
            or is_validation(name)
        ):
            continue
        if _BATCH_WORD.search(name) and pair.of is None and best is not None:
            continue
        if (
            best is None
            or ("global" in name and "global" not in best.name)
            or (_BATCH_WORD.search(best.name) and best.of is None)
        ):
            best = pair
    if best is None:
        return None, None, False
    has_ms = any(pair.name.endswith("time") and pair.unit == "ms" for pair in pairs)
    return (
        int(best.value),
        best.of,
        has_ms
        or (best.name.startswith("iter") and any(pair.name == "eta" or pair.name == "data_time" for pair in pairs)),
    )


def _epoch(pairs: list[Pair]) -> tuple[float | None, int | None]:
    for pair in pairs:
        if (
            _EPOCH_NAME.search(pair.name)
            and not pair.time
            and math.isfinite(pair.value)
            and not _NOT_PROGRESS.search(pair.name.replace("_", " "))
        ):
            return pair.value, pair.of
    return None, None


def _scope(pairs: list[Pair], step: int | None, total: int | None, epoch: float | None, memory: Memory) -> Scope:
    is_global = any("global" in pair.name or "current" in pair.name for pair in pairs)
    if total is None or is_global:
        return Scope.RUN
    return Scope.EPOCH if epoch is not None or memory.has_epoch_lines else Scope.RUN


FAMILY = Family(name="plain", titles=("text", "generic"), read_line=read_line)
