"""What every rule on memory asks and says of a pool in trouble."""

from __future__ import annotations

from stationmaster.analysis.facts.pools import DISCRETE
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.facts.troubles import Trouble
from stationmaster.analysis.report import Evidence
from stationmaster.analysis.rules.base import Group, gb, percent
from stationmaster.analysis.rules.room import MOST_SHARE


def trains_in(facts: RunFacts, trouble: Trouble) -> bool:
    """Return whether weights and activations are in this pool."""
    return trouble.pool.is_gpu or facts.platform != DISCRETE


def group_of(trouble: Trouble) -> Group:
    """Return how much the trouble mattered to the run."""
    if not trouble.out:
        return Group.MEMORY
    return Group.ENDED_THE_RUN if trouble.ended_run else Group.SURVIVED_OUT_OF_MEMORY


def use_of(trouble: Trouble) -> str:
    """Return how full the pool was, for the end of a title."""
    pool = trouble.pool
    if not pool.is_measured:
        return "it ran out"
    if trouble.by_kernel and pool.share < MOST_SHARE:
        return f"more than {gb(pool.size_gb)} at once"  # a peak between two samples
    return f"{gb(pool.peak.used_gb)} of {gb(pool.size_gb)} ({percent(pool.share)})"


def prediction(trouble: Trouble, needed_gb: float) -> str:
    """Return a predicted use, as a sentence."""
    if not trouble.pool.is_measured:
        return f"About {percent(needed_gb / trouble.need_gb)} of what this run needed."
    return f"Predicted {gb(needed_gb)} of {gb(trouble.pool.size_gb)}."


def freed(trouble: Trouble) -> str:
    """Return what smaller activations give back, for the beginning of a sentence."""
    above = trouble.need_gb - trouble.base_gb
    return f"Frees a large part of the {gb(above)} above the weights" if trouble.base_known else "Frees much memory"


def pool_evidence(trouble: Trouble) -> tuple[Evidence, ...]:
    """Return the highest use and the size of the pool."""
    if not trouble.pool.is_measured:
        return (Evidence(what="out of memory, by the log alone", value=True),)
    peak = Evidence(
        what=f"highest use of {trouble.pool.name} memory",
        value=round(trouble.pool.peak.used_gb, 2),
        unit="GB",
        threshold=round(trouble.pool.size_gb * MOST_SHARE, 2),
    )
    return (peak, Evidence(what="size", value=round(trouble.pool.size_gb, 2), unit="GB"))
