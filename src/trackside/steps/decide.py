"""Decide what an ended try counts as and what to do next. Pure: no clock, no files."""

from __future__ import annotations

from typing import NamedTuple, Tuple, Union

from trackside.machine.clock import Moment, is_before, seconds_between
from trackside.steps.plan import Plan, Step
from trackside.steps.tries import Exit, Facts, Stopping, StopRequest, Try, Verdict


class StartTry(NamedTuple):
    step: int
    number: int


class Watch(NamedTuple):
    """A try is running; nothing to do."""

    running: Try


class EndTry(NamedTuple):
    """A try is over its timeout or must stop: send the stop signal, and KILL once `force` is set."""

    running: Try
    why: str  # "stop" or "timeout"
    force: bool


class WaitBackoff(NamedTuple):
    step: int
    seconds: float


class WaitForSecrets(NamedTuple):
    names: Tuple[str, ...]


class Finished(NamedTuple):
    result: str  # "done", "failed" or "stopped"
    step: str | None
    exit_code: int | None
    at: float


Action = Union[StartTry, Watch, EndTry, WaitBackoff, WaitForSecrets, Finished]


class ExpectedFiles(NamedTuple):
    """The files that a try must write. `present`: each pattern has one; `whole`: there are some, all complete."""

    present: bool
    whole: bool


def decide(plan: Plan, facts: Facts) -> Action:
    """Return the next action for this plan. A step that is done never starts again."""
    for index, step in enumerate(plan.steps):
        tries = facts.tries[index]
        if not tries:
            return _begin(step, StartTry(step=index, number=1), facts)
        last = tries[-1]
        if last.verdict is None:
            return _watch(step, last, plan, facts)
        if last.verdict.result != "done" and not is_given_up(step, last):
            return _after_failure(step, last, last.verdict, facts)
    return Finished(result="done", step=None, exit_code=None, at=_last_end(facts))


def judge(ended: Exit, *, stop: StopRequest | None, stopping: Stopping | None, expected: ExpectedFiles) -> Verdict:
    """Return what an ended try counts as.

    One that ended before we asked keeps its own result. An unknown exit counts as done only if its expected files
    prove it; without expected files it counts as failed.
    """
    if stop is not None and not _ended_before(ended, stop.at):
        return _verdict(ended, "stopped", "stopped")
    if stopping is not None and stopping.why == "timeout" and not _ended_before(ended, stopping.at):
        return _verdict(ended, "failed", "timeout")
    if ended.could_not_start:
        return _verdict(ended, "failed", "could_not_start")
    if not ended.known:
        return _verdict(ended, "done", None) if expected.whole else _verdict(ended, "failed", "unknown_exit")
    if ended.out_of_memory:
        return _verdict(ended, "failed", "out_of_memory")
    if ended.code != 0:
        return _verdict(ended, "failed", "exit")
    return _verdict(ended, "done", None) if expected.present else _verdict(ended, "failed", "missing_output")


def is_given_up(step: Step, last: Try) -> bool:
    """Return whether the plan continues without this step: it is optional, and no further try follows."""
    failed = last.verdict is not None and last.verdict.result == "failed"
    return step.optional and failed and _is_last(step, last)


def secrets_needed(plan: Plan, facts: Facts) -> tuple[str, ...]:
    """Return the names of the secrets that later steps need and the supervisor does not have."""
    if isinstance(decide(plan, facts), Finished):
        return ()
    names = {
        name
        for index, step in enumerate(plan.steps)
        if not _is_done(facts.tries[index])
        for name in step.secrets
        if name not in facts.secrets_held
    }
    return tuple(sorted(names))


def _begin(step: Step, start: StartTry, facts: Facts) -> Action:
    if facts.stop is not None:
        return Finished(result="stopped", step=None, exit_code=None, at=facts.stop.at.wall)
    missing = tuple(sorted(name for name in step.secrets if name not in facts.secrets_held))
    return WaitForSecrets(names=missing) if missing else start


def _watch(step: Step, running: Try, plan: Plan, facts: Facts) -> Action:
    if facts.stop is not None:
        # `stop` does this itself; the supervisor completes it if that call was interrupted.
        waited = seconds_between(facts.stop.at, facts.now)
        return EndTry(running=running, why="stop", force=waited is not None and waited >= facts.stop.grace_seconds)
    if running.stopping is not None:
        waited = seconds_between(running.stopping.at, facts.now)
        return EndTry(running=running, why="timeout", force=waited is not None and waited >= plan.stop_grace_seconds)
    ran = seconds_between(running.started, facts.now)
    if step.timeout_seconds is not None and ran is not None and ran >= step.timeout_seconds:
        return EndTry(running=running, why="timeout", force=False)
    return Watch(running=running)


def _after_failure(step: Step, last: Try, verdict: Verdict, facts: Facts) -> Action:
    if verdict.result == "stopped":
        return Finished(result="stopped", step=step.name, exit_code=verdict.exit_code, at=verdict.ended.wall)
    if _is_last(step, last):
        return Finished(result="failed", step=step.name, exit_code=verdict.exit_code, at=verdict.ended.wall)
    if facts.stop is not None:
        return Finished(result="stopped", step=step.name, exit_code=verdict.exit_code, at=facts.stop.at.wall)
    waited = seconds_between(verdict.ended, facts.now)
    backoff = step.backoff_after(last.number)
    # Across a reboot the time is unknown: a reboot takes longer than most pauses, so continue.
    if waited is not None and waited < backoff:
        return WaitBackoff(step=last.step, seconds=backoff - waited)
    return _begin(step, StartTry(step=last.step, number=last.number + 1), facts)


def _is_last(step: Step, last: Try) -> bool:
    """Whether no try follows this one if it fails: none is left, or the next would fail in the same way."""
    return last.number >= step.tries or (last.verdict is not None and last.verdict.cannot_pass)


def _last_end(facts: Facts) -> float:
    return max(tries[-1].verdict.ended.wall for tries in facts.tries if tries and tries[-1].verdict is not None)


def _ended_before(ended: Exit, asked: Moment) -> bool:
    """The time of an unknown exit cannot be trusted; had it come before we asked, its verdict would be on disk."""
    return ended.known and is_before(ended.ended, asked)


def _verdict(ended: Exit, result: str, failure: str | None) -> Verdict:
    return Verdict(
        result=result,
        failure=failure,
        exit_code=ended.code,
        signal=ended.signal,
        exit_known=ended.known,
        ended=ended.ended,
    )


def _is_done(tries: tuple[Try, ...]) -> bool:
    return bool(tries) and tries[-1].verdict is not None and tries[-1].verdict.result == "done"
