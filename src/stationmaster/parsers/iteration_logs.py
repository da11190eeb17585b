"""mmengine, detectron2, torchvision, LAVIS, PaddleDetection, timm, fairseq: `Epoch: [0] [10/60] eta: … loss: …`."""

from __future__ import annotations

import re

from stationmaster.parsers.base import Family, Phase, Scope, Seen
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.values import values_of

_MODE = re.compile(r"(?:Epoch|Iter)\((?P<mode>\w+)\)\s*(?:\[\s*(?P<epoch>\d+)\])?\s*\[\s*(?P<n>\d+)/\s*(?P<m>\d+)\]")
_EPOCH_THEN_STEP = re.compile(
    r"(?:\bepoch\b:?|\btrain:) *+"
    r"(?:\[ *+(?P<boxed>\d++)(?:/ *+(?P<boxed_of>\d++))? *\]|(?P<bare>\d++)(?:/(?P<bare_of>\d++))?) *+"
    r"(?::(?= +\d)|,)? *+(?:\[ *+(?P<n>\d++)/ *+(?P<m>\d++)|(?<=[: ])(?P<open_n>\d++) +/ +(?P<open_m>\d++))",
    re.IGNORECASE,
)
_EVALUATION_BEFORE = re.compile(r"\b(?:val\w*|eval\w*|test\w*)\b", re.IGNORECASE)


def read_line(line: Line, memory: Memory) -> Seen | None:
    if "epoch" not in line.lower and "iter(" not in line.lower and "train:" not in line.lower:
        return None
    if found := _MODE.search(line.message):
        if found["mode"] != "train":
            return Seen(phase=Phase.EVALUATING)
        epoch = float(found["epoch"]) if found["epoch"] else None
        return _progress(line, found["n"], found["m"], epoch, None, found.end())
    found = _EPOCH_THEN_STEP.search(line.message)
    if found is None:
        return None
    if _EVALUATION_BEFORE.search(line.message[: found.start()]):
        return Seen(phase=Phase.EVALUATING)
    epochs = found["boxed_of"] or found["bare_of"]
    return _progress(
        line,
        found["n"] or found["open_n"],
        found["m"] or found["open_m"],
        float(found["boxed"] or found["bare"]),
        int(epochs) if epochs else None,
        found.end(),
    )


def _progress(line: Line, n: str, m: str, epoch: float | None, total_epochs: int | None, end: int) -> Seen:
    values = values_of(find_pairs(line.message[end:]), bare_time=True)
    step, total = int(n), int(m)
    return Seen(
        step=step,
        total=total,
        scope=Scope.RUN if epoch is None else Scope.EPOCH,
        epoch=epoch,
        total_epochs=total_epochs,
        loss=values.loss,
        broken_gradient=values.broken_gradient,
        learning_rate=values.learning_rate,
        rate=values.rate,
        eta_seconds=values.eta_seconds,
        phase=Phase.TRAINING,
        finished=epoch is None and step >= total,
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
