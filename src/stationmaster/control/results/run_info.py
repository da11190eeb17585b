"""What only home knows of an attempt, under the keys of RunInfo: the price, the dataset, how long it took to get there.

Times are seconds since 1970 by our clock; `clock_offset_seconds` is how far the machine's is ahead of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stationmaster.model import CostLine, Event, Job, Reason, State

_STOPPED_BY = {
    Reason.STOPPED_BY_USER: "user",
    Reason.CANCELLED_BY_USER: "user",
    Reason.HARD_LIMIT: "limit",
    Reason.ANOMALY: "anomaly",
    Reason.STALLED: "stall",
}
KINDS_OF_FACTS = ("state", "step", "training_started")
"""Events that the facts are read from."""

_ENDED = ("done", "failed", "stopped")
_SIGNAL_CODES = 128  # a shell reports signal 9 as 137


def home_facts(
    job: Job, *, attempt: int, events: Sequence[Event], costs: Sequence[CostLine], framework: str | None
) -> dict[str, str]:
    """Return the facts of one attempt of a job; what is not known is left out. `events`: all of the job's
    that are of `KINDS_OF_FACTS`.
    """
    own = list(_events_of(attempt, events))
    started = next((event for event in own if event.kind == "training_started"), None)
    step = None if started is None else str(started.payload.get("step"))
    code, signal = (None, None) if step is None else _exit(own, step)
    found: dict[str, object | None] = {
        "framework": framework,
        "stopped_by": _stopped_by(job, code) if attempt == job.attempt else None,
        "started_at": None if started is None else started.at,
        "ended_at": None if step is None else _ended_at(own, step),
        "exit_code": code,
        "exit_signal": signal,
        "clock_offset_seconds": clock_ahead_seconds(job) if attempt == job.attempt else None,
        "total_steps": job.progress.total_steps or job.spec.parameters.get("steps"),
        "price_per_hour_usd": _price(costs),
        "dataset_images": job.spec.dataset.images or None,
        "dataset_bytes": job.spec.dataset.size or None,
        "provisioning_seconds": _seconds_in(State.PROVISIONING, own),
        "transfer_seconds": _seconds_in(State.TRANSFERRING_DATA, own),
    }
    return {key: str(value) for key, value in found.items() if value is not None}


def clock_ahead_seconds(job: Job) -> float | None:
    """How far the machine's clock was ahead of ours when it was last seen; None if it never was."""
    kept = (job.watching.vitals or {}).get("clock") or ()
    return float(kept[-1][1]) if kept else None


def _events_of(attempt: int, events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events of one attempt; a move to another state names the attempt that it begins or continues."""
    current = 1
    for event in events:
        named = event.payload.get("attempt") if event.kind == "state" else None
        current = named if isinstance(named, int) else current
        if current == attempt:
            yield event


def _stopped_by(job: Job, code: int | None) -> str | None:
    """Who ended the training; None if it ended on its own, also if that was just before it was to be stopped."""
    reason = job.reason or job.ending.reason
    return None if reason is None or code == 0 else _STOPPED_BY.get(reason)


def _ended_at(events: Sequence[Event], step: str) -> float | None:
    """When the training step was last seen to end; else when the job left the state in which it ran."""
    ends = [event.at for event in events if _is_end_of(event, step)]
    left = [
        event.at for event in events if event.kind == "state" and event.payload.get("from") == State.EXECUTING.value
    ]
    return max(ends or left, default=None)


def _exit(events: Sequence[Event], step: str) -> tuple[int | None, int | None]:
    """Return exit code and signal of the training's last try."""
    last = next((event.payload for event in reversed(events) if _is_end_of(event, step)), {})
    code, signal = last.get("exit_code"), last.get("signal")
    if isinstance(signal, int):
        return _SIGNAL_CODES + signal, signal
    return (code, None) if isinstance(code, int) else (None, None)


def _is_end_of(event: Event, step: str) -> bool:
    return event.kind == "step" and event.payload.get("step") == step and event.payload.get("state") in _ENDED


def _price(costs: Sequence[CostLine]) -> float | None:
    """What the machine cost per hour while it ran: the sum of its lines in the last rental."""
    if not costs:
        return None
    last = max(costs, key=lambda line: line.started_at).rental_label
    return sum(line.rate_per_hour for line in costs if line.rental_label == last) / 1_000_000


def _seconds_in(state: State, events: Sequence[Event]) -> float | None:
    """How long the job was in a state the last time."""
    entered: float | None = None
    seconds: float | None = None
    for event in events:
        if event.kind != "state":
            continue
        if event.payload.get("to") == state.value:
            entered = event.at
        elif event.payload.get("from") == state.value and entered is not None:
            seconds, entered = event.at - entered, None
    return seconds
