"""What a healthy run left unused: memory for a larger batch, a larger card than needed, a slow number format."""

from __future__ import annotations

import math
from collections.abc import Iterator

from stationmaster.analysis.configs.base import truth
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, find, gb, number_of, percent, value_of
from stationmaster.analysis.rules.room import CAREFUL_SHARE, MOST_SHARE, needed_for_batch

_ROOM_SHARE = 0.50
_PLENTY_SHARE = 0.40
_SMALLER_CARD_SHARE = 0.45
_LARGE_CARD_GB = 39.0  # a card sold as 40 GB shows a little less
_SMALLER_CARDS_GB = (12, 16, 24, 32, 48, 80)
_MOST_GROWTH = 8
_FULL_PRECISION = ("fp32", "float32", "float", "no")
_CHEAPER = 0.8


def headroom_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield what the next run could do with the memory that was free; only for a run that went well."""
    pool = facts.training_pool
    if not facts.ending.completed or facts.is_spoilt or facts.had_oom or pool is None:
        return
    rules = (_larger_batch, _no_checkpointing, _smaller_card, _cheaper_offer, _number_format)
    yield from (finding for rule in rules if (finding := rule(facts)) is not None)


def _larger_batch(facts: RunFacts) -> Finding | None:
    pool = facts.training_pool
    batch = int(number_of(facts, Lever.BATCH_SIZE) or 0) or facts.batch_size
    if pool is None or pool.share >= _ROOM_SHARE or not batch:
        return None
    base = min(pool.base(facts.phases) or 0.0, pool.peak.used_gb)
    per_item = max((pool.peak.used_gb - base) / batch, 0.02 * pool.size_gb)
    larger = min(math.floor((pool.size_gb * CAREFUL_SHARE - base) / per_item + 1e-9), batch * _MOST_GROWTH)
    if larger <= batch:
        return None
    predicted = max(needed_for_batch(larger, base_gb=base, need_gb=pool.peak.used_gb, batch=batch), pool.peak.used_gb)
    return find(
        facts,
        rule="larger_batch",
        severity=Severity.INFO,
        lever=Lever.BATCH_SIZE,
        value=larger,
        title=f"Memory allows a batch of {larger}, now {batch}",
        action=f"Raise the batch size to {larger}, and train fewer steps.",
        impact=f"Predicted {gb(predicted)} of {gb(pool.size_gb)}; more examples per second.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="highest share of the memory", value=round(pool.share, 3), threshold=_ROOM_SHARE),
            Evidence(what="before the first step", value=round(base, 2), unit="GB"),
        ),
        basis="memory above the level before the first step grows with the batch",
        confidence=Confidence.MEDIUM,
    )


def _no_checkpointing(facts: RunFacts) -> Finding | None:
    pool = facts.training_pool
    on = value_of(facts, Lever.GRADIENT_CHECKPOINTING)
    if pool is None or pool.share >= _PLENTY_SHARE or on is None or not truth(on):
        return None
    return find(
        facts,
        rule="checkpointing_to_spare",
        severity=Severity.INFO,
        lever=Lever.GRADIENT_CHECKPOINTING,
        value=False,
        title=f"Only {percent(pool.share)} of the memory was used: gradient checkpointing can be off",
        action="Switch gradient checkpointing off.",
        impact="Steps take about a quarter less time; memory grows.",
        group=Group.OTHER,
        evidence=(Evidence(what="highest share of the memory", value=round(pool.share, 3), threshold=_PLENTY_SHARE),),
        basis="activations are kept instead of computed again",
        confidence=Confidence.MEDIUM,
    )


def _smaller_card(facts: RunFacts) -> Finding | None:
    pool = facts.gpu
    if pool is None or not facts.price_per_hour or pool.size_gb < _LARGE_CARD_GB or pool.share > _SMALLER_CARD_SHARE:
        return None
    fitting = [
        size for size in _SMALLER_CARDS_GB if pool.peak.used_gb <= size * MOST_SHARE and size < pool.size_gb * 0.95
    ]
    if not fitting:
        return None
    return find(
        facts,
        rule="smaller_card",
        severity=Severity.INFO,
        lever=Lever.MACHINE_GPU_MEMORY,
        value=fitting[0],
        title=f"A card of {fitting[0]} GB would have done: {gb(pool.peak.used_gb)} of {gb(pool.size_gb)} were used",
        action=f"Ask for {fitting[0]} GB of GPU memory, unless you raise the batch size instead.",
        impact=f"Smaller cards cost less than the ${facts.price_per_hour:.2f} per hour of this one.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="highest share of the memory", value=round(pool.share, 3), threshold=_SMALLER_CARD_SHARE),
        ),
        basis="measured: the highest use of this run",
        confidence=Confidence.MEDIUM,
    )


def _cheaper_offer(facts: RunFacts) -> Finding | None:
    """Compare with what can be rented now: the cheapest card whose memory is enough."""
    pool, price = facts.gpu, facts.price_per_hour
    if pool is None or not price:
        return None
    fitting = [offer for offer in facts.run.experience.offers if pool.peak.used_gb <= offer.gpu_memory_gb * MOST_SHARE]
    if not fitting:
        return None
    best = min(fitting, key=lambda offer: offer.price_per_hour_usd)
    if best.price_per_hour_usd > price * _CHEAPER:
        return None
    saved = (price - best.price_per_hour_usd) * (facts.duration_seconds or 0.0) / 3600
    return find(
        facts,
        rule="cheaper_offer",
        severity=Severity.INFO,
        lever=Lever.MACHINE_GPU,
        value=best.gpu,
        title=f"{best.gpu} is offered at ${best.price_per_hour_usd:.2f} per hour and has enough memory",
        action=f"Rent {best.gpu} ({gb(best.gpu_memory_gb)}) instead of paying ${price:.2f} per hour.",
        impact=f"${saved:.2f} less for a run of the same length; a slower card takes longer.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="highest use of the GPU's memory", value=round(pool.peak.used_gb, 2), unit="GB"),
            Evidence(
                what="price now", value=best.price_per_hour_usd, unit="USD/h", threshold=round(price * _CHEAPER, 3)
            ),
        ),
        basis="measured: memory of this run; today's offers",
        confidence=Confidence.LOW,
    )


def _number_format(facts: RunFacts) -> Finding | None:
    dtype = value_of(facts, Lever.DTYPE)
    if dtype is None or str(dtype).casefold() not in _FULL_PRECISION or facts.gpu is None:
        return None
    if facts.gpu_name is None:
        return None
    better = "fp16" if facts.gpu_lacks_bf16 else "bf16"
    return find(
        facts,
        rule="number_format",
        severity=Severity.INFO,
        lever=Lever.DTYPE,
        value=better,
        title=f"The training ran in 32 bit; {facts.gpu_name} is faster in 16",
        action=f"Train in {better}.",
        impact="About twice as fast, with half the memory for activations.",
        group=Group.OTHER,
        evidence=(Evidence(what="number format", value=str(dtype)),),
        basis="16-bit matrix units of the card",
        confidence=Confidence.MEDIUM,
    )
