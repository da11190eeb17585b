"""What the name before a number means. Names repeat all the time, so each is looked at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stationmaster.parsers.base import any_of

#: A longer name is a sentence: only its end can mean something.
NAME_LIMIT = 80
_KNOWN_NAMES = 4096

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
    r"smooth|median|best|min|max|scale|scaling|ema|mean|\bavg|average|std|weight|prev|_epoch$|thresh|delta|running|multipl|coef|lambda|factor|alpha|beta|gamma|ratio|count|every|interval|type|steps?$",
)
_MAIN_RATE = any_of(r"^(?:lr|learning[ _]rate|last_lr|learning_rate_0|lr_?0)$")
_SOME_RATE = any_of(r"(?:^|[ _/.-])(?:lr\d?|learning[ _]rate)(?:$|[ _/.-])", r"_lr\d*$")
_STEP_TIME = any_of(
    r"^(?:train[ _])?(?:iter(?:ation)?|step|batch|per-step)[ _-]?(?:time|cost|timing|avg|duration)"
    r"(?:_ms| in s)?(?: \((?:m?s|sec)\))?$",
    r"^(?:avg_)?batch_cost$",
    r"^(?:time|m?s|secs?|seconds)_per_(?:step|iter(?:ation)?|it|batch)$",
    r"^(?:step|iter|batch)_(?:ms|dt)$",
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
    r"(?:^|[ _])time[ _](?:left|remaining)$",
)
_GRADIENT_NORM = any_of(r"grad(?:ient)?s?[ _/.-]?norm", r"gnorm")
_STEP = any_of(
    r"(?:^|[ _/.-])(?:(?:global|current)[ _]?(?:steps?|iter)|steps?|iter(?:ation)?s?|num_updates|updates?)$",
    r"(?:^|[ _/.-])(?:batch(?:[ _](?:idx|id|index))?|it)$|^i$",
)
_BATCH = any_of(r"batch(?:[ _](?:idx|id|index))?$", r"(?:^| )it$|^i$")
_EPOCH = any_of(r"(?:^|[ _/.])(?:epochs?|[eé]pocas?|[eé]poques?|epoche)(?: idx| num(?:ber)?| id)?$")
# "warmup steps = 100", "batch size: 4", "every 500 steps": numbers of a plan, not of progress.
_PLAN = any_of(
    r"\b(?:accumulation|accum|warm-?up|total|max|num|per|logging|log|save|saving|eval|evaluation|sampl\w+|inference"
    r"|every|resum\w+|skip\w*|override|size|decay|denois\w+|starting|start|from|ddim|until|in|optim\w*|than|least)\b",
)
_VERB = any_of(r"(?: so far)? (?:is|was)$")  # "the loss so far is"
_SECOND_WORDS = frozenset({"loss", "rate", "norm", "time", "avg", "mean", "average", "cost"})
_AS_SPACE = str.maketrans("_/.-", "    ")

MAIN_LOSSES = len(_MAIN_LOSSES)
PART_LOSS = MAIN_LOSSES
SMOOTHED_LOSS = MAIN_LOSSES + 1
BATCH_COUNTER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a number with this name means."""

    short: str  # the name without prose before it and without its logger's folder
    loss: int | None  # rank among losses, the smallest stands for the whole; None: not the training's
    is_validation_loss: bool
    is_learning_rate: bool
    is_part_rate: bool  # the learning rate of a part of the model
    is_step_time: bool
    is_steps_per_second: bool
    is_time_left: bool
    is_gradient_norm: bool
    step: int | None  # rank among counters: a global step before a plain one, any step before a batch
    is_epoch: bool


@lru_cache(maxsize=_KNOWN_NAMES)
def meaning_of(name: str) -> Meaning:
    name = _VERB.sub("", name)
    short = _short(name)
    is_validation_name = is_validation(name)
    is_plan = _PLAN.search(name.removesuffix("/max_steps").replace("_", " ")) is not None
    return Meaning(
        short=short,
        loss=_loss_rank(name, short) if _is_loss(name) and not is_validation_name else None,
        is_validation_loss="loss" in name and is_validation_name,
        is_learning_rate=_MAIN_RATE.search(short) is not None,
        is_part_rate=_SOME_RATE.search(short) is not None,
        is_step_time=_STEP_TIME.search(short) is not None,
        is_steps_per_second=_STEPS_PER_SECOND.search(short) is not None
        or _STEPS_PER_SECOND.search(short.rpartition("/")[2]) is not None,
        is_time_left=_TIME_LEFT.search(name) is not None,
        is_gradient_norm=_GRADIENT_NORM.search(name) is not None,
        step=None if is_plan or is_validation_name else _step_rank(name.removesuffix("/max_steps")),
        is_epoch=not is_plan and _EPOCH.search(name) is not None,
    )


def is_validation(name: str) -> bool:
    """Whether a value was measured on data that is not trained on."""
    return _VALIDATION.search(name.translate(_AS_SPACE)) is not None


def _short(name: str) -> str:
    if " " in name:
        words = name.split(" ")
        if not (words[-1].startswith("(") or " per " in name or name.endswith(" in s")):
            name = " ".join(words[-2:] if words[-1] in _SECOND_WORDS else words[-1:])
    return name.removeprefix("train/").removeprefix("training/")


def _is_loss(name: str) -> bool:
    """`train/ce_loss` and `loss/video` are losses, `crf_loss/transition` is a weight."""
    folders = name.split("/")
    return "loss" in folders[-1] or folders[0] == "loss"


def _loss_rank(name: str, short: str) -> int | None:
    for rank, wanted in enumerate(_MAIN_LOSSES):
        if wanted.search(short):
            return rank
    if not _NO_LOSS.search(name):
        return PART_LOSS
    return SMOOTHED_LOSS if _SMOOTHED_LOSS.search(short) else None


def _step_rank(name: str) -> int | None:
    if not _STEP.search(name):
        return None
    if "global" in name:
        return 0
    return BATCH_COUNTER if _BATCH.search(name) else 1
