"""Errors in a log: which lines report one, and whether it ends the run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stationmaster.parsers.base import ErrorKind, Fault, any_of
from stationmaster.parsers.error_kinds import kind_of
from stationmaster.parsers.lines import Line

_TRACEBACK = "traceback (most recent call last)"
_CHAIN = ("during handling of the above exception", "the above exception was the direct cause")
_BOX = tuple("│╭╰┃┏┗┌└├─❱")
_EXCEPTION = re.compile(
    r"(?:\w+\.){0,12}(?:\w+Error|\w*Exception|KeyboardInterrupt|SystemExit|StopIteration)"
    r"(?:$|:(?! *[-+]?\d*\.\d))"  # a number after it: a metric such as MeanSquaredError
)
_LAST_LINE = re.compile(r"(?:[A-Za-z_]\w*\.){0,12}[A-Za-z_]\w*(?:: |:?$)")
_BACKGROUND = any_of(r"^exception (?:in thread|ignored in)", r"^--- logging error")
# What wrappers print when the process they started has failed: seldom the cause.
_LAUNCHER = any_of(
    r"childfailederror|calledprocesserror|processexitedexception|processraisedexception",
    r"failed \(exitcode: ",
    r"^\S+ failed$",
    r"returned non-zero exit status",
    r"exits with return code",
    r"^(?:srun|slurmstepd|torchrun|mpirun|accelerate): error: ",
)
_TEARDOWN = any_of(r"sigterm|signal 15|closing signal|destroy_process_group")
_KILLED = re.compile(
    r"^(?:.{0,200}\b\d+ )?Killed(?: .*)?$|^Killed: ?9|: line \d+: +\d+ Killed\b|: Killed$|task \d+: Out Of Memory"
    r"|已杀死$|^(?:Getötet|Tué)$"  # as a shell prints it in Chinese, German, French
    r"|slurmstepd: error: .{0,200}(?:oom_kill|DUE TO TIME LIMIT|CANCELLED)"
)
_CRASHED = any_of(
    r"^(?:.{0,200}: line \d+: +\d+ )?"
    r"(?:segmentation fault|aborted|bus error|illegal instruction|floating point exception)\b(?: +\(core dumped\)|$)",
)
_SURVIVED = any_of(
    r"\bskip|recover|\bretry|continu|\bignor|will proceed|attempting|falling back|fallback|trying again|\busing cpu\b",
)
_ENDS_THE_RUN = any_of(r"stop|abort|exit|terminat|rais|became|error|\bending\b")
_SYSTEM_ERROR = any_of(r"\[errno \d+\]", r": command not found$")
_USAGE = re.compile(r"[\w./-]{1,80}: error: ")
_ADVICE = any_of(
    r"^(?:if you|to avoid|try|consider|see|note|tip|hint|please|make sure|for more|for debugging|compile with"
    r"|cuda kernel errors)\b",
)
_REPORTS_AN_ERROR = any_of(
    r"^\[?(?:fatal|critical|error)\]? ?:",
    r"^error (?:while|during|in|running|loading|when|occurred)",
    r"^(?:an error occurred|unhandled exception|uncaught exception)",
)
_NO_ERRORS = any_of(
    r"error[- ]?(?:rate|bars?|handling|reporting|correct)",
    r"mean (?:absolute|squared) error",
    r"\b(?:0|no) errors?\b",
)
_SPECULATION = any_of(
    r"warning:", r"\b(?:may|might|can) (?:lead|cause|result|run)\b", r"\bto (?:avoid|prevent|reduce)\b"
)
_REFUSED = any_of(r"client error|gated repo")
#: Plain texts, because most lines have none of them and looking for these is quicker than for patterns.
HINTS = (
    *("error", "exception", "traceback", "kill", "fail", "memory", "oom", "cuda", "nccl", "nan", "infinit", "fatal"),
    *("critical", "fault", "abort", "sig", "exit", "gated", "401", "403", "denied", "unauthor", "interrupt", "driver"),
    *(
        "missing",
        "assert",
        "timeout",
        "space left",
        "not found",
        "bus error",
        "handling of the above",
        "the above",
        "errno",
        "已杀死",
        "getötet",
        "tué",
    ),
)
_OUTRIGHT = frozenset({ErrorKind.OOM, ErrorKind.CUDA, ErrorKind.NCCL, ErrorKind.KILLED, ErrorKind.DISK_FULL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a line means for the reading of errors."""

    fault: Fault | None = None
    in_traceback: bool = False  # the next line belongs to one
    background: bool = False  # it is a thread's or a logger's, not the run's
    swallow: bool = False  # nothing else is to be read from this line


_NOTHING = Notice()


def notice(line: Line, *, in_traceback: bool, background: bool) -> Notice:
    """Whether a line reports an error, is part of a traceback, or neither."""
    if in_traceback:
        return _inside_traceback(line, background=background)
    if line.message.startswith('File "') and ", line " in line.message:  # its beginning is not in this log
        return Notice(in_traceback=True, background=background, swallow=True)
    is_logged_error = line.level in ("error", "critical")
    if not line.message or not (is_logged_error or line.message.startswith(_BOX) or _has_hint(line.lower)):
        return _NOTHING
    if _TRACEBACK in line.lower or line.lower.startswith(_CHAIN):
        return Notice(in_traceback=True, background=background, swallow=True)
    if line.message.startswith(_BOX):
        return Notice(swallow=True)
    if _BACKGROUND.match(line.message):
        return Notice(background=True, swallow=True)
    fault = _outside_traceback(line)
    return Notice(fault=fault, swallow=True) if fault else _NOTHING


def _has_hint(text: str) -> bool:
    for hint in HINTS:  # noqa: SIM110 (not a generator: every line comes here)
        if hint in text:
            return True
    return False


def _inside_traceback(line: Line, *, background: bool) -> Notice:
    goes_on = Notice(swallow=True, in_traceback=True, background=background)
    if not line.message or _TRACEBACK in line.lower or line.lower.startswith(_CHAIN):
        return goes_on
    if line.message.startswith((*_BOX, "File ")) or not line.message.strip("~^ "):
        return goes_on
    if _EXCEPTION.match(line.message) or (line.indent == 0 and _LAST_LINE.match(line.message)):
        return Notice(fault=_exception(line, fatal=not background), swallow=True)
    return goes_on if line.indent else _NOTHING


def _exception(line: Line, *, fatal: bool) -> Fault:
    kind = kind_of(line.message)
    wraps = kind == ErrorKind.OTHER and _LAUNCHER.search(line.message) is not None
    return Fault(kind=kind, message=line.message.rstrip(": "), fatal=fatal, launcher=wraps)


def _outside_traceback(line: Line) -> Fault | None:
    message = line.message
    if _NO_ERRORS.search(message) or _ADVICE.match(message) or _TEARDOWN.search(message):
        return None
    if _EXCEPTION.match(message):
        return _exception(line, fatal=line.level != "warning" and not _SURVIVED.search(message))
    kind = kind_of(message)
    if line.level not in ("warning", "debug") and (kind == ErrorKind.KILLED or _KILLED.search(message)):
        return Fault(kind=ErrorKind.KILLED, message=message, fatal=True)
    if line.level == "warning" and kind == ErrorKind.OOM and _SURVIVED.search(message):
        return Fault(kind=kind, message=message, fatal=False)
    if line.level in ("warning", "info", "debug"):
        return None
    if _CRASHED.match(message):
        return Fault(kind=ErrorKind.OTHER, message=message, fatal=True)
    if _LAUNCHER.search(message):
        return Fault(kind=kind, message=message, fatal=True, launcher=True)
    if _USAGE.match(message):
        return Fault(kind=ErrorKind.CONFIG if kind == ErrorKind.OTHER else kind, message=message, fatal=True)
    return _reported_in_words(line, kind)


def _reported_in_words(line: Line, kind: ErrorKind) -> Fault | None:
    """An error that is not a Python exception: a log record or a sentence."""
    survived = _SURVIVED.search(line.message) is not None
    is_logged = line.level is not None
    if kind == ErrorKind.NAN_LOSS:
        fatal = not survived and _ENDS_THE_RUN.search(line.message) is not None
        return Fault(kind=kind, message=line.message, fatal=fatal)
    if kind in _OUTRIGHT and (is_logged or line.indent == 0 or _REPORTS_AN_ERROR.match(line.message)):
        if _SPECULATION.search(line.message):
            return None
        return Fault(kind=kind, message=line.message, fatal=not survived)
    if line.level in ("error", "critical"):
        return Fault(kind=kind, message=line.message, fatal=line.level == "critical" and not survived)
    if _REPORTS_AN_ERROR.match(line.message):
        fatal = line.lower.startswith("fatal") or (kind != ErrorKind.OTHER and not survived)
        return Fault(kind=kind, message=line.message, fatal=fatal)
    refused = kind == ErrorKind.AUTH and _REFUSED.search(line.message) is not None
    if line.indent == 0 and (refused or _SYSTEM_ERROR.search(line.message)):
        return Fault(kind=kind, message=line.message, fatal=not survived)
    return None
