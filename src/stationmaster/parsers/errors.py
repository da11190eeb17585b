"""Errors in a log: which lines tell one, what kind it is, and whether it ends the run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stationmaster.parsers.base import ErrorKind, Fault
from stationmaster.parsers.lines import Line

# First match wins: the more telling before the more general.
_KINDS: tuple[tuple[ErrorKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (ErrorKind.KILLED, r"\bsigkill\b|signal:? ?9\b|exit ?code:? *:? *(?:-9|137)\b|exit(?:ed)?(?: with)? (?:code|status) (?:-9|137)\b"
                           r"|\bkilled by signal: killed|oom[-_ ]kill|out of memory: killed process|signals\.sigkill|due to time limit"),
        (ErrorKind.DISK_FULL, r"no space left on device|storagefull|\berrno 28\b|disk quota exceeded|not enough (?:free )?disk space|disk (?:is )?full"),
        (ErrorKind.NAN_LOSS, r"loss (?:is|became|becomes|has become|was) (?:nan|inf|infinite)|(?:nan|inf|infinite)(?: or (?:nan|inf))? (?:loss|grad)|loss (?:became|is) (?:infinite|not finite)"
                             r"|(?:non-?finite|infinite|nan) (?:training )?(?:loss|gradient)|minimum loss scale reached"),
        (ErrorKind.OOM, r"outofmemoryerror|(?:cuda|hip|mps|xpu|gpu|vram)[^.\n]{0,40}out of memory|cuda error: out of memory|\bran out of (?:gpu |cuda |device )?memory"
                        r"|memory allocation failed with oom|\boom (?:during|when|in|on)\b|resource_?exhausted(?:error)?\b.{0,60}(?:oom|memory)|cublas_status_alloc_failed|cuda_error_out_of_memory|\bcuda oom\b"),
        (ErrorKind.NCCL, r"watchdog caught collective|nccl (?:error|operation|timeout|communicator)|nccl(?:system|internal|unhandledcuda|remote|invalid\w+)error|distbackenderror"
                         r"|collective operation timeout|\[rank \d+\].{0,40}timed out.{0,40}(?:allreduce|all_?gather|broadcast|barrier)"),
        (ErrorKind.AUTH, r"gated ?repo|gatedrepoerror|\b40[13] (?:client error|unauthorized|forbidden)|status(?: code)?:? 40[13]\b|http(?: error)? 40[13]\b|unauthori[sz]ed|invalid (?:user|access|api|auth)\w* ?(?:token|key|credentials)"
                         r"|invalid username or password|localtokennotfound|api[_ ]key (?:not configured|is invalid|must be)|access to model .{0,120}is restricted|\baccess ?denied\b.{0,80}(?:s3|bucket|request|operation)|token .{0,30}(?:is not valid|is invalid|expired)|authentication (?:failed|error)|authenticationerror|permission_?denied_?error.{0,40}api"),
        (ErrorKind.CUDA, r"\bcuda error\b|cudaerror|cuda (?:driver|runtime|failure|initialization)|no nvidia driver|no cuda-capable|no cuda gpus|device-side assert|illegal memory access|unspecified launch failure|cublas_status|cudnn_status|cudnn error"
                         r"|torch not compiled with cuda|not compiled with cuda|acceleratorerror|\bnvml\b.{0,40}(?:error|fail|mismatch)|hip error|misaligned address|uncorrectable ecc|gpu (?:has fallen off|is lost)|device kernel image is invalid|no kernel image"
                         r"|indexkernel\.cu.{0,160}assertion"),
        (ErrorKind.CONFIG, r"unrecognized arguments?|arguments? (?:is|are) required|following arguments are required|error: argument |invalid choice|not used by the hfargumentparser|hydra|omegaconf|configattributeerror|configkeyerror|config(?:uration)?(?:error|invalid|exception)"
                           r"|(?:could not|cannot|can't|unable to) (?:find|read|open|parse|load) (?:the )?config|config(?:uration)? file .{0,120}(?:not found|does not exist|missing)|(?:unknown|unexpected|invalid|missing|unsupported|bad) (?:config\w*|option|key|keys|field|parameter|argument|setting|hyperparameter)s?\b(?! to forward)"
                           r"|scannererror|yaml\.\w+\.\w*error|yamlerror|parsererror: (?:while|expected)|tomldecodeerror|validationerrors?\b|\d+ validation errors?|no such (?:option|command)|no such file or directory:? .{0,200}\.(?:ya?ml|toml|ini|cfg)\b|(?:filenotfounderror|not found|does not exist).{0,200}\.(?:ya?ml|toml|ini|cfg)\b|mutually exclusive|must (?:be specified|specify|provide|be provided|be set)\b"),
        (ErrorKind.MISSING_FILE, r"filenotfounderror|no such file or directory|\berrno 2\b|does not contain a|does not appear to have|(?:file|path|folder|directory|checkpoint|model|dataset|weights?)\b.{0,160}(?:does not exist|doesn't exist|not found|is missing|could not be found|cannot be found|do not exist)"
                                 r"|(?:does not exist|doesn't exist).{0,40}(?:file|path|directory|hub)|no (?:checkpoint|file|files|model|dataset|images?|data|weights?|training data|valid checkpoint|data files)s?(?: \w+){0,3} found|no file named|is not a local folder|not a valid model identifier|entrynotfounderror|repositorynotfounderror|localentrynotfounderror|datasetnotfounderror|couldn't find|could not find|cannot find|can't (?:find|load)|unable to (?:find|locate|open)|404 client error|(?<!module)notfounderror|no data found"),
    )
)  # fmt: skip

_EXCEPTION = re.compile(
    r"(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Failure|Unavailable|Timeout|NotFound\w*|DoesNotExist|Abort|GeneratorExit|Expired)(?::|$)"
)
_ANY_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: |:?$)")
_TRACEBACK = "traceback (most recent call last)"
_CHAIN = ("during handling of the above exception", "the above exception was the direct cause")
_BOX = tuple("│╭╰┃┏┗┌└├─❱")
_LAUNCHER = re.compile(
    r"childfailederror|calledprocesserror|failed \(exitcode: |^\S+\.py failed$|returned non-zero exit status|\bfailures?:$|processexitedexception|processraisedexception|exits with return code|sigterm|signal 15|closing signal",
    re.IGNORECASE,
)
_BARE_KILLED = re.compile(
    r"^(?:.*\b\d+ )?Killed(?: .*)?$|^Killed(?::? 9)?$|\.sh: line \d+: +\d+ Killed\b|slurmstepd: error: .*(?:oom_kill|DUE TO TIME LIMIT|CANCELLED)"
)
_CRASHED = re.compile(
    r"^(?:.*: line \d+: +\d+ )?(?:Segmentation fault|Aborted|Bus error|Illegal instruction|Floating point exception)(?: \(core dumped\))?",
    re.IGNORECASE,
)
_SURVIVED = re.compile(
    r"\bskip|recover|retry|retrying|continu|ignor|will proceed|attempting|falling back|fallback|trying again",
    re.IGNORECASE,
)
_OUTRIGHT = frozenset({ErrorKind.OOM, ErrorKind.CUDA, ErrorKind.NCCL, ErrorKind.KILLED, ErrorKind.DISK_FULL})
_BACKGROUND = re.compile(r"^exception (?:in thread|ignored in)|^--- logging error", re.IGNORECASE)
_USAGE = re.compile(r"^[\w./-]+: error: ")
_ADVICE = re.compile(
    r"^(?:if you|to avoid|try|consider|see|note|tip|hint|please|make sure|for more|for debugging|compile with|cuda kernel errors)\b",
    re.IGNORECASE,
)
_ERROR_WORD = re.compile(
    r"^(?:\[?(?:fatal|critical|error)\]?\b ?:|fatal:|error[: ]+(?:while|during|in|running|loading|when|occurred)|an error occurred|unhandled exception|uncaught exception)",
    re.IGNORECASE,
)
_NOT_ERRORS = re.compile(
    r"error[- ]?(?:rate|bars?|handling|reporting|correct)|mean (?:absolute|squared) error|0 errors?\b|no errors?\b",
    re.IGNORECASE,
)
_HINTS = re.compile(
    r"error|exception|traceback|killed|fail|memory|oom|cuda|nccl|nan|infinit|space left|fatal|critical|fault|abort|sig|exit|gated|40[13]|denied|unauthor|interrupt|driver|not found|missing|│|╭|╰|abandon|during handling|the above",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What a line means for error reading."""

    fault: Fault | None = None
    opens_traceback: bool = False
    closes_traceback: bool = False
    background: bool = False
    swallow: bool = False  # nothing else is to be read from this line


_NOTHING = Notice()


def kind_of(message: str) -> ErrorKind:
    """The kind of problem that a message names.

    >>> kind_of("RuntimeError: CUDA error: device-side assert triggered").value
    'cuda'
    """
    return next((kind for kind, pattern in _KINDS if pattern.search(message)), ErrorKind.OTHER)


def notice(line: Line, *, in_traceback: bool, background: bool) -> Notice:
    """Whether a line tells an error, is part of a traceback, or neither."""
    text = line.lower
    if in_traceback:
        return _inside_traceback(line, background=background)
    if not line.message or (line.level not in ("error", "critical") and not _HINTS.search(text)):
        return _NOTHING
    if _TRACEBACK in text:
        return Notice(opens_traceback=True, background=background, swallow=True)
    if line.message.startswith(_BOX) or text.startswith(_CHAIN):
        return Notice(swallow=True, opens_traceback=text.startswith(_CHAIN))
    if _BACKGROUND.match(line.message):
        return Notice(background=True, swallow=True)
    fault = _outside_traceback(line)
    return Notice(fault=fault, swallow=True) if fault else _NOTHING


def _inside_traceback(line: Line, *, background: bool) -> Notice:
    text = line.lower
    if not line.message or _TRACEBACK in text or text.startswith(_CHAIN):
        return Notice(swallow=True, opens_traceback=True, background=background)
    if line.message.startswith(_BOX) or set(line.message) <= set("~^ "):
        return Notice(swallow=True, opens_traceback=True, background=background)
    if _EXCEPTION.match(line.message) or (line.indent == 0 and _ANY_EXCEPTION.match(line.message)):
        return Notice(fault=_exception(line, background=background), closes_traceback=True, swallow=True)
    if line.indent or line.message.startswith("File "):
        return Notice(swallow=True, opens_traceback=True, background=background)
    return Notice(closes_traceback=True)


def _exception(line: Line, *, background: bool) -> Fault:
    launcher = _LAUNCHER.search(line.message) is not None
    kind = kind_of(line.message)
    return Fault(kind=kind, message=line.message, fatal=not background, launcher=launcher and kind == ErrorKind.OTHER)


def _outside_traceback(line: Line) -> Fault | None:
    message, level = line.message, line.level
    if level in ("warning", "info", "debug") and not _EXCEPTION.match(message):
        return _logged_fatal(line) if level == "info" else None
    if _NOT_ERRORS.search(message) or _ADVICE.match(message):
        return None
    kind = kind_of(message)
    if _EXCEPTION.match(message) and not message.startswith(("except", "raise")):
        fatal = level != "warning" and _SURVIVED.search(message) is None
        return Fault(
            kind=kind,
            message=message,
            fatal=fatal,
            launcher=kind == ErrorKind.OTHER and _LAUNCHER.search(message) is not None,
        )
    if _BARE_KILLED.search(message) or (kind == ErrorKind.KILLED):
        return Fault(kind=ErrorKind.KILLED, message=message, fatal=True)
    if _CRASHED.match(message):
        return Fault(kind=ErrorKind.OTHER, message=message, fatal=True)
    if _LAUNCHER.search(message):
        is_failure = "sig" not in line.lower and "closing" not in line.lower
        return Fault(kind=kind, message=message, fatal=True, launcher=True) if is_failure else None
    if _USAGE.match(message):
        return Fault(kind=kind if kind != ErrorKind.OTHER else ErrorKind.CONFIG, message=message, fatal=True)
    return _told_in_words(line, kind)


def _told_in_words(line: Line, kind: ErrorKind) -> Fault | None:
    """An error that is not a Python exception: a log record or a sentence."""
    message, level = line.message, line.level
    survived = _SURVIVED.search(message) is not None
    if kind in _OUTRIGHT or kind == ErrorKind.NAN_LOSS:
        if line.indent and level is None and kind != ErrorKind.NCCL and not _ERROR_WORD.match(message):
            return None  # a line of source code or an explanation below an error
        fatal = not survived and (
            kind != ErrorKind.NAN_LOSS
            or re.search(r"stop|abort|exit|terminat|rais", message, re.IGNORECASE) is not None
        )
        return Fault(kind=kind, message=message, fatal=fatal)
    if level in ("error", "critical"):
        return Fault(kind=kind, message=message, fatal=level == "critical" and not survived)
    if _ERROR_WORD.match(message):
        return Fault(
            kind=kind,
            message=message,
            fatal=(not survived and kind != ErrorKind.OTHER) or message.lower().startswith("fatal"),
        )
    if kind == ErrorKind.AUTH and line.indent == 0 and re.search(r"client error|gated repo|gatedrepo", line.lower):
        return Fault(kind=kind, message=message, fatal=True)
    return None


def _logged_fatal(line: Line) -> Fault | None:
    """Launchers report a killed child at info level."""
    kind = kind_of(line.message)
    if kind == ErrorKind.KILLED:
        return Fault(kind=kind, message=line.message, fatal=True)
    return None
