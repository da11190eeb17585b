"""Why a step failed, in one line for people: how it ended, and the error in its log. Pure."""

from __future__ import annotations

import signal

from stationmaster.model import Job
from stationmaster.parsers.quotes import quoted
from stationmaster.parsers.reader import LogReader
from stationmaster.remote.status import Status, StepStatus

_HOW = {
    "timeout": "exceeded its timeout",
    "missing_output": "did not create its expected files",
    "unknown_exit": "vanished; exit code unknown",
    "could_not_start": "could not be started",
    "out_of_memory": "exceeded the memory limit of its container",
}


def failure_explanation(job: Job, status: Status) -> str:
    """How the failed step ended. It is shown in terminals and messages, so the machine's text is cleaned."""
    step = _failed_step(status)
    if step is None:
        return "a step failed"
    quote = quoted(step.error or error_in_log(job, step) or "")
    how = f"step {step.name} {_how(step)} (try {step.try_number})"
    why = f": {quote}" if quote else "; see its log"
    return how + why + ("; not retried, it would fail again" if step.cannot_pass else "")


def error_in_log(job: Job, step: StepStatus) -> str | None:
    """The error that the log reader found in this step's log: a fatal one, or else the last one."""
    if job.watching.reader is None or job.watching.error_step != step.index:
        return None
    errors = LogReader.restore(job.watching.reader).summary().errors
    fatal = [error for error in errors if error.fatal]
    others = errors if step.failure == "exit" else ()
    return next((error.message for error in reversed(fatal or others)), None)


def _failed_step(status: Status) -> StepStatus | None:
    """The step that ended the plan: a step that is allowed to fail may have failed before it."""
    failed = [step for step in status.steps if step.state == "failed"]
    named = [step for step in failed if status.finished and step.name == status.finished.step]
    return next(iter([*named, *failed]), None)


def _how(step: StepStatus) -> str:
    if step.failure in _HOW:
        return _HOW[step.failure]
    if step.signal is not None:
        return f"was killed by {_signal_name(step.signal)}"
    return f"failed with exit code {step.exit_code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
