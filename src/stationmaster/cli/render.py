"""Renders jobs, as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from stationmaster.durations import format_duration
from stationmaster.lifecycle import activity, seconds_without_step
from stationmaster.model import (
    Event,
    Outcome,
    Progress,
    Quote,
    RunHealth,
    State,
    Transfer,
)
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.printable import one_line
from stationmaster.station.jobs import JobView

if TYPE_CHECKING:
    from stationmaster.station.proposals import Terms  # imports much that `jobs` does not need

EXIT_CODES: dict[Outcome, int] = {
    Outcome.COMPLETED: 0,
    Outcome.INCOMPLETE: 40,
    Outcome.FAILED: 41,
    Outcome.FAILED_PROVISIONING: 42,
    Outcome.CANCELLED: 43,
}
"""The exit codes of `train --watch`, `watch` and `demo`."""


def job_json(view: JobView, events: Sequence[Event] = ()) -> dict[str, Any]:
    """One job as JSON; names are stable."""
    from stationmaster.station.wire.jobs import JobDocument  # pydantic, which text output does not need

    return JobDocument.of(view, events).model_dump(mode="json")


def quote_json(quote: Quote) -> dict[str, Any]:
    from stationmaster.station.wire.quote import QuoteDocument  # as above

    return QuoteDocument.of(quote).model_dump(mode="json")


def instant(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def dollars(amount: MicroDollars) -> float:
    return amount / 1_000_000


def progress_share(progress: Progress) -> str:
    """How far it is: `312/600 (52%)`; nothing before the first step."""
    share = progress.percent
    return "" if share is None else f"{progress.step}/{progress.total_steps} ({share:g}%)"


def stage_text(view: JobView) -> str:
    """The stage, with what runs besides training steps: `training: sampling for 2m`."""
    doing = activity(view.job.progress, now=view.now)
    return view.stage if doing is None else f"{view.stage}: {one_line(doing)}"


def starting_text(view: JobView) -> str | None:
    """What the provider reports of a machine that is not ready yet; None while there is none."""
    job = view.job
    if job.state is not State.PROVISIONING or job.outcome is not None or not job.machine.starting:
        return None
    return one_line(job.machine.starting)


def speed_text(steps_per_second: float) -> str:
    """
    >>> speed_text(4.126), speed_text(0.0418)
    ('4.13 steps/s', '23.9 s/step')
    """
    return f"{steps_per_second:.2f} steps/s" if steps_per_second >= 0.1 else f"{1 / steps_per_second:.1f} s/step"


def _amount(terms: Terms) -> str:
    return f"{terms.images} images" if terms.images or not terms.rows else f"{terms.rows} rows"


def quote_lines(terms: Terms) -> Iterator[str]:
    yield f"{terms.name}: {terms.recipe} on {terms.provider}, {_amount(terms)}"
    yield from terms_lines(terms)


def terms_lines(terms: Terms) -> Iterator[str]:
    """Time, cost, limits and notes."""
    most = None if terms.no_offer is not None else terms.max_price_per_hour
    yield from price_lines(terms.quote, most_per_hour=most)
    if terms.no_offer is not None:
        yield f"  cost   unknown: {terms.no_offer}"
    spend = f" and {format_dollars(terms.max_spend)}" if terms.max_spend else ""
    why = f" ({terms.spend_note})" if terms.spend_note else ""
    yield f"  limit  {format_duration(terms.max_seconds)}{spend}{why}, then it is stopped and the model kept"
    for note in terms.notes:
        yield f"  note   {note}"


def price_lines(quote: Quote, *, most_per_hour: MicroDollars | None) -> Iterator[str]:
    """Estimated time, cost and GPU memory with their ranges, and the least GPU and highest price of the machine.

    A GPU that is not offered now has no price: then `most_per_hour` is None.
    """
    low, high = format_duration(quote.hours_low * 3600), format_duration(quote.hours_high * 3600)
    yield f"  time   {format_duration(quote.hours_expected * 3600)} (between {low} and {high})"
    if most_per_hour is not None:
        yield (
            f"  cost   {format_dollars(quote.cost_expected)} (between {format_dollars(quote.cost_low)} and "
            f"{format_dollars(quote.cost_high)}) at {format_dollars(quote.price_per_hour, 3)}/h"
        )
    yield from _memory_lines(quote)
    if most_per_hour is not None and quote.price_per_hour and quote.disk_gib:
        machine = f"{quote.gpu} or faster" if quote.gpu else "a machine without a GPU"
        most = f"at most {format_dollars(most_per_hour, 3)}/h"
        beside = f"{quote.disk_gib:g} GiB of disk and about {quote.traffic_gib:.1f} GiB of traffic"
        yield f"  for    {machine}, {most}, with {beside}"


def _memory_lines(quote: Quote) -> Iterator[str]:
    """The GPU memory that is expected and what that rests on, or why it is not; nothing without a GPU."""
    if quote.memory_expected_gib is None:
        if quote.memory_basis:
            yield f"  memory not predicted: {quote.memory_basis}"
        return
    expected = gib_of(quote.memory_expected_gib, quote.gpu_gib)
    low, high = quote.memory_low_gib or 0.0, quote.memory_high_gib or 0.0
    yield f"  memory {expected}, between {low:.1f} and {high:.1f} GiB, {quote.memory_basis}"


def gib_of(used: float, size: float | None) -> str:
    """Used memory with the share of a GPU's, as text.

    >>> gib_of(18.93, 24.0)
    '18.9 GiB of 24 GiB (79 %)'
    """
    return f"{used:.1f} GiB" if not size else f"{used:.1f} GiB of {size:.3g} GiB ({100 * used / size:.0f} %)"


def health_text(found: RunHealth) -> str:
    """Health and first recommendation: `Critical: the card ran out of memory`."""
    return one_line(found.health.capitalize() + (f": {found.headline}" if found.headline else ""))


def transfer_text(carried: Transfer) -> str:
    """The progress of a transfer: bytes, rate, time left."""
    words = [f"{carried.way} {carried.bytes / 1e6:,.1f} of {carried.total / 1e6:,.1f} MB"]
    if carried.bytes_per_second:
        words.append(f"{carried.bytes_per_second / 1e6:,.1f} MB/s")
    if carried.eta_seconds is not None:
        words.append(f"ETA {format_duration(carried.eta_seconds)}")
    return ", ".join(words)


def progress_text(progress: Progress, *, now: float) -> str:
    share = progress.percent
    words = [f"{progress.step}/{progress.total_steps or '?'}" + (f" ({share:g}%)" if share is not None else "")]
    if progress.loss is not None:
        words.append(f"loss {progress.loss:.3f}")
    if seconds_without_step(progress, now=now) is not None:  # then the last speed and ETA mean nothing
        return ", ".join(words)
    if progress.steps_per_second:
        words.append(speed_text(progress.steps_per_second))
    if progress.eta_seconds is not None:
        words.append(f"ETA {format_duration(progress.eta_seconds)}")
    return ", ".join(words)
