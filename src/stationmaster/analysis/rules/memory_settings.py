"""Settings that take memory: workers, weights, batch, activations, copies, pictures; and the machine itself."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.analysis.configs.ai_toolkit import resolutions
from stationmaster.analysis.configs.base import truth
from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.pools import Pool
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.facts.troubles import Trouble
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence
from stationmaster.analysis.rules.base import Finding, find, gb, number_of, setting_of, value_of
from stationmaster.analysis.rules.memory_terms import freed, group_of, pool_evidence, prediction, trains_in, use_of
from stationmaster.analysis.rules.room import (
    fitting_batch,
    larger_card,
    larger_memory,
    needed_for_batch,
    smaller_resolution,
)

_WORKERS_SHARE = 0.20
_WEIGHTS_SHARE = 0.60


def workers(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if trouble.pool.is_gpu:
        return
    peak = _peak_with_workers(trouble.pool)
    held = peak[0]
    count = peak[1]
    asked = number_of(facts, Lever.WORKERS)
    if held < _WORKERS_SHARE * trouble.pool.size_gb or not (count or asked) or asked == 0:
        return
    number = int(count or asked or 1)
    yield find(
        facts,
        rule="memory_workers",
        severity=trouble.severity,
        lever=Lever.WORKERS,
        value=0,
        title=f"{number} data loading workers held {gb(held)} of {gb(trouble.pool.size_gb)}",
        action="Load data in the training process itself: set the number of workers to 0.",
        impact=f"Frees about {gb(held)}, {gb(held / number)} for each worker.",
        group=group_of(trouble),
        evidence=(
            *pool_evidence(trouble),
            Evidence(
                what="held by workers at the peak",
                value=round(held, 2),
                unit="GB",
                threshold=round(_WORKERS_SHARE * trouble.pool.size_gb, 2),
            ),
            Evidence(what="workers", value=number),
        ),
        basis="measured: the memory of the worker processes in the fullest sample",
        confidence=Confidence.HIGH,
    )


def workers_beside_a_card(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    """Where the training is on the card, workers are the only handle on the system's memory."""
    if not trains_in(facts, trouble):
        yield from workers(facts, trouble)


def quantise(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if not trains_in(facts, trouble):
        return
    heavy = trouble.base_known and trouble.base_gb >= _WEIGHTS_SHARE * trouble.pool.size_gb
    loading = trouble.out and trouble.phase is RunPhase.LOADING
    setting = setting_of(facts, Lever.QUANTIZE)
    if not (heavy or loading) or setting is None or facts.config is None or truth(setting.value):
        return
    weights = trouble.base_gb if trouble.base_known else trouble.need_gb
    yield find(
        facts,
        rule="memory_quantise",
        severity=trouble.severity,
        lever=Lever.QUANTIZE,
        value=True,
        title=f"The model's weights fill the memory before the first step: {use_of(trouble)}",
        action="Load the base model in 8 bit: switch quantisation on.",
        impact="Halves the weights' memory" + (f": about {gb(weights / 2)} less." if trouble.base_known else "."),
        group=group_of(trouble),
        evidence=(
            *pool_evidence(trouble),
            Evidence(
                what="in use before the first step",
                value=round(weights, 2),
                unit="GB",
                threshold=round(_WEIGHTS_SHARE * trouble.pool.size_gb, 2),
            ),
        ),
        basis="one byte for each frozen weight instead of two",
        confidence=Confidence.HIGH if loading else Confidence.MEDIUM,
    )


def batch_size(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    batch = int(number_of(facts, Lever.BATCH_SIZE) or facts.batch_size or 1)
    if not trains_in(facts, trouble) or batch <= 1 or trouble.phase is RunPhase.LOADING:
        return
    fitting = fitting_batch(size_gb=trouble.pool.size_gb, base_gb=trouble.base_gb, need_gb=trouble.need_gb, batch=batch)
    best = min(fitting, max(1, batch // 2) if trouble.by_kernel else batch - 1)
    predicted = needed_for_batch(best, base_gb=trouble.base_gb, need_gb=trouble.need_gb, batch=batch)
    yield find(
        facts,
        rule="memory_batch",
        severity=trouble.severity,
        lever=Lever.BATCH_SIZE,
        value=best,
        title=f"A batch of {batch} does not leave enough memory: {use_of(trouble)}",
        action=f"Lower the batch size from {batch} to {best}.",
        impact=f"{prediction(trouble, predicted)} Gradient accumulation keeps the same effect.",
        group=group_of(trouble),
        evidence=(
            *pool_evidence(trouble),
            Evidence(what="before the first step", value=round(trouble.base_gb, 2), unit="GB"),
            Evidence(what=f"needed at batch {batch}", value=round(trouble.need_gb, 2), unit="GB"),
        ),
        basis="memory above the level before the first step grows with the batch",
        confidence=Confidence.HIGH if trouble.base_known else Confidence.MEDIUM,
    )


def checkpointing(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    value = value_of(facts, Lever.GRADIENT_CHECKPOINTING)
    if not trains_in(facts, trouble) or value is None or truth(value) or trouble.phase is RunPhase.LOADING:
        return
    yield find(
        facts,
        rule="memory_checkpointing",
        severity=trouble.severity,
        lever=Lever.GRADIENT_CHECKPOINTING,
        value=True,
        title=f"Gradient checkpointing is off and memory is short: {use_of(trouble)}",
        action="Switch gradient checkpointing on.",
        impact=f"{freed(trouble)}; steps take about a third longer.",
        group=group_of(trouble),
        evidence=pool_evidence(trouble),
        basis="activations are computed again instead of kept",
        confidence=Confidence.HIGH,
    )


def ema(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if trains_in(facts, trouble) and truth(value_of(facts, Lever.EMA)) and trouble.phase is not RunPhase.LOADING:
        yield ema_off(facts, trouble, why="It is a second copy of all trained weights.")


def ema_off(facts: RunFacts, trouble: Trouble, *, why: str) -> Finding | None:
    adapter = facts.config is not None and facts.config.trains_adapter
    return find(
        facts,
        rule="memory_ema",
        severity=trouble.severity,
        lever=Lever.EMA,
        value=False,
        title=f"The moving average of the weights takes memory that is short: {use_of(trouble)}",
        action=f"Switch the moving average (EMA) off. {why}",
        impact="Frees about 1 GB for a LoRA." if adapter else "Frees as much memory as the trained weights take.",
        group=group_of(trouble),
        evidence=pool_evidence(trouble),
        basis="one more copy of the trained weights",
        confidence=Confidence.MEDIUM,
    )


def resolution(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    value = value_of(facts, Lever.RESOLUTION)
    if not trains_in(facts, trouble) or value is None or trouble.phase is RunPhase.LOADING:
        return
    lower = smaller_resolution(value, size_gb=trouble.pool.size_gb, base_gb=trouble.base_gb, need_gb=trouble.need_gb)
    if lower is None:
        return
    before, after = max(resolutions(value)), max(resolutions(lower))
    predicted = trouble.base_gb + (trouble.need_gb - trouble.base_gb) * (after / before) ** 2
    yield find(
        facts,
        rule="memory_resolution",
        severity=trouble.severity,
        lever=Lever.RESOLUTION,
        value=lower,
        title=f"Pictures of {before:.0f} pixels leave too little memory: {use_of(trouble)}",
        action=f"Train at {after:.0f} pixels at most.",
        impact=f"{prediction(trouble, predicted)} Memory grows with the area.",
        group=group_of(trouble),
        evidence=pool_evidence(trouble),
        basis="memory above the level before the first step grows with the square of the side",
        confidence=Confidence.MEDIUM,
    )


def larger_machine(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    gpu = trouble.pool.is_gpu
    size = trouble.pool.size_gb
    if not trouble.pool.is_measured:
        wanted = None
    else:
        wanted = larger_card(trouble.need_gb, size_gb=size) if gpu else larger_memory(trouble.need_gb, size_gb=size)
    what = "GPU memory" if gpu else "memory"
    yield find(
        facts,
        rule="memory_machine",
        severity=trouble.severity,
        lever=Lever.MACHINE_GPU_MEMORY if gpu else Lever.MACHINE_MEMORY,
        value=wanted,
        title=f"The machine has too little {what}: {use_of(trouble)}",
        action=f"Take a machine with {wanted} GB of {what}." if wanted else f"Take a machine with more {what}.",
        impact=f"The run needs {gb(trouble.need_gb)} or more; no setting is left that would free enough."
        if trouble.pool.is_measured
        else "No setting is left that would free enough.",
        group=group_of(trouble),
        evidence=pool_evidence(trouble),
        basis="measured: the highest use of this run",
        confidence=Confidence.MEDIUM,
    )


def _peak_with_workers(pool: Pool) -> tuple[float, int | None]:
    """Return what workers held, and how many they were, in the fullest sample that measured them."""
    measured = [level for level in pool.levels if level.worker_gb is not None]
    if not measured:
        return 0.0, None
    peak = max(measured, key=lambda level: level.used_gb)
    return peak.worker_gb or 0.0, peak.workers
