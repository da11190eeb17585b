"""One job as lines: its facts, events, checkpoints, cost and recommendations. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from stationmaster.analysis.report import Health, Recommendation, Severity
from stationmaster.durations import format_duration
from stationmaster.event_sentences import sentence
from stationmaster.lifecycle import STAGES, activity
from stationmaster.model import Checkpoint, Event, SshAccess, State
from stationmaster.money import format_dollars
from stationmaster.printable import plain
from stationmaster.station.analysis import Analysis
from stationmaster.station.costs import PaidLine, Shares
from stationmaster.station.jobs import JobView
from stationmaster.times import time_text
from stationmaster.tui.columns import UNKNOWN, bar
from stationmaster.tui.lines import Line, line, wrapped

_SEVERITIES = {Severity.CRITICAL: "bad", Severity.WARNING: "warning"}


def fact_lines(view: JobView, *, width: int) -> Iterator[Line]:
    """What a person wants to know first: how far, how fast, until when, for how much, and what is wrong."""
    job = view.job
    state = f"{view.shown.replace('_', ' ').capitalize()}"
    doing = activity(job.progress, now=view.now)
    phase = "" if doing is None else f", {plain(doing)}"
    yield (
        (state, _tone(view)),
        (f"{phase}  stage {STAGES.index(view.stage) + 1} of {len(STAGES)}: {view.stage}", ""),
        (f"  {plain(job.spec.recipe)} on {job.spec.provider}, attempt {max(1, job.attempt)}", "dim"),
    )
    yield from _progress_lines(view, width=width)
    yield from _transfer_lines(view, width=width)
    money = f"{format_dollars(view.cost)} so far, quoted {format_dollars(job.spec.quote.cost_expected)}"
    memory = "" if view.peak_gpu_gib is None else f"   memory {view.peak_gpu_gib:.1f} GiB at the peak"
    memory += f" of {view.gpu_gib:.3g} GiB" if memory and view.gpu_gib else ""
    yield line(f"{money}   {format_duration(view.taken_seconds)} since it was submitted{memory}")
    yield from _verdict_lines(view, width=width)


def event_lines(events: Sequence[Event], *, now: float) -> Iterator[Line]:
    """Newest last, as they were written."""
    for event in events:
        yield (f"{_clock(event.at)}  ", "dim"), (plain(sentence(event.kind, event.payload)), "")


def checkpoint_lines(checkpoints: Sequence[Checkpoint], *, now: float) -> Iterator[Line]:
    for one in (each for each in checkpoints if each.kind == "checkpoint"):
        step = "" if one.step is None else f"step {one.step}"
        is_safe = one.verified_at is not None
        where = plain(one.location or "") if is_safe else "on the machine only"
        yield (
            ("● " if is_safe else "▲ ", "good" if is_safe else "warning"),
            (f"{plain(one.path):<36} {step:>10}  {one.size / 1e6:>9,.1f} MB  ", ""),
            (f"{where}  {(one.sha256 or '')[:12]}", "dim"),
        )


def cost_lines(view: JobView, paid: Sequence[PaidLine], *, now: float) -> Iterator[Line]:
    shares = sum((one.shares for one in paid), Shares())
    yield line(f"so far   {format_dollars(view.cost)}   quoted {format_dollars(view.job.spec.quote.cost_expected)}")
    limit = view.job.spec.max_spend
    hours = format_duration(view.job.spec.max_seconds) if view.job.spec.has_time_limit else "no time limit"
    yield line(f"limit    {format_dollars(limit) if limit else 'none'}, {hours}")
    for name, amount in (("training", shares.training), ("stalled", shares.stalled), ("idle", shares.idle)):
        yield line(f"{name:<9}{format_dollars(amount)}", "warning" if name == "stalled" and amount else "")
    yield line("")
    for one in paid:
        each = one.line
        ended = "runs" if each.ended_at is None else format_duration(each.ended_at - each.started_at)
        yield line(
            f"{each.kind:<8}{format_dollars(each.so_far(now=now)):>9}  {format_dollars(each.rate_per_hour, 3)}/h  "
            f"{ended:>7}  {plain(each.rental_label)}  ({each.source})"
        )


def advice_lines(analysis: Analysis | None, *, job_id: str, width: int) -> Iterator[Line]:
    if analysis is None:
        yield line("The analysis is made when the training has ended.", "dim")
        yield line(f"As it is now: stationmaster analyze {job_id}", "dim")
        return
    report = analysis.report
    if not report.recommendations:
        nothing = "Nothing to change." if report.health is Health.GOOD else "No change to recommend."
        yield line(nothing)
    for number, each in enumerate(report.recommendations, start=1):
        yield from _recommendation(number, each, width=width)
        yield line("")


def ssh_command(view: JobView) -> str | None:
    """A command line that logs in to the job's machine; None while there is none."""
    access = view.access
    if access is None:
        return None
    if isinstance(access, SshAccess) and not access.use_config:
        key = [] if access.key_path is None else ["-i", access.key_path]
        return shlex.join(["ssh", *key, "-p", str(access.port), f"{access.user}@{access.host}"])
    return f"stationmaster ssh {view.job.id}"


def _progress_lines(view: JobView, *, width: int) -> Iterator[Line]:
    progress = view.job.progress
    if progress.step is None:
        return
    total = progress.total_steps
    share = 100.0 * progress.step / total if total else None
    figures = [f"{progress.step}/{total or '?'}" + ("" if share is None else f" ({share:.0f}%)")]
    figures += [] if view.shown != State.EXECUTING else [f"ETA {format_duration(progress.eta_seconds)}"]
    figures.append(f"loss {UNKNOWN if progress.loss is None else f'{progress.loss:.3f}'}")
    figures += [] if progress.epoch is None else [f"epoch {progress.epoch:g}"]
    figures += [] if not progress.steps_per_second else [f"{progress.steps_per_second:.2f} steps/s"]
    figures += [] if not progress.learning_rate else [f"lr {progress.learning_rate:g}"]
    yield (bar(share, _bar_width(width)), "accent"), (f"  {', '.join(figures)}", "")


def _transfer_lines(view: JobView, *, width: int) -> Iterator[Line]:
    carried = view.job.machine.transfer
    if carried is None:
        return
    share = 100.0 * carried.bytes / carried.total if carried.total else None
    speed = f", {carried.bytes_per_second / 1e6:,.1f} MB/s" if carried.bytes_per_second else ""
    left = f", ETA {format_duration(carried.eta_seconds)}" if carried.eta_seconds is not None else ""
    amount = f"{carried.way} {carried.bytes / 1e6:,.1f} of {carried.total / 1e6:,.1f} MB"
    yield (bar(share, _bar_width(width)), "accent"), (f"  {amount}{speed}{left}", "")


def _verdict_lines(view: JobView, *, width: int) -> Iterator[Line]:
    job = view.job
    if job.explanation:
        yield from wrapped(plain(job.explanation), width, style="bad" if _tone(view) == "bad" else "")
    for alert in view.alerts:
        text = f"▲ {plain(alert.message)} ({time_text(alert.at, now=view.now)})"
        yield from wrapped(text, width, style="warning", indent="  ")
    if not view.alerts and view.shown == State.EXECUTING and job.progress.step is not None:
        yield line("● no stall: the training moves at its own pace", "good")
    if view.health is not None:
        headline = f": {plain(view.health.headline)}" if view.health.headline else ""
        yield line(f"analysis: {view.health.health}{headline}")


def _recommendation(number: int, each: Recommendation, *, width: int) -> Iterator[Line]:
    style = _SEVERITIES.get(each.severity, "accent")
    yield (f"{number}. {each.severity.value.upper()}  ", style), (plain(each.title), "title")
    yield from wrapped(f"   {plain(each.action)}", width, indent="   ")
    if each.impact:
        yield from wrapped(f"   Impact: {plain(each.impact)}", width, indent="   ")
    if each.config_path:
        change = f"{plain(str(each.current_value))} -> {plain(str(each.recommended_value))}"
        yield line(f"   {plain(each.config_path)}: {change}", "accent")


def _bar_width(width: int) -> int:
    return max(10, min(40, width // 5))


def _tone(view: JobView) -> str:
    if view.shown in ("FAILED", "FAILED_PROVISIONING"):
        return "bad"
    return "warning" if view.alerts or view.shown == "NEEDS_RECOVERY" else "good"


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%d %b %H:%M:%S}"
