"""One try of a step: its process, its exit, its verdict."""

from __future__ import annotations

from typing import Any, FrozenSet, Mapping, NamedTuple, Tuple

from trackside.machine.clock import Moment, moment_from_record
from trackside.machine.process import Process


class Exit(NamedTuple):
    """How a process ended. Not `known` when no shim recorded it (shim killed, machine rebooted)."""

    code: int | None
    signal: int | None
    known: bool
    could_not_start: bool
    ended: Moment
    out_of_memory: bool = False

    def as_record(self) -> dict[str, Any]:
        return {
            "exit_code": self.code,
            "signal": self.signal,
            "could_not_start": self.could_not_start,
            "out_of_memory": self.out_of_memory,
            **self.ended.as_record(),
        }


class Stopping(NamedTuple):
    """We are stopping this try: why, since when, and whether the signal was sent."""

    why: str  # "stop" or "timeout"
    at: Moment
    signalled: bool

    def as_record(self) -> dict[str, Any]:
        return {"why": self.why, "signalled": self.signalled, **self.at.as_record()}


class Verdict(NamedTuple):
    """What an ended try counts as; written once and never judged again."""

    result: str  # "done", "failed" or "stopped"
    failure: str | None
    exit_code: int | None
    signal: int | None
    exit_known: bool
    ended: Moment
    error: str | None = None  # the line of its log that names the error
    cannot_pass: bool = False  # every further try would fail in the same way

    def as_record(self) -> dict[str, Any]:
        return {
            "result": self.result,
            "failure": self.failure,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "exit_known": self.exit_known,
            "error": self.error,
            "cannot_pass": self.cannot_pass,
            **self.ended.as_record(),
        }


class StopRequest(NamedTuple):
    """A request to stop everything, with the grace period for a running step."""

    at: Moment
    grace_seconds: float

    def as_record(self) -> dict[str, Any]:
        return {"grace_seconds": self.grace_seconds, **self.at.as_record()}


class Try(NamedTuple):
    step: int
    number: int
    started: Moment
    process: Process | None
    stopping: Stopping | None
    verdict: Verdict | None  # None while it runs
    settled: bool  # the verdict is on disk

    @property
    def is_running(self) -> bool:
        return self.verdict is None


class Facts(NamedTuple):
    """Everything known at one moment; the next action follows from this and the plan alone."""

    now: Moment
    tries: Tuple[Tuple[Try, ...], ...]  # by step, in order of their numbers
    stop: StopRequest | None
    secrets_held: FrozenSet[str]


def exit_from_record(record: Mapping[str, Any] | None) -> Exit | None:
    ended = moment_from_record(record)
    if record is None or ended is None:
        return None
    return Exit(
        code=record.get("exit_code"),
        signal=record.get("signal"),
        known=True,
        could_not_start=bool(record.get("could_not_start")),
        ended=ended,
        out_of_memory=bool(record.get("out_of_memory")),
    )


def stopping_from_record(record: Mapping[str, Any] | None) -> Stopping | None:
    at = moment_from_record(record)
    if record is None or at is None:
        return None
    return Stopping(why=str(record.get("why")), at=at, signalled=bool(record.get("signalled")))


def stop_request_from_record(record: Mapping[str, Any] | None) -> StopRequest | None:
    at = moment_from_record(record)
    if record is None or at is None:
        return None
    return StopRequest(at=at, grace_seconds=float(record.get("grace_seconds", 0.0)))


def verdict_from_record(record: Mapping[str, Any] | None) -> Verdict | None:
    ended = moment_from_record(record)
    if record is None or ended is None:
        return None
    return Verdict(
        result=str(record.get("result")),
        failure=record.get("failure"),
        exit_code=record.get("exit_code"),
        signal=record.get("signal"),
        exit_known=bool(record.get("exit_known")),
        ended=ended,
        error=record.get("error"),
        cannot_pass=bool(record.get("cannot_pass")),
    )
