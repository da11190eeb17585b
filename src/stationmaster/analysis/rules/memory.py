"""Memory that ran out or nearly did: who took it, and the setting that gives it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.facts.troubles import Trouble
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Severity
from stationmaster.analysis.rules.base import Finding, Group
from stationmaster.analysis.rules.memory_growth import automatic_batch, leak
from stationmaster.analysis.rules.memory_pauses import sampling, saving
from stationmaster.analysis.rules.memory_settings import (
    batch_size,
    checkpointing,
    ema,
    larger_machine,
    quantise,
    resolution,
    workers,
    workers_beside_a_card,
)


def memory_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield, for each pool in trouble, what took its memory, then other settings that would help too."""
    for trouble in facts.troubles:
        rows = _TIGHT if trouble.severity is Severity.WARNING and trouble.leak is None else _CAUSES
        found: list[Finding] = []
        for row in rows:
            found = [finding for finding in row(facts, trouble) if finding is not None]
            if found:
                break
        yield from found
        if found and trouble.severity is Severity.CRITICAL:
            yield from _further(facts, trouble, {finding.recommendation.lever for finding in found})


Row = Callable[[RunFacts, Trouble], Iterator[Finding | None]]
#: In this order; the first that holds is the recommendation.
_CAUSES: tuple[Row, ...] = (
    workers,
    sampling,
    saving,
    automatic_batch,
    leak,
    quantise,
    batch_size,
    checkpointing,
    ema,
    resolution,
    larger_machine,
)
_TIGHT: tuple[Row, ...] = (workers_beside_a_card, checkpointing, resolution, batch_size, ema, larger_machine)
_HANDLES: tuple[Row, ...] = (quantise, checkpointing, batch_size, ema, resolution)


def _further(facts: RunFacts, trouble: Trouble, taken: set[Lever]) -> Iterator[Finding]:
    """Yield what else would free memory of the same pool, as information."""
    if trouble.phase not in (None, RunPhase.TRAINING):
        return
    for row in _HANDLES:
        for finding in row(facts, trouble):
            if finding is not None and finding.recommendation.lever not in taken:
                yield as_information(finding)


def as_information(finding: Finding) -> Finding:
    """Return a finding that is no cause, only possible too."""
    recommendation = replace(
        finding.recommendation, severity=Severity.INFO, title=f"Also possible: {finding.recommendation.action}"
    )
    return Finding(recommendation=recommendation, group=Group.OTHER)
