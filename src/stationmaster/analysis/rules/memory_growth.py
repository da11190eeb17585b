"""Memory that grew during the run: a batch that was raised automatically, a leak."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.analysis.facts.pools import Pool
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.facts.troubles import Trouble
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, find, gb, number_of
from stationmaster.analysis.rules.memory_terms import group_of, pool_evidence, use_of
from stationmaster.analysis.rules.room import (
    MOST_SHARE,
    fitting_batch,
)


def automatic_batch(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
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
        title=f"The batch size grew to {over}, which does not fit: {use_of(trouble)}",
        action=f"Limit automatic batch sizes to {best}.",
        impact=f"A batch of {best} used {gb(used)}." if used else f"A batch of {best} is predicted to fit.",
        group=group_of(trouble),
        evidence=(
            *pool_evidence(trouble),
            *(
                Evidence(what=f"highest use at batch {size}", value=round(level, 2), unit="GB")
                for size, level in sorted(highest.items())
            ),
        ),
        basis=basis,
        confidence=Confidence.HIGH,
    )


def leak(facts: RunFacts, trouble: Trouble) -> Iterator[Finding | None]:
    leak = trouble.leak
    if leak is None:
        return
    title = f"Memory grew all the time, by {gb(leak.grown_gb)} in {leak.hours:.1f} h: {use_of(trouble)}"
    evidence = (
        *pool_evidence(trouble),
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
            group=group_of(trouble),
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
        group=group_of(trouble),
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
