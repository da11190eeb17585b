"""The words of every message: an event or an alert in, plain text out. Pure; nothing is escaped here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.durations import format_duration
from stationmaster.model import Alert, Event, Job, Outcome, Reason
from stationmaster.money import ZERO, MicroDollars, format_dollars
from stationmaster.notify.base import Priority
from stationmaster.notify.markup import clean


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a message tells beyond its event."""

    cost: MicroDollars = ZERO
    model: str | None = None  # where the best model lies
    model_step: int | None = None
    published: tuple[str, ...] = ()  # where else the model can be had
    link: str | None = None  # the job's page, where there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A message before it is addressed."""

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
    "message": Priority.NORMAL,  # somebody's own words
}
"""Every kind of message there is; each can be switched off by its name."""

TERMINATION_REASONS: Mapping[str, str] = {
    Reason.STALLED: "Stall detected, grace period expired",
    Reason.ANOMALY: "Something was wrong with the training",
    Reason.HARD_LIMIT: "The time or money limit was reached",
    Reason.MACHINE_STOPPED: "The machine was stopped",
}

FAULTS: Mapping[Reason, str] = {
    Reason.STEP_FAILED: "the training's own command; its log says more",
    Reason.NO_MODEL: "the training ended without leaving a model; its log says more",
    Reason.NO_OFFER: "nobody's: no machine that fits was for rent",
    Reason.ACCESS_REFUSED: "the provider does not accept the key that is set up",
    Reason.NO_PROVIDER_CREDIT: "the provider's account has too little credit",
    Reason.MACHINE_NOT_READY: "the rented machine's",
    Reason.PREFLIGHT_FAILED: "the rented machine's",
    Reason.TRANSFER_FAILED: "the way to the rented machine",
    Reason.MACHINE_LOST: "the rented machine's",
    Reason.OUTBID: "nobody's: somebody bid more for the machine",
    Reason.OUT_OF_CREDIT: "the credits did not suffice",
    Reason.INTERNAL_ERROR: "Stationmaster's; please report it",
}
"""Whose fault a failure was, by its reason."""


def words_of(event: Event, job: Job, facts: Facts) -> Words | None:
    """What the owner of a job is told of an event; None when it is not worth a word."""
    write = _WRITERS.get(event.kind)
    if write is None:
        return None
    written = write(event, job, facts)
    if written is None:
        return None
    kind, lines = written
    more = facts.link or f"stationmaster show {job.id} --events"
    return Words(kind=kind, text=clean("\n".join(lines)), priority=PRIORITIES[kind], more=f"More: {more}")


def words_of_alert(alert: Alert, job: Job | None) -> Words:
    """What operators are told of an alert."""
    kind = alert.kind if alert.kind in PRIORITIES else "machine"
    title = _ALERT_TITLES.get(kind, "Something needs a look")
    about = ["", f"Job: {_name(job)} ({job.id})"] if job else [""]
    next_command = (
        f"stationmaster show {job.id} --events" if job else _NEXT_AFTER_ALERT.get(kind, "stationmaster doctor")
    )
    lines = [f"⚠️ {title}", *about, f"Issue: {alert.message}", "", f"Next: {next_command}"]
    return Words(kind=kind, text=clean("\n".join(lines)), priority=PRIORITIES[kind], more=f"More: {next_command}")


_ALERT_TITLES = {
    "health": "Health Check Failed",
    "soft_limit": "Training Takes Longer Than Expected",
    "silence": "Machine Does Not Answer",
    "provisioning": "Machine Is Not Ready",
    "release": "Machine Could Not Be Released",
    "low_credit": "Credit Is Low",
    "daily_cap": "Job Waits for the Daily Cap",
    "spending": "Machines Cost More Than Expected",
    "settings": "Changed Settings Cannot Be Used",
    "internal_error": "Stationmaster Tripped",
    "machine": "Machine Needs a Look",
}
_NEXT_AFTER_ALERT = {
    "machine": "stationmaster instances",
    "spending": "stationmaster instances",
    "low_credit": "add credit at the provider",
}

Written = tuple[str, list[str]] | None


def _start(event: Event, job: Job, _facts: Facts) -> Written:
    attempt = event.payload.get("attempt", 1)
    again = [f"Attempt: {attempt}"] if attempt > 1 else []
    return "start", ["🚂 Training Started", "", f"Job: {_name(job)}", f"Recipe: {job.spec.recipe}", *again]


def _milestone(event: Event, job: Job, _facts: Facts) -> Written:
    payload = event.payload
    lines = [f"📈 Training at {payload['percent']}%", "", f"Job: {_name(job)}"]
    lines.append(f"Progress: {_progress(payload.get('step'), payload.get('total_steps'))}")
    if (loss := payload.get("loss")) is not None:
        lines.append(f"Loss: {loss:.4g}")
    if (left := payload.get("eta_seconds")) is not None:
        lines.append(f"Time left: about {format_duration(left)}")
    return "milestone", lines


def _epoch(event: Event, job: Job, _facts: Facts) -> Written:
    payload = event.payload
    lines = ["📗 Epoch Completed", "", f"Job: {_name(job)}", f"Epoch {payload['epoch']:g} is complete."]
    if payload.get("step") is not None:
        lines.append(f"Progress: {_progress(payload['step'], payload.get('total_steps'))}")
    return "epoch", lines


def _stall(event: Event, job: Job, _facts: Facts) -> Written:
    payload = event.payload
    minutes = payload.get("graceMinutes")
    ends = "Nothing is ended automatically: this job is set to alerts only."
    if minutes is not None:
        ends = f"Auto-terminating in {_number(minutes)} minutes unless progress resumes."
    return "stall", [
        "⚠️ Training Stall Detected",
        "",
        f"Job: {_name(job)}",
        f"Progress: {_progress(payload.get('currentStep'), payload.get('totalSteps'))}",
        f"Issue: ETA not converging ({str(payload.get('reason') or 'flat').rstrip('.')})",
        "",
        ends,
        f"Latest checkpoint: {_checkpoint(payload.get('checkpointStep'))}",
    ]


def _stall_cleared(event: Event, job: Job, _facts: Facts) -> Written:
    payload = event.payload
    progress = _progress(payload.get("currentStep"), payload.get("totalSteps"))
    return "stall_cleared", ["✅ Training Goes On", "", f"Job: {_name(job)}", f"Progress: {progress}"]


def _terminated(event: Event, job: Job, _facts: Facts) -> Written:
    payload = event.payload
    reason = TERMINATION_REASONS.get(str(payload.get("reason")), str(payload.get("reason")))
    step = payload.get("checkpointStep")
    upload = "Model will be uploaded as incomplete." if step is not None else "There is no model to upload."
    return "terminated", [
        "🛑 Training Terminated",
        "",
        f"Job: {_name(job)}",
        f"Reason: {reason}",
        f"Final checkpoint: {_checkpoint(step)}",
        upload,
    ]


def _parked(event: Event, job: Job, _facts: Facts) -> Written:
    return "parked", [
        "⏸ Model Waits on a Stopped Machine",
        "",
        f"Job: {_name(job)}",
        f"Issue: {event.payload.get('problem')}",
        "The GPU costs nothing any more, the machine's disk does.",
        f"Machine and model are destroyed in {format_duration(event.payload['abandon_seconds'])}.",
        f"Try once more: stationmaster stop {job.id}",
        f"Give the model up: stationmaster cancel {job.id}",
    ]


def _anomaly(event: Event, job: Job, _facts: Facts) -> Written:
    payload = event.payload
    if payload.get("reaction") == "note":
        return None
    then = "The training is being ended." if payload.get("reaction") == "stop" else "The training goes on."
    title = str(payload.get("anomaly")).replace("_", " ")
    return "anomaly", [
        f"⚠️ Training Looks Wrong: {title}",
        "",
        f"Job: {_name(job)}",
        f"Issue: {payload.get('evidence')}",
        then,
        f"Next: stationmaster watch {job.id}",
    ]


def _outcome(event: Event, job: Job, facts: Facts) -> Written:
    outcome = Outcome(event.payload["outcome"])
    match outcome:
        case Outcome.COMPLETED:
            return "completed", ["✅ Training Completed", "", f"Job: {_name(job)}", *_results(event, job, facts)]
        case Outcome.INCOMPLETE:
            lines = ["🟡 Training Ended Early", "", f"Job: {_name(job)}", *_why(event), *_results(event, job, facts)]
            return "incomplete", [*lines, f"Next: stationmaster retry {job.id}{' --resume' if facts.model else ''}"]
        case Outcome.CANCELLED:
            return "cancelled", ["⏹ Training Cancelled", "", f"Job: {_name(job)}", f"Cost: {_cost(facts)}"]
        case _:
            return "failed", _failed(event, job, facts)


def _settled(event: Event, job: Job, _facts: Facts) -> Written:
    return "settled", ["🧾 Credits Settled", "", f"Job: {_name(job)}", f"Credits: {event.payload.get('said')}"]


def _failed(event: Event, job: Job, facts: Facts) -> list[str]:
    fault = FAULTS.get(Reason(event.payload["reason"]), "unknown")
    before_login = event.payload["outcome"] == Outcome.FAILED_PROVISIONING
    return [
        "❌ Training Failed" if not before_login else "❌ No Machine Could Be Had",
        "",
        f"Job: {_name(job)}",
        *_why(event),
        f"Fault: {fault}",
        f"Checkpoint: {'kept: ' + facts.model if facts.model else 'none was saved'}",
        f"Cost: {_cost(facts)}",
        f"Next: stationmaster {'retry' if before_login else 'logs'} {job.id}",
    ]


def _why(event: Event) -> list[str]:
    words = event.payload.get("explanation") or event.payload.get("reason")
    return [f"Reason: {words}"]


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
    return [*lines, f"Cost: {_cost(facts)}"]


def _cost(facts: Facts) -> str:
    return format_dollars(facts.cost)


def _name(job: Job) -> str:
    """A name stays on its line: it must not be able to write lines of its own."""
    return " ".join(job.spec.name.split())


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


_WRITERS: Mapping[str, Callable[[Event, Job, Facts], Written]] = {
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

TOLD_EVENTS = tuple(_WRITERS)
"""Kinds of events that may become a message to a job's owner."""
