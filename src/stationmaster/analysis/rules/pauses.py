"""Time that went into samples and saves, and saves that are too rare for how often machines fail."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, cost_of, duration, find, number_of, percent

_MOST_SHARE = 0.15
_AIM = 0.05
_LEAST_EXPERIENCE_HOURS = 20.0


def pause_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield pauses that took 15 % of the run or more, and a better interval between saves."""
    sampling = _too_much(facts, RunPhase.SAMPLING, Lever.SAMPLE_EVERY, "sampling_time", "Sample pictures", "Sample")
    saving = _too_much(facts, RunPhase.SAVING, Lever.SAVE_EVERY, "saving_time", "Saves", "Save")
    cadence = None if saving is not None else _cadence(facts)
    yield from (finding for finding in (sampling, saving, cadence) if finding is not None)


def _too_much(facts: RunFacts, phase: RunPhase, lever: Lever, rule: str, what: str, verb: str) -> Finding | None:
    seconds, whole = facts.phases.seconds_in(phase), facts.duration_seconds
    if not whole or seconds / whole < _MOST_SHARE:
        return None
    share = seconds / whole
    every = number_of(facts, lever)
    pauses = [pause for pause in facts.phases.pauses if pause.phase is phase]
    each = median(pause.end - pause.start for pause in pauses)
    times = max(2, math.ceil(share * (1 - _AIM) / (_AIM * (1 - share)))) if share < 1 else 2
    times = min(times, 10)
    if every is None:
        return None
    fewer = int(every * times)
    left = seconds / times
    return find(
        facts,
        rule=rule,
        severity=Severity.WARNING,
        lever=lever,
        value=fewer,
        title=f"{what} took {percent(share)} of the run: {duration(seconds)}",
        action=f"{verb} every {fewer} steps instead of every {every:.0f}.",
        impact=f"Saves about {duration(seconds - left)}{cost_of(facts, seconds - left)}.",
        group=Group.TIME,
        evidence=(
            Evidence(what=f"share of the run in {phase.value}", value=round(share, 3), threshold=_MOST_SHARE),
            Evidence(what="times", value=len(pauses)),
            Evidence(what="usual length", value=round(each, 1), unit="s"),
        ),
        basis="measured: the time between their start and their end",
        confidence=Confidence.HIGH,
        seconds_lost=seconds,
    )


def _cadence(facts: RunFacts) -> Finding | None:
    """Compare the interval with the one that loses the least: √(2 × time of a save × time between failures)."""
    experience = facts.run.experience
    every, step = number_of(facts, Lever.SAVE_EVERY), facts.median_step_seconds
    saves = [pause.end - pause.start for pause in facts.phases.pauses if pause.phase is RunPhase.SAVING]
    if not experience.failures_per_hour or experience.failure_hours < _LEAST_EXPERIENCE_HOURS:
        return None
    if not every or not step or not saves:
        return None
    best_seconds = math.sqrt(2 * max(median(saves), 1.0) * 3600 / experience.failures_per_hour)
    best = _round_steps(best_seconds / step)
    if 0.5 <= every / best <= 2:
        return None
    rarer = best > every
    return find(
        facts,
        rule="save_interval",
        severity=Severity.INFO,
        lever=Lever.SAVE_EVERY,
        value=best,
        title=f"Saves are too {'frequent' if rarer else 'rare'} for how often machines fail",
        action=f"Save every {best} steps instead of every {every:.0f}.",
        impact="Less time for saves." if rarer else "A lost machine costs fewer steps.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="failures per hour of training", value=round(experience.failures_per_hour, 4)),
            Evidence(
                what="hours that this rests on",
                value=round(experience.failure_hours, 1),
                threshold=_LEAST_EXPERIENCE_HOURS,
            ),
            Evidence(what="time of a save", value=round(median(saves), 1), unit="s"),
        ),
        basis="the interval that loses the least: √(2 × time of a save × time between failures)",
        confidence=Confidence.MEDIUM,
    )


def _round_steps(steps: float) -> int:
    if steps < 10:
        return max(1, round(steps))
    size = 5 * int(10 ** (math.floor(math.log10(steps)) - 1))
    return max(size, round(steps / size) * size)
