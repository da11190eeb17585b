"""Pools of memory that ran out, were filled above what is safe, or leak."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stationmaster.analysis.facts.leaks import Leak, leak_in
from stationmaster.analysis.facts.log_facts import LoggedError, out_of_memory_of
from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.pools import DISCRETE, GPU, SYSTEM, Level, Pool
from stationmaster.analysis.report import Severity
from stationmaster.parsers.base import ErrorKind, Phase

if TYPE_CHECKING:
    from stationmaster.analysis.facts.run_facts import RunFacts

_SWAP_GB = 1.0
_TRACEBACK_WORDS = (
    (re.compile(r"\b(?:self\.sample\(|generate_images|sample_images|in sample\b)"), RunPhase.SAMPLING),
    (re.compile(r"\b(?:self\.save\(|save_weights|save_model|in save\b)"), RunPhase.SAVING),
)
_LOG_PHASES = {Phase.SAMPLING: RunPhase.SAMPLING, Phase.SAVING: RunPhase.SAVING, Phase.TRAINING: RunPhase.TRAINING}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A pool that ran out (`out`), or was filled above what is safe."""

    pool: Pool
    severity: Severity
    out: bool
    ended_run: bool
    """It ran out, and that ended the run."""
    phase: RunPhase | None
    """In which it ran out, or was fullest."""
    need_gb: float
    by_kernel: bool
    """The kernel killed for it: the need is more than the pool has, nothing says how much more."""
    base_gb: float
    base_known: bool
    leak: Leak | None


def troubles_of(facts: RunFacts) -> tuple[Trouble, ...]:
    """Return the pools that ran out, are above what is safe, or leak."""
    found = []
    pools = facts.pools
    if facts.had_oom and not any(_ran_out(facts, pool) for pool in pools):
        pools = (*pools, _unmeasured_pool(facts))
    for pool in pools:
        out = _ran_out(facts, pool)
        leak = leak_in(facts, pool)
        swapped = not pool.is_gpu and facts.swap_growth_gb >= _SWAP_GB
        if out or pool.share > facts.thresholds.critical_advice or swapped:
            severity = Severity.CRITICAL
        elif leak is not None or pool.share >= facts.thresholds.warning:
            severity = Severity.WARNING
        else:
            continue
        base = pool.base(facts.phases) if pool.is_measured else None
        found.append(
            Trouble(
                pool=pool,
                severity=severity,
                out=out,
                ended_run=out and _ended_run(facts),
                phase=_phase(facts, pool, out=out),
                need_gb=_need(facts, pool, out=out),
                by_kernel=not pool.is_gpu and facts.killed_by_kernel,
                base_gb=base or 0.0,
                base_known=base is not None,
                leak=leak,
            )
        )
    return tuple(found)


def _unmeasured_pool(facts: RunFacts) -> Pool:
    """Return the pool that ran out although no sample shows it: full, of the size that the log names."""
    figures = [out_of_memory_of(error.message) for error in facts.log.errors if error.kind is ErrorKind.OOM]
    size = next((figure.capacity_gb for figure in figures if figure.capacity_gb), 1.0)
    name = GPU if facts.gpu_refused_memory else SYSTEM
    return Pool(name=name, size_gb=size, levels=(Level(at=0.0, used_gb=size),), is_measured=False)


def _ran_out(facts: RunFacts, pool: Pool) -> bool:
    if pool.is_gpu:
        return facts.gpu_refused_memory
    if facts.ending.killed_for_memory or facts.killed_by_kernel or facts.log.host_memory_refused:
        return True
    return facts.platform != DISCRETE and facts.gpu_refused_memory


def _ended_run(facts: RunFacts) -> bool:
    cause = facts.log.cause
    by_memory = cause is None or cause.kind in (ErrorKind.OOM, ErrorKind.KILLED) or facts.log.host_memory_refused
    return facts.ending.failed and (by_memory or facts.ending.killed_for_memory)


def _phase(facts: RunFacts, pool: Pool, *, out: bool) -> RunPhase | None:
    """Return the phase in which the pool ran out, else the one of its peak."""
    if not out:
        return facts.phases.at(pool.peak.at)
    reported = [event for event in facts.oom_events if not event.is_of_kernel]
    at = [phase for event in reported if (phase := facts.phases.at(event.at)) is not None]
    if at:
        # Running out while training says more than doing so elsewhere too.
        return RunPhase.TRAINING if RunPhase.TRAINING in at else at[-1]
    logged = [error for error in facts.log.errors if error.kind is ErrorKind.OOM]
    if logged and (phase := _logged_phase(facts, logged[-1])) is not None:
        return phase
    if (logged or facts.oom_events) and not facts.steps_completed and facts.phases.first_step_at is None:
        return RunPhase.LOADING
    return facts.phases.at(pool.peak.at)


def _logged_phase(facts: RunFacts, error: LoggedError) -> RunPhase | None:
    """Return the phase in which the log shows the overflow: by its traceback, the run's last phase, the last lines."""
    traceback = error.traceback or ""
    for words, phase in _TRACEBACK_WORDS:
        if words.search(traceback):
            return phase
    last = facts.phases.at(facts.phases.ended_at)
    if error.fatal and last in (RunPhase.SAMPLING, RunPhase.SAVING):
        return last
    return _LOG_PHASES.get(error.phase) if error.phase is not None else None


def _need(facts: RunFacts, pool: Pool, *, out: bool) -> float:
    """Return what the run would have needed: for one that ran out, what was in use and what could not be had."""
    if not out:
        return pool.peak.used_gb
    if pool.is_gpu or facts.platform != DISCRETE:
        figures = [out_of_memory_of(error.message) for error in facts.log.errors if error.kind is ErrorKind.OOM]
        for figure in reversed(figures):
            if figure.wanted_gb is not None:
                used = figure.used_gb if figure.used_gb is not None else pool.peak.used_gb
                return max(used + figure.wanted_gb, pool.peak.used_gb)
    return max(pool.peak.used_gb, pool.size_gb)
