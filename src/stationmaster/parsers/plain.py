"""What most trainers print in some way: counters with values beside them, headers, epochs, saves, the end."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers.base import Parsed, Phase, Scope, any_of
from stationmaster.parsers.counters import PrintedCounter, find_counter
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import Pair
from stationmaster.parsers.quantities import per_second, steps_per_second, whole
from stationmaster.parsers.saves import read_save
from stationmaster.parsers.values import Values, values_of

_HEADER_TOTAL = any_of(
    r"(?:total (?:optimi[sz]ation |training |train |number of (?:training )?)?steps|max[_ ](?:train(?:ing)?[_ ])?steps"
    r"|num[_ ](?:train(?:ing)?[_ ])steps|(?:max|total|num)[_ ]iter(?:ation)?s|^start\w* training\W+iters"
    r"|学習ステップ数)\s*[:=]\s*([\d,]+)",
    r"^training for ([\d,]+) (?:steps|iterations)\b",
    r"\bmax: ([\d,]+) iters$",  # mmcv
)
_HEADER_EPOCHS = any_of(
    r"(?:num(?:ber of)?[_ ](?:train(?:ing)?[_ ])?epochs?|total[_ ]epochs?|epoch数|max[_ ]epochs?)\s*[:=]\s*([\d,]+)",
    r"^training for ([\d,]+) epochs\b",
    r"\bmax: ([\d,]+) epochs$",
)
_SET_EPOCHS = re.compile(r"\bepochs\s*[:=]\s*(\d{1,9})\b(?![./])")  # `epochs=10` among settings
_STARTS = any_of(
    r"\*{3,} ?running training",
    r"^\W*(?:start(?:ing|ed)?|begin(?:ning)?)(?: the)?(?: model)? (?:training|train|fine-?tuning)\b(?! epoch)",
    r"^running training\b",
    r"^training (?:started|begins|starts)",
    r"\bnum examples = .{0,120}\btotal steps = ",
)
_TRAINING = r"\b(?:training|train|fine-?tuning|optimi[sz]ation)"
_PART = r"(?:epoch|step|iter|stage|phase|batch)"
_ENDS = any_of(
    rf"{_TRAINING}(?: (?!{_PART}|will|is not|not|may|can|before)\w+){{0,3}}[ :]+"
    rf"(?:completed?|finished|done|ended|succeeded|successful(?:ly)?)\b(?! (?:for |of )?{_PART})",
    rf"\b(?:finished|completed|done)(?: with)?(?: the)? (?:training|fine-?tuning)\b(?! {_PART})",
    r"^\d+ epochs? completed in\b",
    r"^(?:total training time|overall training speed|training time)\b",
    r"\*\*\* best metric:",
    r"^early stopping\b|: early stopping$|^stopping training early\b",
    r"^results saved to\b",
    r"\[after training is done\]",
)
_NOT_YET = any_of(r"\b(?:when|once|after|until|before|will|not|if)\b.{0,20}\btrain")
_TAG = re.compile(r"\[[^\[\]]{1,24}\] *")
_DECORATION = re.compile(r"^[=#~>+-]+ +")
_PHASES: tuple[tuple[re.Pattern[str], Phase], ...] = (
    (
        any_of(
            r"^(?:caching|cache) (?:latents?|text|embed|prompt|vae|outputs?)",
            r"^checking cache validity",
            r"^(?:pre-?)?(?:computing|encoding) (?:text|prompt|latents?|embed|vae)",
            r"^building .{0,20}cache",
        ),
        Phase.CACHING,
    ),
    (any_of(r"^generating (?:\d+ images|sample|image|first sample|baseline)", r"^sampling\b"), Phase.SAMPLING),
    (
        any_of(
            r"\*{3,} ?running (?:evaluation|prediction|testing)",
            r"^(?:running|starting|begin\w*|start) (?:eval|evaluation|validation|testing)\b",
            r"^(?:evaluating|validating|validation|evaluation)\b|^start inference on\b",
        ),
        Phase.EVALUATING,
    ),
    (
        any_of(
            r"^(?:loading|load|downloading|download|fetching|quantizing|resolving|initiali[sz]ing|reading|importing)\b",
            r"^(?:preparing|building|creating) (?:the )?(?:model|data)",
        ),
        Phase.LOADING,
    ),
    (any_of(r"^saving\b"), Phase.SAVING),
)
_EVALUATES = any_of(
    r"^\W*(?:val(?:id(?:ation|ating)?)?|eval(?:uat(?:ion|ing|e))?|test(?:ing)?|dev|predict\w*|inference done)\b"
    r"(?!.{0,12}\btrain)",
)
_EPOCH_EVALUATED = any_of(r"epoch:? *(\d+)(?:/\d+)?[ :,|-]+(?:val|valid|validation|dev|test|eval\w*)\b(?! ?[_/]?loss)")
_MEASURED = re.compile(
    r"\b(?:val|valid|validation|eval|test)[ _]\w{0,12}"
    r"(?:acc|accuracy|iou|f1|bleu|map|recall|precision|auc|psnr|wer|cer)$"
)
_EPOCH_BEGINS = any_of(
    r"^(?:start(?:ing)?|begin(?:ning)?)(?: of)?(?: training)? epoch:? *(\d{1,9})(?: *(?:/|of) *(\d{1,9}))?(?![\d.])",
)
_SAVED_IN_EPOCH = re.compile(r"epoch (\d{1,9})(?:: |, )")
_STEP_TIME_CELL = re.compile(r"\| *(\d+(?:\.\d+)?) ?ms *\|")  # llm.c names no names
_PACE_CELL = re.compile(
    r"(?<![\w.])\d+(?:\.\d+)? ?(?:(?:it|iter|step|batch)(?:s|es)?/s(?:ec)?|m?s(?:ec)?/(?:it|iter|step|batch))\b"
)
_BOXED_COUNTER = re.compile(r"\[ *(\d+)/ *(\d+)\](?= )")  # `[0500/2000] loss …` names neither step nor epoch
_LEADING_COUNTER = re.compile(r"(\d+)/(\d+)(?: *[:|,-])? +(?=[A-Za-z_]*loss\b)", re.IGNORECASE)
_LAST_COUNTER = re.compile(r"(?<= )\[ *(\d+)/ *(\d+)\]$")
_COUNTED_BATCHES = re.compile(r"(?<![\d./])(\d+)/ *(\d+) batches\b")
_PAIRS_OF_A_BARE_COUNTER = 4  # "Step 3/10", with its epoch and perhaps a host; more is a sentence
_STREAMING_EPOCHS = 10**9  # a data set without an end: sys.maxsize epochs


def read_line(line: Line, memory: Memory) -> Parsed | None:
    """The general reading of a line; every family falls back on it."""
    return _read_end(line) or _read_header(line) or _read_saved(line) or read_values(line, memory) or _read_phase(line)


def read_values(line: Line, memory: Memory, *, is_record: bool = False) -> Parsed | None:
    """Progress printed as names and numbers; in a record of one step, an epoch's loss is that step's."""
    pairs = line.pairs()
    if not pairs or line.message.startswith("wandb:"):
        return None
    if _EVALUATES.match(line.message):
        return Parsed(phase=Phase.EVALUATING, epoch=next((pair.value for pair in pairs if pair.name == "epoch"), None))
    if not is_record and (found := _EPOCH_EVALUATED.match(line.message)):
        return Parsed(phase=Phase.EVALUATING, epoch=float(found[1]))
    counter, values = find_counter(pairs), values_of(pairs, bare_time=_time_is_per_step(pairs))
    if not is_record and (found := _EPOCH_BEGINS.match(line.message)):
        counter = PrintedCounter(
            step=None, total=None, epoch=float(found[1]), total_epochs=int(found[2]) if found[2] else None
        )
        return _epoch_line(line, counter, values, memory, is_mean=True)
    if values.loss is not None and counter.total is None and "/" in line.message:
        counter = _unnamed_counter(line, counter, memory) or counter
    if counter.step is None and counter.epoch is None:
        return _values_alone(line, pairs, values, memory)
    if values.loss is None and values.learning_rate is None and values.has_validation_loss:
        return _evaluation_line(counter, values, memory)
    if values.has_validation_loss and memory.has_step_loss and counter.total is None and counter.step == memory.step:
        return Parsed(phase=Phase.EVALUATING, epoch=counter.epoch)  # both losses, measured once more at this step
    has_values = not values.are_empty() or any(pair.means.loss is not None for pair in pairs)
    starts_with_epoch = line.lower.startswith(("epoch", "train epoch", "training epoch"))
    is_bare = counter.total is not None and len(pairs) <= _PAIRS_OF_A_BARE_COUNTER
    if counter.step is not None and (has_values or is_bare or (starts_with_epoch and counter.epoch_first)):
        return _step_line(line, counter, values, memory)
    if counter.epoch is not None and (has_values or counter.total_epochs is not None or starts_with_epoch):
        return _epoch_line(line, counter, values, memory, is_mean=not is_record)
    return None


def _read_end(line: Line) -> Parsed | None:
    if _ENDS.search(line.message) and not _NOT_YET.search(line.message):
        return Parsed(finished=True, saved=read_save(line))
    return None


def _read_header(line: Line) -> Parsed | None:
    starts = _STARTS.search(line.message) is not None
    total = _HEADER_TOTAL.search(line.message)
    epochs = _HEADER_EPOCHS.search(line.message)
    if epochs is None and "epochs" in line.lower and "loss" not in line.lower:
        epochs = _SET_EPOCHS.search(line.lower)
    if not (starts or total or epochs):
        return None
    count = _first_number(epochs) if epochs else _STREAMING_EPOCHS
    return Parsed(
        starts_training=starts,
        header_total=_first_number(total) or None if total else None,
        total_epochs=count if count < _STREAMING_EPOCHS else None,
        phase=Phase.TRAINING if starts else None,
    )


def _first_number(found: re.Match[str]) -> int:
    return int(next(filter(None, found.groups()), "").replace(",", "") or 0)


def _read_saved(line: Line) -> Parsed | None:
    saved = read_save(line)
    if saved is None:
        return None
    epoch = _SAVED_IN_EPOCH.match(line.lower)
    return Parsed(saved=saved, epoch=float(epoch[1]) if epoch else None, phase=Phase.SAVING)


def _read_phase(line: Line) -> Parsed | None:
    text = _DECORATION.sub("", _TAG.sub("", line.message, count=1) if line.message.startswith("[") else line.message)
    for pattern, phase in _PHASES:
        if pattern.search(text):
            announces = phase if phase not in (Phase.SAVING, Phase.LOADING) else None
            return Parsed(phase=phase, announces=announces)
    return None


def _values_alone(line: Line, pairs: list[Pair], values: Values, memory: Memory) -> Parsed | None:
    """A line of values without a counter: it belongs to the step printed before or after it."""
    measures = values.has_validation_loss or any(_MEASURED.search(pair.name) for pair in pairs)
    in_evaluation = memory.announced == Phase.EVALUATING and values.learning_rate is None
    if (measures and values.loss is None) or in_evaluation:
        return Parsed(phase=None if memory.finished else Phase.EVALUATING)
    if not values.loss_stands_alone and memory.step is None and memory.epoch is None:
        return None  # more likely a setting
    if values.loss is values.learning_rate is values.rate is None:
        return None
    starts_with_loss = values.loss_stands_alone and line.lower.startswith(("train loss", "training loss"))
    if not starts_with_loss and not any(pair.tied for pair in pairs):
        return None
    return Parsed(
        loss=values.loss,
        loss_is_part=values.loss_is_part,
        loss_is_epoch_mean=values.loss_may_be_a_mean and not values.loss_is_a_step,
        learning_rate=values.learning_rate,
        rate=values.rate,
        eta_seconds=values.eta_seconds,
        broken_gradient=values.broken_gradient,
        phase=Phase.TRAINING if values.loss is not None else None,
        evidence=line.message,
    )


def _step_line(line: Line, counter: PrintedCounter, values: Values, memory: Memory) -> Parsed:
    scope, rate = counter.scope(memory), values.rate if values.rate is not None else _unnamed_pace(line)
    return Parsed(
        step=counter.step,
        total=counter.total,
        scope=scope,
        epoch=counter.epoch,
        total_epochs=counter.total_epochs,
        loss=values.loss,
        loss_is_part=values.loss_is_part,
        broken_gradient=values.broken_gradient,
        learning_rate=values.learning_rate,
        rate=rate,
        eta_seconds=values.eta_seconds,
        phase=Phase.TRAINING,
        finished=scope == Scope.RUN and counter.total is not None and (counter.step or 0) >= counter.total > 0,
        evidence=line.message,
    )


def _epoch_line(line: Line, counter: PrintedCounter, values: Values, memory: Memory, *, is_mean: bool) -> Parsed:
    memory.has_epoch_lines = memory.has_epoch_lines or counter.total_epochs is not None
    return Parsed(
        epoch=counter.epoch,
        total_epochs=counter.total_epochs,
        loss=values.loss,
        loss_is_part=values.loss_is_part,
        loss_is_epoch_mean=is_mean and not values.loss_is_a_step,
        broken_gradient=values.broken_gradient,
        learning_rate=values.learning_rate,
        eta_seconds=values.eta_seconds,
        phase=Phase.TRAINING,
        evidence=line.message,
    )


def _evaluation_line(counter: PrintedCounter, values: Values, memory: Memory) -> Parsed:
    """A validation loss; the counter beside it is the training's where the training's pace is printed too."""
    goes_on = counter.total is not None and memory.total in (None, counter.total) and not counter.is_batch
    is_training = goes_on and values.rate is not None and (memory.step is None or (counter.step or 0) > memory.step)
    return Parsed(
        step=counter.step if is_training else None,
        total=counter.total if is_training else None,
        rate=values.rate if is_training else None,
        epoch=counter.epoch,
        total_epochs=counter.total_epochs,
        phase=Phase.EVALUATING,
    )


def _unnamed_counter(line: Line, named: PrintedCounter, memory: Memory) -> PrintedCounter | None:
    """A counter beside a loss that is called neither step nor epoch."""
    if named.step is None and (found := _COUNTED_BATCHES.search(line.lower)):
        return replace(named, step=whole(found[1]), total=whole(found[2]), is_batch=True, epoch_first=True)
    if named.epoch is not None:
        return None
    if found := _BOXED_COUNTER.match(line.message) or _LEADING_COUNTER.match(line.message):
        return PrintedCounter(step=whole(found[1]), total=whole(found[2]))
    if found := _LAST_COUNTER.search(line.message):  # the PyTorch quickstart, per epoch
        return PrintedCounter(step=whole(found[1]), total=whole(found[2]), is_batch=memory.epoch is not None)
    return None


def _unnamed_pace(line: Line) -> float | None:
    if cell := _STEP_TIME_CELL.search(line.message):
        return per_second(float(cell[1]) / 1000)
    cell = _PACE_CELL.search(line.lower) if "/s" in line.lower or "s/" in line.lower else None
    return steps_per_second(cell[0]) if cell else None


def _time_is_per_step(pairs: list[Pair]) -> bool:
    """A bare `time` is that of one step when it is in milliseconds, or beside what such logs print."""
    if not any(pair.means.short in ("time", "seconds") for pair in pairs):
        return False
    names = {pair.name.split(" ")[-1] for pair in pairs}
    in_milliseconds = any(pair.means.short == "time" and pair.unit == "ms" for pair in pairs)
    return in_milliseconds or bool(names & {"eta", "data_time", "data", "seconds", "mfu"})


FAMILY = Family(name="plain", titles=("text", "generic"), read_line=read_line)
