"""How an adopted training ended, as far as anybody here can know: its exit code went to whoever started it. Pure."""

from __future__ import annotations

from stationmaster.model import Job, Reason
from stationmaster.parsers.quotes import quoted
from stationmaster.remote.status import Status
from stationmaster.store.writes import NewEvent

_DONE_SHARE = 0.95  # of its steps: trainers do not log every step


def adopted_end(job: Job, status: Status) -> tuple[Reason, str | None]:
    """Reason and explanation of a training whose process is gone.

    It counts as finished if its newest model is whole, its log does not end with an exception, and the log does not
    show that steps were missing.
    """
    assert job.spec.adopted is not None
    gone = "its process is gone, and its exit code cannot be known" if job.spec.adopted.process else "it was let go"
    training = next((step for step in status.steps if step.training), None)
    if status.finished is None or status.finished.result != "done":
        error = None if training is None else training.error
        missing = f"no whole model was found below {job.spec.adopted.output}"
        why = f"its log ends with: {quoted(error)}" if error else missing
        return Reason.STEP_FAILED, f"{gone}; {why}"
    done, total = job.progress.step, job.progress.total_steps
    if done is not None and total and done < total * _DONE_SHARE:
        return Reason.STEP_FAILED, f"{gone}; its log ends at step {done} of {total}"
    return Reason.FINISHED, None


def adopted_end_event(job: Job, reason: Reason, explanation: str | None) -> NewEvent:
    payload = {"pid": job.spec.adopted and job.spec.adopted.pid, "reason": reason.value, "explanation": explanation}
    return NewEvent(kind="adopted_ended", payload=payload)
