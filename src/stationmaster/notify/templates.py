"""The text of every message, from an event or an alert. Pure; channels do the escaping.

Requirements fix two texts to the letter, headline included: the detected stall and the termination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stationmaster.durations import format_duration
from stationmaster.lifecycle import MEANINGS
from stationmaster.model import Alert, Event, Job, Outcome, Reason, RunHealth
from stationmaster.money import ZERO, MicroDollars, format_dollars
from stationmaster.notify.base import Priority
from stationmaster.printable import words_of

_LONGEST_LINE = 400  # a whole message then fits into what every service accepts


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a message needs besides its event."""

    cost: MicroDollars = ZERO
    model: str | None = None  # where the best model is
    published: tuple[str, ...] = ()  # where else the model is available
    link: str | None = None  # the job's page, where there is one
    health: RunHealth | None = None  # by the analysis of the training


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageText:
    """A message before it has a recipient."""

    kind: str
    text: str
    priority: Priority = Priority.NORMAL
    more: str | None = None


PRIORITIES: Mapping[str, Priority] = {
    "start": Priority.LOW,
    "milestone": Priority.LOW,
    "epoch": Priority.LOW,
    "completed": Priority.NORMAL,
    "incomplete": Priority.NORMAL,
    "failed": Priority.HIGH,
    "cancelled": Priority.LOW,
    "stall": Priority.HIGH,
    "stall_cleared": Priority.NORMAL,
    "terminated": Priority.HIGH,
    "anomaly": Priority.HIGH,
    "health": Priority.HIGH,
    "soft_limit": Priority.NORMAL,
    "silence": Priority.HIGH,
    "provisioning": Priority.NORMAL,
    "release": Priority.HIGH,
    "parked": Priority.HIGH,
    "low_credit": Priority.HIGH,
    "settled": Priority.LOW,
    "daily_cap": Priority.NORMAL,
    "spending": Priority.HIGH,
    "settings": Priority.HIGH,
    "internal_error": Priority.HIGH,
    "machine": Priority.HIGH,
    "message": Priority.NORMAL,  # text that a program or `notify test` sends
}
"""Every kind of message; users mute kinds by these names."""

TERMINATION_REASONS: Mapping[str, str] = {
    Reason.STALLED: "Stall detected, grace period expired",
    Reason.ANOMALY: "Anomaly detected",
    Reason.HARD_LIMIT: "Time or cost limit reached",
    Reason.MACHINE_STOPPED: "Machine stopped",
}

CAUSES: Mapping[Reason, str] = {
    Reason.STEP_FAILED: "a step of the training failed; see its log",
    Reason.NO_MODEL: "the training finished without a model; see its log",
    Reason.NO_OFFER: "no matching machine available",
    Reason.ACCESS_REFUSED: "a configured key or token was rejected",
    Reason.NO_PROVIDER_CREDIT: "too little credit at the provider",
    Reason.MACHINE_NOT_READY: "the rented machine was not ready in time",
    Reason.PREFLIGHT_FAILED: "the rented machine failed its checks",
    Reason.TRANSFER_FAILED: "the transfer to the rented machine failed",
    Reason.MACHINE_LOST: "the rented machine is gone",
    Reason.FETCH_FAILED: "the model could not be downloaded from the rented machine",
    Reason.MACHINE_FAULT: "the rented machine gave false answers",
    Reason.OUTBID: "another customer outbid you for the machine",
    Reason.OUT_OF_CREDIT: "not enough credits",
    Reason.INTERNAL_ERROR: "a bug in Stationmaster; please report it",
}
"""What caused a failure, by its reason."""


def text_of_event(event: Event, job: Job, facts: Facts) -> MessageText | None:
    """The message to the job's owner about an event; None if the event is not worth a message."""
    write = _WRITERS.get(event.kind)
    if write is None:
        return None
    draft = write(event, job, facts)
    if draft is None:
        return None
    kind, lines = draft
    more = facts.link or f"stationmaster show {job.id} --events"
    return MessageText(kind=kind, text=_text_of(lines), priority=PRIORITIES[kind], more=f"More: {more}")


def text_of_alert(alert: Alert, job: Job | None) -> MessageText:
    """The message to the operators about an alert."""
    kind = alert.kind if alert.kind in PRIORITIES else "machine"
    title = _ALERT_TITLES.get(kind, "Attention needed")
    about = ["", f"Job: {job.spec.name} ({job.id})"] if job else [""]
    next_command = (
        f"stationmaster show {job.id} --events" if job else _NEXT_AFTER_ALERT.get(kind, "stationmaster doctor")
    )
    lines = [f"⚠️ {title}", *about, f"Issue: {alert.message}", "", f"Next: {next_command}"]
    return MessageText(kind=kind, text=_text_of(lines), priority=PRIORITIES[kind], more=f"More: {next_command}")


def _text_of(lines: Sequence[str]) -> str:
    """Each as one line, whatever a machine wrote into it: it can add no line such as `Next:`, and push none out."""
    return "\n".join(_shortened(words_of(line)) for line in lines)


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


_ALERT_TITLES = {
    "health": "Health check failed",
    "soft_limit": "Training takes longer than estimated",
    "silence": "Machine does not answer",
    "provisioning": "Machine is not ready",
    "release": "Could not release a machine",
    "low_credit": "Low credit at a provider",
    "not_served": "No worker serves the provider",
    "daily_cap": "Job waits: daily limit reached",
    "spending": "Machines cost more per hour than the limit",
    "settings": "Changed settings are invalid",
    "internal_error": "Internal error in Stationmaster",
    "machine": "A machine needs attention",
}
_NEXT_AFTER_ALERT = {
    "machine": "stationmaster instances",
    "spending": "stationmaster instances",
    "low_credit": "add credit at the provider",
    "not_served": "start a worker that has the provider's settings, or cancel the job",
}

_Draft = tuple[str, list[str]] | None
"""Kind and lines of a message; None for no message."""


def _start(event: Event, job: Job, _facts: Facts) -> _Draft:
    attempt = event.payload.get("attempt", 1)
    again = [f"Attempt: {attempt}"] if attempt > 1 else []
    return "start", ["🚂 Training started", "", f"Job: {job.spec.name}", f"Recipe: {job.spec.recipe}", *again]


def _milestone(event: Event, job: Job, _facts: Facts) -> _Draft:
    payload = event.payload
    lines = [f"📈 Training at {payload['percent']}%", "", f"Job: {job.spec.name}"]
    lines.append(f"Progress: {_progress(payload.get('step'), payload.get('total_steps'))}")
    if (loss := payload.get("loss")) is not None:
        lines.append(f"Loss: {loss:.4g}")
    if (left := payload.get("eta_seconds")) is not None:
        lines.append(f"Time left: about {format_duration(left)}")
    return "milestone", lines


def _epoch(event: Event, job: Job, _facts: Facts) -> _Draft:
    payload = event.payload
    lines = [f"📗 Epoch {payload['epoch']:g} completed", "", f"Job: {job.spec.name}"]
    if payload.get("step") is not None:
        lines.append(f"Progress: {_progress(payload['step'], payload.get('total_steps'))}")
    return "epoch", lines


def _stall(event: Event, job: Job, _facts: Facts) -> _Draft:
    payload = event.payload
    minutes = payload.get("grace_minutes", payload.get("graceMinutes"))  # the latter as older versions stored it
    ends = "The training is not stopped automatically: this job has alerts only."
    if minutes is not None:
        ends = f"Auto-terminating in {_number(minutes)} minutes unless progress resumes."
    return "stall", [
        "⚠️ Training Stall Detected",
        "",
        f"Job: {job.spec.name}",
        f"Progress: {_progress(payload.get('currentStep'), payload.get('totalSteps'))}",
        f"Issue: ETA not converging ({str(payload.get('reason') or 'flat').rstrip('.')})",
        "",
        ends,
        f"Latest checkpoint: {_checkpoint(payload.get('checkpointStep'))}",
    ]


def _stall_cleared(event: Event, job: Job, _facts: Facts) -> _Draft:
    payload = event.payload
    progress = _progress(payload.get("currentStep"), payload.get("totalSteps"))
    return "stall_cleared", ["✅ Progress resumed", "", f"Job: {job.spec.name}", f"Progress: {progress}"]


def _terminated(event: Event, job: Job, _facts: Facts) -> _Draft:
    payload = event.payload
    reason = TERMINATION_REASONS.get(str(payload.get("reason")), str(payload.get("reason")))
    step = payload.get("checkpointStep")
    upload = "Model will be uploaded as incomplete." if step is not None else "There is no model to upload."
    return "terminated", [
        "🛑 Training Terminated",
        "",
        f"Job: {job.spec.name}",
        f"Reason: {reason}",
        f"Final checkpoint: {_checkpoint(step)}",
        upload,
    ]


def _parked(event: Event, job: Job, _facts: Facts) -> _Draft:
    return "parked", [
        "⏸ Machine stopped with the model still on it",
        "",
        f"Job: {job.spec.name}",
        f"Issue: {event.payload.get('problem')}",
        "The GPU is no longer billed; the machine's disk still is.",
        f"The machine and the model are destroyed in {format_duration(event.payload['abandon_seconds'])}.",
        f"Retry the fetch: stationmaster stop {job.id}",
        f"Discard the model: stationmaster cancel {job.id}",
    ]


def _anomaly(event: Event, job: Job, _facts: Facts) -> _Draft:
    payload = event.payload
    if payload.get("reaction") == "note":
        return None
    then = "The training is being stopped." if payload.get("reaction") == "stop" else "The training keeps running."
    title = str(payload.get("anomaly")).replace("_", " ")
    return "anomaly", [
        f"⚠️ Anomaly detected: {title}",
        "",
        f"Job: {job.spec.name}",
        f"Issue: {payload.get('evidence')}",
        then,
        f"Next: stationmaster watch {job.id}",
    ]


def _outcome(event: Event, job: Job, facts: Facts) -> _Draft:
    outcome = Outcome(event.payload["outcome"])
    match outcome:
        case Outcome.COMPLETED:
            return "completed", ["✅ Training completed", "", f"Job: {job.spec.name}", *_results(event, job, facts)]
        case Outcome.INCOMPLETE:
            lines = ["🟡 Training ended early", "", f"Job: {job.spec.name}", *_why(event), *_results(event, job, facts)]
            return "incomplete", [*lines, f"Next: stationmaster retry {job.id}{' --resume' if facts.model else ''}"]
        case Outcome.CANCELLED:
            return "cancelled", ["⏹ Training cancelled", "", f"Job: {job.spec.name}", f"Cost: {_cost(facts)}"]
        case _:
            return "failed", _failed(event, job, facts)


def _settled(event: Event, job: Job, _facts: Facts) -> _Draft:
    return "settled", ["🧾 Credits settled", "", f"Job: {job.spec.name}", f"Credits: {event.payload.get('said')}"]


def _failed(event: Event, job: Job, facts: Facts) -> list[str]:
    cause = CAUSES.get(Reason(event.payload["reason"]), "unknown")
    before_login = event.payload["outcome"] == Outcome.FAILED_PROVISIONING
    return [
        "❌ Could not rent a machine" if before_login else "❌ Training failed",
        "",
        f"Job: {job.spec.name}",
        *_why(event),
        f"Cause: {cause}",
        f"Checkpoint: {facts.model or 'none'}",
        f"Cost: {_cost(facts)}",
        *_analysis(facts),
        f"Next: stationmaster {'retry' if before_login else 'logs'} {job.id}",
    ]


def _why(event: Event) -> list[str]:
    reason: Any = event.payload.get("reason")
    meaning = str(MEANINGS.get(reason, reason)).partition(";")[0]  # what was kept is in another line
    return [f"Reason: {event.payload.get('explanation') or meaning}"]


def _results(event: Event, job: Job, facts: Facts) -> list[str]:
    progress = job.progress
    lines = [f"Steps: {_progress(progress.step, progress.total_steps)}"] if progress.step is not None else []
    lines.append(f"Duration: {format_duration(event.at - job.created_at)}")
    if progress.loss is not None:
        lines.append(f"Final loss: {progress.loss:.4g}")
    lines.append(f"Model: {facts.model or 'none'}")
    lines += [f"Published: {link}" for link in facts.published]
    if facts.link:
        lines.append(f"Page: {facts.link}")
    return [*lines, f"Cost: {_cost(facts)}", *_analysis(facts)]


def _analysis(facts: Facts) -> list[str]:
    """What the analysis found, in one line; nothing where there is none."""
    if facts.health is None:
        return []
    headline = facts.health.headline
    return [f"Analysis: {facts.health.health.capitalize()}{f': {headline}' if headline else ''}"]


def _cost(facts: Facts) -> str:
    return format_dollars(facts.cost)


def _progress(step: Any, total: Any) -> str:
    """
    >>> _progress(230, 400), _progress(3500, 4000), _progress(7, None), _progress(None, 400)
    ('230/400 (57.5%)', '3500/4000 (87.5%)', '7/? (?%)', '0/400 (0%)')
    """
    done = 0 if step is None else step
    if not total:
        return f"{done:.0f}/? (?%)"
    return f"{done:.0f}/{total:.0f} ({_number(100 * done / total, 1)}%)"


def _checkpoint(step: Any) -> str:
    return "none" if step is None else f"step {step}"


def _number(value: float, decimals: int = 2) -> str:
    return f"{round(value, decimals):.12g}"


_WRITERS: Mapping[str, Callable[[Event, Job, Facts], _Draft]] = {
    "training_started": _start,
    "milestone": _milestone,
    "epoch_ended": _epoch,
    "stall_flagged": _stall,
    "stall_cleared": _stall_cleared,
    "terminated": _terminated,
    "anomaly": _anomaly,
    "machine_parked": _parked,
    "outcome": _outcome,
    "settled": _settled,
}

EVENT_KINDS = tuple(_WRITERS)
"""Kinds of events that may become a message to the job's owner."""
