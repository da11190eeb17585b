"""The step and the epoch among the pairs of a line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stationmaster.parsers.base import Scope
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import Pair
from stationmaster.parsers.values import is_validation
from stationmaster.parsers.wording import any_of

_STEP = any_of(
    r"(?:^|[ _/.-])(?:(?:global|current)[ _]?(?:steps?|iter)|steps?|iter(?:ation)?s?|num_updates|updates?)$",
    r"(?:^|[ _/.-])(?:batch(?: idx)?|it)$",
)
_EPOCH = any_of(r"(?:^|[ _/.])epochs?(?: idx| num(?:ber)?| id)?$")
# "warmup steps = 100", "batch size: 4", "every 500 steps": numbers of a plan, not of progress.
_PLAN = any_of(
    r"\b(?:accumulation|accum|warm-?up|total|max|num|per|logging|log|save|saving|eval|evaluation|sampl\w+|inference"
    r"|every|resum\w+|skip\w*|override|size|decay|denois\w+|starting|start|from|ddim|until|in|optim\w*|than|least)\b",
)
_TOTAL_NAMES = ("total_steps", "max_steps", "total_iters", "max_iters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Where a line says the training is."""

    step: int | None
    total: int | None
    epoch: float | None
    total_epochs: int | None
    is_global: bool

    def scope(self, memory: Memory) -> Scope:
        """A counter with a total beside an epoch starts again with every epoch, unless it is called global."""
        if self.total is None or self.is_global:
            return Scope.RUN
        return Scope.EPOCH if self.epoch is not None or memory.has_epoch_lines else Scope.RUN


def find_counter(pairs: Sequence[Pair]) -> Counter:
    """The counters of a line; a global step before a plain one, any step before a batch."""
    steps = [pair for pair in pairs if _is_step(pair)]
    best = min(steps, key=_rank, default=None)
    epoch = next((pair for pair in sorted(pairs, key=lambda pair: pair.name != "epoch") if _is_epoch(pair)), None)
    return Counter(
        step=int(best.value) if best else None,
        total=_total(best, pairs) if best else None,
        epoch=epoch.value if epoch else None,
        total_epochs=epoch.of if epoch else None,
        is_global=best is not None and ("global" in best.name or "current" in best.name),
    )


def _is_step(pair: Pair) -> bool:
    name = pair.name.removesuffix("/max_steps")
    if not pair.whole or pair.unit or not _STEP.search(name):
        return False
    return not _PLAN.search(name.replace("_", " ")) and not is_validation(name)


def _rank(pair: Pair) -> int:
    if "global" in pair.name:
        return 0
    return 2 if pair.name.endswith(("batch", "batch idx", " it")) and pair.of is None else 1


def _total(best: Pair, pairs: Sequence[Pair]) -> int | None:
    if best.of is not None:
        return best.of
    return next((int(pair.value) for pair in pairs if pair.whole and pair.name.endswith(_TOTAL_NAMES)), None)


def _is_epoch(pair: Pair) -> bool:
    if pair.time or not math.isfinite(pair.value) or not _EPOCH.search(pair.name):
        return False
    return not _PLAN.search(pair.name.replace("_", " "))
