"""Memory that is short only while pictures are drawn or a model is saved."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.analysis.configs.base import truth
from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.facts.troubles import Trouble
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence
from stationmaster.analysis.rules.base import Finding, find, gb, number_of, value_of
from stationmaster.analysis.rules.memory_settings import ema_off, larger_machine
from stationmaster.analysis.rules.memory_terms import group_of, pool_evidence, use_of
from stationmaster.analysis.rules.room import (
    MOST_SHARE,
    smaller_side,
)

_CALM_TRAINING_SHARE = 0.85


def sampling(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if not _only_in(facts, trouble, RunPhase.SAMPLING):
        return
    training = max((level.used_gb for level in trouble.pool.in_training(facts.phases)), default=trouble.base_gb)
    factor = (trouble.pool.size_gb * MOST_SHARE - training) / max(trouble.need_gb - training, 1e-6)
    factor = min(factor, 0.5 if trouble.out else 0.9)
    made = False
    for lever, word in ((Lever.SAMPLE_WIDTH, "width"), (Lever.SAMPLE_HEIGHT, "height")):
        side = number_of(facts, lever)
        smaller = smaller_side(side, factor=factor) if side else None
        if smaller is None:
            continue
        made = True
        yield find(
            facts,
            rule="memory_sampling",
            severity=trouble.severity,
            lever=lever,
            value=smaller,
            title=f"Sample pictures need more memory than the training: {use_of(trouble)}",
            action=f"Draw smaller samples: {word} {smaller} instead of {side:.0f}.",
            impact=f"Sampling needs about {gb(training + (trouble.need_gb - training) * factor)}.",
            group=group_of(trouble),
            evidence=(
                *pool_evidence(trouble),
                Evidence(what="highest use while training", value=round(training, 2), unit="GB"),
            ),
            basis="memory above the training's level grows with the picture's area",
            confidence=Confidence.HIGH,
        )
    if not made:
        yield find(
            facts,
            rule="memory_sampling",
            severity=trouble.severity,
            lever=Lever.DISABLE_SAMPLING,
            value=None if facts.framework == "kohya" else True,  # there it is a file of prompts that is left out
            title=f"Sample pictures need more memory than the training: {use_of(trouble)}",
            action="Switch sampling off.",
            impact=f"The training alone used {gb(training)}.",
            group=group_of(trouble),
            evidence=pool_evidence(trouble),
            basis="measured: the highest use outside sampling",
            confidence=Confidence.HIGH,
        )


def saving(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if not _only_in(facts, trouble, RunPhase.SAVING):
        return
    if truth(value_of(facts, Lever.EMA)):
        yield ema_off(facts, trouble, why="While saving, the averaged weights are swapped in beside the live ones.")
    elif str(value_of(facts, Lever.SAVE_DTYPE)).casefold() in ("float32", "fp32", "float", "32"):
        yield find(
            facts,
            rule="memory_saving",
            severity=trouble.severity,
            lever=Lever.SAVE_DTYPE,
            value="bf16" if facts.framework == "kohya" else "float16",
            title=f"Saving fills the memory: {use_of(trouble)}",
            action="Save in 16 bit instead of 32.",
            impact="The copy that is written takes half the memory and half the disk.",
            group=group_of(trouble),
            evidence=pool_evidence(trouble),
            basis="two bytes for each weight instead of four",
            confidence=Confidence.MEDIUM,
        )
    else:
        yield from larger_machine(facts, trouble)


def _only_in(facts: RunFacts, trouble: Trouble, phase: RunPhase) -> bool:
    """Return whether the trouble was in one phase alone, and training stayed calm."""
    limit = trouble.pool.size_gb * facts.thresholds.critical_advice
    if trouble.phase is not phase or not (trouble.out or trouble.pool.peak.used_gb > limit):
        return False
    elsewhere = trouble.pool.highest(
        lambda time: facts.phases.at(time) is RunPhase.LOADING or facts.phases.is_settled_training(time)
    )
    training = max((level.used_gb for level in trouble.pool.in_training(facts.phases)), default=0.0)
    return (elsewhere or 0.0) <= limit and training <= trouble.pool.size_gb * _CALM_TRAINING_SHARE
