"""mmengine, detectron2, torchvision, LAVIS, PaddleDetection, timm, fairseq: `Epoch: [0] [10/60] eta: … loss: …`."""

from __future__ import annotations

import re
from dataclasses import replace

from stationmaster.parsers.base import Parsed, Phase, Scope
from stationmaster.parsers.family import Family
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import Pair, find_pairs
from stationmaster.parsers.quantities import per_second
from stationmaster.parsers.values import values_of

_MODE = re.compile(r"(?:Epoch|Iter)\(train\)\s*(?:\[\s*(?P<epoch>\d+)\])?\s*\[\s*(?P<n>\d+)/\s*(?P<m>\d+)\]")
_EVALUATION_MODE = re.compile(r"(?:Epoch|Iter)\((?!train\))\w+\)\s*(?:\[\s*(?P<epoch>\d+)\]\s*)?\[")
_EPOCH_THEN_STEP = re.compile(
    r"(?:\bepoch\b:?|\btrain:) *+"
    r"(?:\[ *+(?P<boxed>\d++)(?:/ *+(?P<boxed_of>\d++))? *\]|(?P<bare>\d++)(?:/(?P<bare_of>\d++))?) *+"
    r"(?::(?= +\d)|,)? *+(?:iter:? ?)?"
    r"(?:\[ *+(?P<n>\d++)/ *+(?P<m>\d++)|(?<=[: ])(?P<open_n>\d++) +/ +(?P<open_m>\d++))",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(?P<epoch>\d+)epoch:(?P<mode>\w+):(?:\d+-(?P<n>\d+)batch)?")  # ESPnet, FunASR
_EPOCH_STARTED = re.compile(r"(?P<epoch>\d+)/(?P<epochs>\d+)epoch started")
_PAIR_IN_BOX = re.compile(r"\[ *(?P<epoch>\d+), +(?P<n>\d+)\] +loss:", re.IGNORECASE)  # the PyTorch tutorial
_TWO_BOXES = re.compile(  # the PyTorch DCGAN example
    r"\[ *(?P<epoch>\d+)/ *(?P<epochs>\d+)\] *\[ *(?P<n>\d+)/ *(?P<m>\d+)\][\s:,-]*(?=\S*loss)", re.IGNORECASE
)
_PER_STEP = re.compile(r"\b(?:eta|data\w*|lr\w*|\w+_lr|learning.rate|mem\w*)\b|_mem")
_EVALUATION_BAR = re.compile(r"\[[ >=]*+\] *\d+/\d+, .{0,24}(?:task|it)/s, elapsed:")  # mmcv counts its tests like this
_EVALUATION_BEFORE = re.compile(r"\b(?:val\w*|eval\w*|test\w*)\b", re.IGNORECASE)


def read_line(line: Line, memory: Memory) -> Parsed | None:
    if line.message.startswith("["):
        if _EVALUATION_BAR.match(line.message):
            return Parsed(phase=Phase.EVALUATING)
        if found := _PAIR_IN_BOX.match(line.message):
            return _progress(line, found["n"], None, float(found["epoch"]), None, found.end("n"))
        if found := _TWO_BOXES.match(line.message):
            return _progress(line, found["n"], found["m"], float(found["epoch"]), int(found["epochs"]), found.end())
    if not any(word in line.lower for word in ("epoch", "iter(", "train:")):
        return None
    if parsed := _read_range(line):
        return parsed
    if found := _EVALUATION_MODE.search(line.message):
        return Parsed(phase=Phase.EVALUATING, epoch=float(found["epoch"]) if found["epoch"] else None)
    if found := _MODE.search(line.message):
        epoch = float(found["epoch"]) if found["epoch"] else None
        return _progress(line, found["n"], found["m"], epoch, None, found.end())
    found = _EPOCH_THEN_STEP.search(line.message)
    if found is None:
        return None
    if _EVALUATION_BEFORE.search(line.message[: found.start()]):
        return Parsed(phase=Phase.EVALUATING)
    epochs = found["boxed_of"] or found["bare_of"]
    return _progress(
        line,
        found["n"] or found["open_n"],
        found["m"] or found["open_m"],
        float(found["boxed"] or found["bare"]),
        int(epochs) if epochs else None,
        found.end(),
    )


def _read_range(line: Line) -> Parsed | None:
    if found := _EPOCH_STARTED.match(line.message):
        return Parsed(epoch=float(found["epoch"]), total_epochs=int(found["epochs"]), phase=Phase.TRAINING)
    found = _RANGE.match(line.message)
    if found is None:
        return None
    if found["mode"] != "train":
        return Parsed(phase=Phase.EVALUATING)
    if found["n"] is None:
        return Parsed(epoch=float(found["epoch"]))
    parsed = _progress(line, found["n"], None, float(found["epoch"]), None, found.end())
    step_seconds = next((pair.value for pair in line.pairs() if pair.name.endswith("train_time")), None)
    return replace(parsed, rate=per_second(step_seconds or 0.0))  # its iter_time is only that of the loader


def _time_is_per_step(pairs: list[Pair]) -> bool:
    """Beside what is measured per step; next to losses alone it is more likely the time since the start."""
    return any(_PER_STEP.search(pair.name) for pair in pairs)


def _progress(line: Line, n: str, m: str | None, epoch: float | None, total_epochs: int | None, end: int) -> Parsed:
    pairs = find_pairs(line.message[end:])
    values = values_of(pairs, bare_time=_time_is_per_step(pairs))
    step, total = int(n), int(m) if m else None
    return Parsed(
        step=step,
        total=total,
        scope=Scope.RUN if epoch is None else Scope.EPOCH,
        epoch=epoch,
        total_epochs=total_epochs,
        loss=values.loss,
        loss_is_part=values.loss_is_part,
        broken_gradient=values.broken_gradient,
        learning_rate=values.learning_rate,
        rate=values.rate,
        eta_seconds=values.eta_seconds,
        phase=Phase.TRAINING,
        finished=epoch is None and total is not None and step >= total,
        evidence=line.message,
    )


FAMILY = Family(
    name="mmengine",
    titles=(
        "mmcv",
        "detectron2",
        "torchvision",
        "torchvision-reference",
        "lavis",
        "paddledetection",
        "timm",
        "fairseq",
    ),
    signs=("- mmengine -", "d2.utils.events", "ppdet.engine", "fairseq", "- mmseg -", "- mmdet -"),
    read_line=read_line,
)
