"""Memory that ran out or nearly did: who took it, and the setting that gives it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stationmaster.analysis.configs.ai_toolkit import resolutions
from stationmaster.analysis.configs.base import truth
from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.pools import DISCRETE, Pool
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.facts.troubles import Trouble
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, find, gb, number_of, percent, setting_of, value_of
from stationmaster.analysis.rules.room import (
    MOST_SHARE,
    fitting_batch,
    larger_card,
    larger_memory,
    needed_for_batch,
    smaller_resolution,
    smaller_side,
)

_WORKERS_SHARE = 0.20
_WEIGHTS_SHARE = 0.60
_CALM_TRAINING_SHARE = 0.85


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


# ---- the causes, in this order; the first that holds is the recommendation


def _workers(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
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
        group=_group(trouble),
        evidence=(
            *_pool_evidence(trouble),
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


def _workers_beside_a_card(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    """Where the training is on the card, workers are the only handle on the system's memory."""
    if not _trains_in(facts, trouble):
        yield from _workers(facts, trouble)


def _sampling(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
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
            title=f"Sample pictures need more memory than the training: {_use(trouble)}",
            action=f"Draw smaller samples: {word} {smaller} instead of {side:.0f}.",
            impact=f"Sampling needs about {gb(training + (trouble.need_gb - training) * factor)}.",
            group=_group(trouble),
            evidence=(
                *_pool_evidence(trouble),
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
            title=f"Sample pictures need more memory than the training: {_use(trouble)}",
            action="Switch sampling off.",
            impact=f"The training alone used {gb(training)}.",
            group=_group(trouble),
            evidence=_pool_evidence(trouble),
            basis="measured: the highest use outside sampling",
            confidence=Confidence.HIGH,
        )


def _saving(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if not _only_in(facts, trouble, RunPhase.SAVING):
        return
    if truth(value_of(facts, Lever.EMA)):
        yield _ema_off(facts, trouble, why="While saving, the averaged weights are swapped in beside the live ones.")
    elif str(value_of(facts, Lever.SAVE_DTYPE)).casefold() in ("float32", "fp32", "float", "32"):
        yield find(
            facts,
            rule="memory_saving",
            severity=trouble.severity,
            lever=Lever.SAVE_DTYPE,
            value="bf16" if facts.framework == "kohya" else "float16",
            title=f"Saving fills the memory: {_use(trouble)}",
            action="Save in 16 bit instead of 32.",
            impact="The copy that is written takes half the memory and half the disk.",
            group=_group(trouble),
            evidence=_pool_evidence(trouble),
            basis="two bytes for each weight instead of four",
            confidence=Confidence.MEDIUM,
        )
    else:
        yield from _larger_machine(facts, trouble)


def _automatic_batch(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    grown = [
        (event.at, old, new)
        for event in facts.events_of_kind("batch_size_adjustment")
        if (old := event.whole("old_batch_size")) and (new := event.whole("new_batch_size")) and new > old
    ]
    if not grown:
        return
    broke = [size for event in facts.oom_events if (size := event.whole("batch_size"))]
    if trouble.out and not broke:
        broke = [grown[-1][2]]
    limit = trouble.pool.size_gb * min(MOST_SHARE, facts.thresholds.critical_advice)
    highest = _highest_by_batch(facts, trouble.pool)
    over = min([*broke, *(size for size, used in highest.items() if used > limit)], default=None)
    if over is None or not any(new >= over > old or new == over for _, old, new in grown):
        return
    ran = [size for size, used in highest.items() if used <= limit and size < over]
    if ran:
        best, basis = max(ran), "measured: this batch size ran in this run"
    else:
        best = fitting_batch(size_gb=trouble.pool.size_gb, base_gb=trouble.base_gb, need_gb=trouble.need_gb, batch=over)
        best, basis = max(1, min(best, over - 1)), "predicted from the level before the first step"
    used = highest.get(best)
    yield find(
        facts,
        rule="memory_automatic_batch",
        severity=trouble.severity,
        lever=Lever.MAX_BATCH_SIZE,
        value=best,
        title=f"The batch size grew to {over}, which does not fit: {_use(trouble)}",
        action=f"Limit automatic batch sizes to {best}.",
        impact=f"A batch of {best} used {gb(used)}." if used else f"A batch of {best} is predicted to fit.",
        group=_group(trouble),
        evidence=(
            *_pool_evidence(trouble),
            *(
                Evidence(what=f"highest use at batch {size}", value=round(level, 2), unit="GB")
                for size, level in sorted(highest.items())
            ),
        ),
        basis=basis,
        confidence=Confidence.HIGH,
    )


def _leak(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    leak = trouble.leak
    if leak is None:
        return
    title = f"Memory grew all the time, by {gb(leak.grown_gb)} in {leak.hours:.1f} h: {_use(trouble)}"
    evidence = (
        *_pool_evidence(trouble),
        Evidence(what="growth while training", value=round(leak.grown_gb, 2), unit="GB", threshold="10 % of the pool"),
        Evidence(what="of that, at samplings", value=round(leak.at_samplings_gb, 2), unit="GB"),
    )
    every = number_of(facts, Lever.SAMPLE_EVERY)
    if leak.is_at_samplings and every:
        yield find(
            facts,
            rule="memory_leak",
            severity=trouble.severity,
            lever=Lever.SAMPLE_EVERY,
            value=int(every * 2),
            title=title,
            action=f"Sample half as often: every {int(every * 2)} steps. Each sampling leaves memory behind.",
            impact=f"Growth falls to about {gb(leak.grown_gb / 2)} over the same run.",
            group=_group(trouble),
            evidence=evidence,
            basis="measured: the level before and after each sampling",
            confidence=Confidence.HIGH,
        )
        return
    yield find(
        facts,
        rule="memory_leak",
        severity=trouble.severity,
        lever=Lever.TRAINER_VERSION,
        value=None,
        title=title,
        action="Use another version of the trainer: this one leaks memory at every step.",
        impact=f"A run without the leak stays at about {gb(leak.first_gb)}.",
        group=_group(trouble),
        evidence=evidence,
        basis="measured: the level rises in every quarter of the training",
        confidence=Confidence.MEDIUM,
    )
    save = number_of(facts, Lever.SAVE_EVERY)
    if save and save > 1:
        yield find(
            facts,
            rule="memory_leak_saves",
            severity=Severity.INFO,
            lever=Lever.SAVE_EVERY,
            value=max(1, int(save // 2)),
            title="Save more often while the leak is there",
            action=f"Save every {max(1, int(save // 2))} steps, and resume after a crash.",
            impact="A crash loses half as many steps.",
            group=Group.OTHER,
            evidence=evidence,
            basis="steps between saves",
        )


def _quantise(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if not _trains_in(facts, trouble):
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
        title=f"The model's weights fill the memory before the first step: {_use(trouble)}",
        action="Load the base model in 8 bit: switch quantisation on.",
        impact="Halves the weights' memory" + (f": about {gb(weights / 2)} less." if trouble.base_known else "."),
        group=_group(trouble),
        evidence=(
            *_pool_evidence(trouble),
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


def _batch(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    batch = int(number_of(facts, Lever.BATCH_SIZE) or facts.batch_size or 1)
    if not _trains_in(facts, trouble) or batch <= 1 or trouble.phase is RunPhase.LOADING:
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
        title=f"A batch of {batch} does not leave enough memory: {_use(trouble)}",
        action=f"Lower the batch size from {batch} to {best}.",
        impact=f"{_predicted(trouble, predicted)} Gradient accumulation keeps the same effect.",
        group=_group(trouble),
        evidence=(
            *_pool_evidence(trouble),
            Evidence(what="before the first step", value=round(trouble.base_gb, 2), unit="GB"),
            Evidence(what=f"needed at batch {batch}", value=round(trouble.need_gb, 2), unit="GB"),
        ),
        basis="memory above the level before the first step grows with the batch",
        confidence=Confidence.HIGH if trouble.base_known else Confidence.MEDIUM,
    )


def _checkpointing(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    value = value_of(facts, Lever.GRADIENT_CHECKPOINTING)
    if not _trains_in(facts, trouble) or value is None or truth(value) or trouble.phase is RunPhase.LOADING:
        return
    yield find(
        facts,
        rule="memory_checkpointing",
        severity=trouble.severity,
        lever=Lever.GRADIENT_CHECKPOINTING,
        value=True,
        title=f"Gradient checkpointing is off and memory is short: {_use(trouble)}",
        action="Switch gradient checkpointing on.",
        impact=f"{_freed(trouble)}; steps take about a third longer.",
        group=_group(trouble),
        evidence=_pool_evidence(trouble),
        basis="activations are computed again instead of kept",
        confidence=Confidence.HIGH,
    )


def _ema(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    if _trains_in(facts, trouble) and truth(value_of(facts, Lever.EMA)) and trouble.phase is not RunPhase.LOADING:
        yield _ema_off(facts, trouble, why="It is a second copy of all trained weights.")


def _ema_off(facts: RunFacts, trouble: Trouble, *, why: str) -> Finding | None:
    adapter = facts.config is not None and facts.config.trains_adapter
    return find(
        facts,
        rule="memory_ema",
        severity=trouble.severity,
        lever=Lever.EMA,
        value=False,
        title=f"The moving average of the weights takes memory that is short: {_use(trouble)}",
        action=f"Switch the moving average (EMA) off. {why}",
        impact="Frees about 1 GB for a LoRA." if adapter else "Frees as much memory as the trained weights take.",
        group=_group(trouble),
        evidence=_pool_evidence(trouble),
        basis="one more copy of the trained weights",
        confidence=Confidence.MEDIUM,
    )


def _resolution(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    value = value_of(facts, Lever.RESOLUTION)
    if not _trains_in(facts, trouble) or value is None or trouble.phase is RunPhase.LOADING:
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
        title=f"Pictures of {before:.0f} pixels leave too little memory: {_use(trouble)}",
        action=f"Train at {after:.0f} pixels at most.",
        impact=f"{_predicted(trouble, predicted)} Memory grows with the area.",
        group=_group(trouble),
        evidence=_pool_evidence(trouble),
        basis="memory above the level before the first step grows with the square of the side",
        confidence=Confidence.MEDIUM,
    )


def _larger_machine(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
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
        title=f"The machine has too little {what}: {_use(trouble)}",
        action=f"Take a machine with {wanted} GB of {what}." if wanted else f"Take a machine with more {what}.",
        impact=f"The run needs {gb(trouble.need_gb)} or more; no setting is left that would free enough."
        if trouble.pool.is_measured
        else "No setting is left that would free enough.",
        group=_group(trouble),
        evidence=_pool_evidence(trouble),
        basis="measured: the highest use of this run",
        confidence=Confidence.MEDIUM,
    )


Row = Callable[[RunFacts, Trouble], Iterator[Finding | None]]
_CAUSES: tuple[Row, ...] = (
    _workers,
    _sampling,
    _saving,
    _automatic_batch,
    _leak,
    _quantise,
    _batch,
    _checkpointing,
    _ema,
    _resolution,
    _larger_machine,
)
_TIGHT: tuple[Row, ...] = (_workers_beside_a_card, _checkpointing, _resolution, _batch, _ema, _larger_machine)
_HANDLES: tuple[Row, ...] = (_quantise, _checkpointing, _batch, _ema, _resolution)


def _freed(trouble: Trouble) -> str:
    above = trouble.need_gb - trouble.base_gb
    return f"Frees a large part of the {gb(above)} above the weights" if trouble.base_known else "Frees much memory"


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


def _trains_in(facts: RunFacts, trouble: Trouble) -> bool:
    """Return whether weights and activations are in this pool."""
    return trouble.pool.is_gpu or facts.platform != DISCRETE


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


def _peak_with_workers(pool: Pool) -> tuple[float, int | None]:
    """Return what workers held, and how many they were, in the fullest sample that measured them."""
    measured = [level for level in pool.levels if level.worker_gb is not None]
    if not measured:
        return 0.0, None
    peak = max(measured, key=lambda level: level.used_gb)
    return peak.worker_gb or 0.0, peak.workers


def _highest_by_batch(facts: RunFacts, pool: Pool) -> dict[int, float]:
    """Return the highest use while training at each batch size that ran."""
    changes = [
        (event.at, event.whole("batch_size") if event.kind == "training_start" else event.whole("new_batch_size"))
        for event in facts.events
        if event.kind in ("training_start", "batch_size_adjustment")
    ]
    failed = [event.at for event in facts.oom_events]
    highest: dict[int, float] = {}
    for level in pool.in_training(facts.phases):
        if any(abs(level.at - at) < 5 for at in failed):
            continue  # a batch that did not fit did not run
        size = next((size for at, size in reversed(changes) if size and at <= level.at), None)
        if size is not None:
            highest[size] = max(highest.get(size, 0.0), level.used_gb)
    return highest


def _pool_evidence(trouble: Trouble) -> tuple[Evidence, ...]:
    if not trouble.pool.is_measured:
        return (Evidence(what="out of memory, by the log alone", value=True),)
    peak = Evidence(
        what=f"highest use of {trouble.pool.name} memory",
        value=round(trouble.pool.peak.used_gb, 2),
        unit="GB",
        threshold=round(trouble.pool.size_gb * MOST_SHARE, 2),
    )
    return (peak, Evidence(what="size", value=round(trouble.pool.size_gb, 2), unit="GB"))


def _group(trouble: Trouble) -> Group:
    if not trouble.out:
        return Group.MEMORY
    return Group.ENDED_THE_RUN if trouble.ended_run else Group.SURVIVED_OUT_OF_MEMORY


def _use(trouble: Trouble) -> str:
    """Return how full the pool was, for the end of a title."""
    pool = trouble.pool
    if not pool.is_measured:
        return "it ran out"
    if trouble.by_kernel and pool.share < MOST_SHARE:
        return f"more than {gb(pool.size_gb)} at once"  # a peak between two samples
    return f"{gb(pool.peak.used_gb)} of {gb(pool.size_gb)} ({percent(pool.share)})"


def _predicted(trouble: Trouble, needed_gb: float) -> str:
    if not trouble.pool.is_measured:
        return f"About {percent(needed_gb / trouble.need_gb)} of what this run needed."
    return f"Predicted {gb(needed_gb)} of {gb(trouble.pool.size_gb)}."
