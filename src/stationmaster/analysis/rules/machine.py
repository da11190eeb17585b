"""What the machine did worse than it should: throttling, a slow disk, a slow line, a slow start."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles

from stationmaster.analysis.facts.phases import RunPhase
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Confidence, Evidence, Severity
from stationmaster.analysis.rules.base import Finding, Group, cost_of, duration, find, percent

_THROTTLED_SHARE = 0.20
_CLOCK_SHARE = 0.80
_LEAST_SAMPLES = 10
_WASTED_SHARE = 0.15
_LEAST_SECONDS = 30.0  # a shorter transfer is mostly the time that its commands take
_SLOW_DISK = 100e6
_SLOW_LINE = 5e6
_LONG_START_SHARE = 0.30
_LONG_START_SECONDS = 600.0
_LONG_PROVISIONING_SECONDS = 600.0
_THERMAL = ("sw_thermal", "hw_thermal")


def machine_rules(facts: RunFacts) -> Iterator[Finding]:
    """Yield what a better machine would have saved."""
    rules = (_throttled, _slow_disk, _slow_transfer, _slow_start, _provisioning)
    yield from (finding for rule in rules if (finding := rule(facts)) is not None)


def _throttled(facts: RunFacts) -> Finding | None:
    table = facts.tables.get("GpuSample")
    if table is None:
        return None
    rows = [
        (throttle, clock)
        for at, throttle, clock in table.tuples("timestamp", "throttle", "clock_mhz")
        if facts.phases.at(at) is RunPhase.TRAINING
    ]
    held = [(throttle, clock) for throttle, clock in rows if throttle]
    clocks = [clock for _, clock in rows if clock]
    if len(rows) < _LEAST_SAMPLES or len(held) < _THROTTLED_SHARE * len(rows) or len(clocks) < _LEAST_SAMPLES:
        return None
    held_clocks = [clock for _, clock in held if clock]
    rated = (
        facts.info_number("gpu_rated_clock_mhz")
        or quantiles([clock for clock in table.values("clock_mhz") if clock], n=20)[-1]
    )
    if not held_clocks or median(held_clocks) >= _CLOCK_SHARE * rated:
        return None
    thermal = sum(throttle in _THERMAL for throttle, _ in held) * 2 >= len(held)
    slow = median(held_clocks) / rated
    lost = facts.training_seconds * len(held) / len(rows) * (1 - slow)
    evidence = (
        Evidence(what="samples that were throttled", value=round(len(held) / len(rows), 3), threshold=_THROTTLED_SHARE),
        Evidence(
            what="their usual clock",
            value=round(median(held_clocks)),
            unit="MHz",
            threshold=round(_CLOCK_SHARE * rated),
        ),
    )
    limits = [limit for limit in table.values("power_limit_watts") if limit]
    rated_power = facts.info_number("gpu_rated_power_watts")
    if thermal:
        lever, value = Lever.MACHINE_COOLING, None
        action = "Take a machine with better cooling, or another host: the GPU was too hot for its full clock."
    elif limits and rated_power and rated_power > median(limits) * 1.02:
        lever, value = Lever.MACHINE_POWER, round(rated_power)
        action = f"Raise the power limit from {median(limits):.0f} W to {rated_power:.0f} W, or take another host."
    else:
        lever, value = Lever.MACHINE_HOST, None
        action = "Take another host: this one limits the GPU's power."
    return find(
        facts,
        rule="gpu_throttled",
        severity=Severity.WARNING,
        lever=lever,
        value=value,
        title=f"The GPU ran at {percent(slow)} of its clock in {percent(len(held) / len(rows))} of the training",
        action=action,
        impact=f"About {duration(lost)} less{cost_of(facts, lost)}.",
        group=Group.TIME,
        evidence=evidence,
        basis="measured: throttle flags and clocks",
        confidence=Confidence.HIGH,
        seconds_lost=lost,
    )


def _slow_disk(facts: RunFacts) -> Finding | None:
    size, seconds, whole = (
        facts.info_number("model_bytes"),
        facts.info_number("model_load_seconds"),
        facts.duration_seconds,
    )
    if not size or not seconds or not whole or seconds < _WASTED_SHARE * whole or size / seconds >= _SLOW_DISK:
        return None
    return find(
        facts,
        rule="slow_disk",
        severity=Severity.WARNING,
        lever=Lever.MACHINE_DISK,
        value=None,
        title=f"The model was read at {size / seconds / 1e6:.0f} MB/s: {percent(seconds / whole)} of the run",
        action="Take a machine with a faster disk (NVMe).",
        impact=f"About {duration(seconds - size / 1e9)} less{cost_of(facts, seconds - size / 1e9)}, at 1 GB/s.",
        group=Group.TIME,
        evidence=(
            Evidence(
                what="reading speed", value=round(size / seconds / 1e6, 1), unit="MB/s", threshold=_SLOW_DISK / 1e6
            ),
            Evidence(what="share of the run", value=round(seconds / whole, 3), threshold=_WASTED_SHARE),
        ),
        basis="measured: the model's size and the time to load it",
        confidence=Confidence.HIGH,
        seconds_lost=seconds,
    )


def _slow_transfer(facts: RunFacts) -> Finding | None:
    size, seconds, whole = (
        facts.info_number("dataset_bytes"),
        facts.info_number("transfer_seconds"),
        facts.duration_seconds,
    )
    if not size or not seconds or whole is None or size / seconds >= _SLOW_LINE:
        return None
    share = seconds / (seconds + whole)
    if share < _WASTED_SHARE or seconds < _LEAST_SECONDS:
        return None
    return find(
        facts,
        rule="slow_transfer",
        severity=Severity.WARNING,
        lever=Lever.MACHINE_NETWORK,
        value=None,
        title=f"The dataset was sent at {size / seconds / 1e6:.1f} MB/s: {duration(seconds)} before the training",
        action="Take a machine with a faster line, or keep the dataset in a bucket near it.",
        impact=f"About {duration(seconds - size / 25e6)} less{cost_of(facts, seconds - size / 25e6)}, at 25 MB/s.",
        group=Group.TIME,
        evidence=(
            Evidence(what="speed", value=round(size / seconds / 1e6, 2), unit="MB/s", threshold=_SLOW_LINE / 1e6),
            Evidence(what="share of transfer and run", value=round(share, 3), threshold=_WASTED_SHARE),
        ),
        basis="measured: the dataset's size and the time to send it",
        confidence=Confidence.HIGH,
        seconds_lost=seconds,
    )


def _slow_start(facts: RunFacts) -> Finding | None:
    """A long time before the first step, where no cause of its own is known."""
    first, rows, whole = facts.phases.first_step_at, facts.row_times, facts.duration_seconds
    if first is None or rows is None or not whole or facts.info_number("model_load_seconds"):
        return None
    seconds = first - rows[0]
    if seconds < _LONG_START_SECONDS or seconds < _LONG_START_SHARE * whole:
        return None
    return find(
        facts,
        rule="slow_start",
        severity=Severity.INFO,
        lever=Lever.MACHINE_DISK,
        value=None,
        title=f"{duration(seconds)} passed before the first step: {percent(seconds / whole)} of the run",
        action="Take a machine with a faster disk and line, or train more steps in one run.",
        impact=f"Part of {duration(seconds)}{cost_of(facts, seconds)}.",
        group=Group.OTHER,
        evidence=(
            Evidence(what="time before the first step", value=round(seconds), unit="s", threshold=_LONG_START_SECONDS),
            Evidence(what="share of the run", value=round(seconds / whole, 3), threshold=_LONG_START_SHARE),
        ),
        basis="measured: from the first sample to the first step",
        confidence=Confidence.LOW,
    )


def _provisioning(facts: RunFacts) -> Finding | None:
    seconds, whole = facts.info_number("provisioning_seconds"), facts.duration_seconds
    if not seconds or whole is None or seconds < _LONG_PROVISIONING_SECONDS:
        return None
    share = seconds / (seconds + whole)
    if share < _WASTED_SHARE:
        return None
    return find(
        facts,
        rule="slow_provisioning",
        severity=Severity.INFO,
        lever=Lever.MACHINE_HOST,
        value=None,
        title=f"The machine took {duration(seconds)} to be ready",
        action="Take another host, or an image that the host has already.",
        impact=f"Part of {duration(seconds)}{cost_of(facts, seconds)}.",
        group=Group.OTHER,
        evidence=(
            Evidence(
                what="time until the machine was ready",
                value=round(seconds),
                unit="s",
                threshold=_LONG_PROVISIONING_SECONDS,
            ),
            Evidence(what="share of it and the run", value=round(share, 3), threshold=_WASTED_SHARE),
        ),
        basis="measured: from the request to the first login",
        confidence=Confidence.MEDIUM,
    )
