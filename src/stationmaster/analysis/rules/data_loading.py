"""A GPU that waits for data, and workers that do nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import median

from stationmaster.analysis.configs.base import truth
from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.run_facts import RunFacts, Utilisation
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import (
    Finding,
    Group,
    cost_of,
    duration,
    find,
    gb,
    number_of,
    percent,
    setting_of,
    value_of,
)

_STARVED_SHARE = 0.35
_SOME_IDLE_SHARE = 0.15
_LEAST_SAMPLES = 30
_BUSY_PERCENT = 85.0
_IDLE_CPU_PERCENT = 5.0
_FULL_CPU_PERCENT = 80.0
_MOST_WORKERS = 16
_SHORT_ROW_FILL = 0.6


def data_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield what keeps the GPU waiting, with its cost."""
    use = facts.utilisation
    if use is not None and use.samples >= _LEAST_SAMPLES and not facts.memory_is_short:
        if use.idle_share >= _STARVED_SHARE:
            yield from (finding for finding in _starved(facts, use) if finding is not None)
        elif use.idle_share >= _SOME_IDLE_SHARE:
            finding = _sometimes_idle(facts, use)
            if finding is not None:
                yield finding
    idle = _idle_workers(facts)
    if idle is not None:
        yield idle


def _starved(facts: RunFacts, use: Utilisation) -> Iterator[Finding | None]:
    """The first handle that is open is the advice; the others are worth trying too."""
    handles = [handle for find_handle in _handles_of(facts) if (handle := find_handle(facts)) is not None]
    lost = use.idle_share * facts.training_seconds
    if not handles:
        handles = [
            (Lever.MACHINE_DISK, None, "Take a machine with a faster disk and more processor cores.", "the data")
        ]
    for place, (lever, value, action, why) in enumerate(handles):
        yield find(
            facts,
            rule="gpu_starved" if place == 0 else f"gpu_starved_{lever.value}",
            severity=Severity.WARNING if place == 0 or _is_own_recipe(facts) else Severity.INFO,
            lever=lever,
            value=value,
            title=f"The GPU waited for data in {percent(use.idle_share)} of the training"
            if place == 0
            else f"Also possible: {action}",
            action=action,
            impact=f"Up to {duration(lost)} less{cost_of(facts, lost)}: the GPU waits for {why}.",
            group=Group.TIME,
            evidence=(
                Evidence(
                    what="samples with the GPU idle", value=use.idle, threshold=round(_STARVED_SHARE * use.samples)
                ),
                Evidence(what="samples while training", value=use.samples, threshold=_LEAST_SAMPLES),
                Evidence(what="mean load of the GPU", value=round(use.mean_percent, 1), unit="%"),
                Evidence(what="time lost", value=round(lost), unit="s"),
                Evidence(what="cost of that time", value=_cost(facts, lost), unit="USD"),
            ),
            basis="measured: samples of the GPU's load between the first and the last step",
            confidence=Confidence.HIGH if place == 0 else Confidence.MEDIUM,
            seconds_lost=lost - place,
        )


Handle = tuple[Lever, object, str, str]


def _handles_of(facts: RunFacts) -> tuple[Callable[[RunFacts], Handle | None], ...]:
    """What may help, the likeliest first; where the load of the processes shows what is slow, only that."""
    workers, main = _load_of(facts, "worker"), _load_of(facts, "main")
    if workers is not None and workers >= _FULL_CPU_PERCENT:
        return (_caching, _workers)  # larger steps would wait for them as long
    if workers is not None and workers <= _IDLE_CPU_PERCENT and main is not None and main >= _FULL_CPU_PERCENT:
        return (_caching, _packing, _batch)  # batches are ready, and the training is busy with starting steps
    return (_caching, _workers, _packing, _batch)


def _load_of(facts: RunFacts, role: str) -> float | None:
    """Return the usual load of a process while steps were trained, in percent of a core; None if hardly sampled."""
    loads = [cpu for cpu, _ in _process_samples(facts, role)]
    return median(loads) if len(loads) >= _LEAST_SAMPLES else None


def _process_samples(facts: RunFacts, role: str) -> list[tuple[float, float]]:
    """Return load and memory of each sample of such a process while steps were trained."""
    table = facts.tables.get("ProcessSample")
    if table is None:
        return []
    return [
        (cpu, memory or 0.0)
        for at, found, cpu, memory in table.tuples("timestamp", "role", "cpu_percent", "memory_gb")
        if found == role and cpu is not None and facts.phases.at(at) is RunPhase.TRAINING
    ]


def _caching(facts: RunFacts) -> Handle | None:
    setting = setting_of(facts, Lever.CACHE_LATENTS)
    if setting is None or facts.config is None or truth(setting.value):
        return None
    return Lever.CACHE_LATENTS, True, "Cache the pictures' latents once, before the training.", "pictures to be encoded"


def _packing(facts: RunFacts) -> Handle | None:
    rows = facts.text_rows
    if rows is None or rows.fill > _SHORT_ROW_FILL or value_of(facts, Lever.PACKING) is not False:
        return None
    why = f"rows one by one, of {rows.tokens:.0f} tokens where {rows.context} fit"
    return Lever.PACKING, True, "Pack several short rows into one row of a batch.", why


def _workers(facts: RunFacts) -> Handle | None:
    workers = number_of(facts, Lever.WORKERS)
    if workers is None:
        return None
    cores = facts.info_number("cpu_cores")
    most = int(cores) if cores else _MOST_WORKERS
    wanted = min(max(4, int(workers) * 2, _workers_for_text(facts, int(workers))), most, _MOST_WORKERS)
    if wanted <= workers:
        return None
    return (
        Lever.WORKERS,
        wanted,
        f"Load data with {wanted} workers instead of {workers:.0f}.",
        "data to be read and prepared",
    )


def _workers_for_text(facts: RunFacts, workers: int) -> int:
    """As many as would prepare rows at the speed of the GPU. Only for text: those of pictures need much memory each."""
    if facts.utilisation is None or value_of(facts, Lever.PACKING) is None:
        return 0
    return math.ceil(max(1, workers) * 100 / max(1.0, facts.utilisation.mean_percent))


def _batch(facts: RunFacts) -> Handle | None:
    """A larger batch keeps the card busier where the model is small; only for rows of text, whose memory is even."""
    batch = number_of(facts, Lever.BATCH_SIZE)
    pool = facts.training_pool
    if value_of(facts, Lever.PACKING) is None or not batch or pool is None or pool.share >= 0.5:
        return None
    base = pool.base(facts.phases) or 0.0
    fill = facts.text_rows.fill if facts.text_rows else 1.0  # rows that are packed will be full
    per_row = max(pool.peak.used_gb - base, 0.01) / batch / fill
    wanted = int(min((0.7 * pool.size_gb - base) / per_row, batch * 8))
    if wanted <= batch:
        return None
    return (
        Lever.BATCH_SIZE,
        wanted,
        f"Train batches of {wanted} rows instead of {batch:.0f}.",
        "small steps to be started",
    )


def _sometimes_idle(facts: RunFacts, use: Utilisation) -> Finding | None:
    handle = _caching(facts) or _workers(facts)
    if handle is None:
        return None
    lever, value, action, why = handle
    lost = use.idle_share * facts.training_seconds
    return find(
        facts,
        rule="gpu_idle",
        severity=Severity.INFO,
        lever=lever,
        value=value,
        title=f"The GPU was idle in {percent(use.idle_share)} of the training",
        action=action,
        impact=f"Up to {duration(lost)} less{cost_of(facts, lost)}: the GPU waits for {why}.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="samples with the GPU idle", value=use.idle, threshold=round(_SOME_IDLE_SHARE * use.samples)),
            Evidence(what="samples while training", value=use.samples, threshold=_LEAST_SAMPLES),
        ),
        basis="measured: samples of the GPU's load",
    )


def _idle_workers(facts: RunFacts) -> Finding | None:
    """Workers that hardly use a core beside a busy GPU: fewer of them would do, and hold less memory."""
    use, workers = facts.utilisation, number_of(facts, Lever.WORKERS)
    if use is None or use.samples < _LEAST_SAMPLES or not workers or workers <= 2:
        return None
    rows = _process_samples(facts, "worker")
    if len(rows) < _LEAST_SAMPLES or use.mean_percent < _BUSY_PERCENT:
        return None
    busy = median(cpu for cpu, _ in rows)
    if busy > _IDLE_CPU_PERCENT:
        return None
    each = median(memory for _, memory in rows)
    return find(
        facts,
        rule="workers_idle",
        severity=Severity.INFO,
        lever=Lever.WORKERS,
        value=2,
        title=f"{workers:.0f} workers had almost nothing to do",
        action="Load data with 2 workers.",
        impact=f"Frees about {gb((workers - 2) * each)} of memory; the GPU was {use.mean_percent:.0f} % busy.",
        group=Group.OTHER,
        evidence=(
            Evidence(
                what="usual load of a worker", value=round(busy, 1), unit="% of a core", threshold=_IDLE_CPU_PERCENT
            ),
            Evidence(what="mean load of the GPU", value=round(use.mean_percent, 1), unit="%", threshold=_BUSY_PERCENT),
        ),
        basis="measured: samples of the worker processes",
    )


def _cost(facts: RunFacts, seconds: float) -> float | None:
    return round(seconds / 3600 * facts.price_per_hour, 2) if facts.price_per_hour else None


def _is_own_recipe(facts: RunFacts) -> bool:
    """In a recipe of text every handle counts: none of them alone keeps the card busy."""
    return facts.config is not None and facts.config.framework == "recipe"
