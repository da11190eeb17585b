"""Why a step failed, in one line for people: how it ended, and the error in its log. Pure."""

from __future__ import annotations

import re
import signal
import unicodedata

from stationmaster.model import Job
from stationmaster.parsers.reader import LogReader
from stationmaster.remote.status import Status, StepStatus

_LONGEST_READ = 4000
_LONGEST_QUOTE = 300
_HOW = {
    "timeout": "exceeded its timeout",
    "missing_output": "did not create its expected files",
    "unknown_exit": "vanished; exit code unknown",
    "could_not_start": "could not be started",
    "out_of_memory": "exceeded the memory limit of its container",
}
_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # control characters, turned text, halves, line ends
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_URL_DETAILS = re.compile(r"(\bhttps?://)(?:[^\s/@'\"]{1,200}@)?([^\s?'\"]{0,500})(\?[^\s'\")]*)?")
_TOKEN = re.compile(
    r"\b(?:hf_|sk-|gh[opsu]_|github_pat_|glpat-|xox[abp]-|AKIA)[\w-]{8,}"
    r"|(?<=bearer )\S+|(?<=token=)\S+|(?<=key=)\S+|(?<=secret=)\S+|(?<=password=)\S+",
    re.IGNORECASE,
)


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


def quoted(text: str) -> str:
    """A machine's text as one short line, without control characters and without what may be a secret.

    >>> quoted("HTTPError: 401 for\\turl: https://me:pw@host/a?sig=x \\x1b[31mhf_abcdefghijkl")
    'HTTPError: 401 for url: https://host/a?… …'
    """
    plain = _ESCAPE.sub("", text[:_LONGEST_READ])
    shown = "".join(" " if unicodedata.category(letter) in _NOT_SHOWN else letter for letter in plain)
    line = _TOKEN.sub("…", _URL_DETAILS.sub(_without_details, " ".join(shown.split())))
    return line if len(line) <= _LONGEST_QUOTE else line[: _LONGEST_QUOTE - 1] + "…"


def _without_details(url: re.Match[str]) -> str:
    return f"{url[1]}{url[2]}{'?…' if url[3] else ''}"


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
