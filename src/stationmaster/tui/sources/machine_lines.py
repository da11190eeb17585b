"""One rented machine as lines. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from stationmaster.durations import format_duration
from stationmaster.money import format_dollars
from stationmaster.printable import plain
from stationmaster.station.monitoring import InstanceMetrics
from stationmaster.times import time_text
from stationmaster.tui.columns import MARKS, UNKNOWN, bar, percent
from stationmaster.tui.lines import Line, line
from stationmaster.tui.sources.machine_rows import note_of, tone_of


def fact_lines(machine: InstanceMetrics, *, now: float, width: int) -> Iterator[Line]:
    tone = tone_of(machine)
    old = f", values from {time_text(machine.seen_at, now=now)}" if machine.stale and machine.seen_at else ""
    yield (
        (f"{MARKS[tone]} {plain(machine.status)}, {machine.health_status().value}{old}", tone.value),
        (f"  {plain(machine.gpu_type)}  {plain(machine.label)}", "dim"),
    )
    share = machine.progress_percentage()
    figures = [
        f"{machine.step if machine.step is not None else UNKNOWN}/{machine.total_steps or '?'}"
        + ("" if share is None else f" ({share:.0f}%)"),
        f"ETA {machine.eta()}",
        f"loss {UNKNOWN if machine.loss is None else f'{machine.loss:.3f}'}",
    ]
    figures += [f"epoch {machine.epoch:g}/{machine.total_epochs or '?'}"] if machine.epoch is not None else []
    figures += [f"{machine.steps_per_second:.2f} steps/s"] if machine.steps_per_second else []
    yield (bar(share, max(10, min(40, width // 5))), "accent"), (f"  {', '.join(figures)}", "")
    heat = "" if machine.gpu_celsius is None else f", {machine.gpu_celsius:.0f} °C"
    yield line(
        f"GPU {percent(machine.gpu_percent)}{heat}, memory {percent(machine.memory_percent)}   "
        f"{format_dollars(machine.total_cost)} so far, {format_dollars(machine.cost_per_hour, 3)}/h, "
        f"{format_duration(machine.runtime_seconds)} since it was rented"
    )
    if note := note_of(machine):
        yield line(f"▲ {plain(note)}", "warning")


def machine_lines(machine: InstanceMetrics) -> Iterator[Line]:
    """What is not known from outside, and how to have it watched."""
    yield line(f"instance   {machine.id}")
    yield line(f"label      {plain(machine.label) or 'none'}")
    yield line(f"login      {plain(machine.ssh or 'not known')}")
    yield line(f"groups     {', '.join(machine.groups) or 'none'}")
    yield line("")
    yield line("Whether it has stalled, its checkpoints and its analysis are not known from outside.", "dim")
    yield line(f"To have it watched: stationmaster adopt {shlex.quote(machine.id)} --log GLOB --output DIR", "dim")


def cost_lines(machine: InstanceMetrics) -> Iterator[Line]:
    yield line(f"so far    {format_dollars(machine.total_cost)}")
    yield line(f"per hour  {format_dollars(machine.cost_per_hour, 3)}")
    yield line(f"rented    {format_duration(machine.runtime_seconds)} ago")
    left = machine.eta_seconds()
    if left is not None:
        end = machine.total_cost + machine.cost_per_hour * left / 3600
        yield line(f"until the training ends: {format_dollars(type(machine.total_cost)(round(end)))}")
