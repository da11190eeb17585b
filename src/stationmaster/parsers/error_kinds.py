"""The kinds of problems and the texts by which they are recognised."""

from __future__ import annotations

import re

from stationmaster.parsers.base import ErrorKind, any_of

_CONFIG_FILE = r".{0,200}\.(?:ya?ml|toml|ini|cfg)\b"
_THING = r"(?:file|path|folder|directory|checkpoint|model|dataset|weights?)"
_ABSENT = r"(?:does not exist|doesn't exist|not found|is missing|could not be found|cannot be found|do not exist)"

#: First match wins: the more specific before the more general.
KINDS: tuple[tuple[ErrorKind, re.Pattern[str]], ...] = (
    (
        ErrorKind.KILLED,
        any_of(
            r"\bsigkill\b",
            r"signal:? ?9\b",
            r"exit ?code:? *:? *(?:-9|137)\b",
            r"exit(?:ed)?(?: with)? (?:code|status) (?:-9|137)\b",
            r"return ?code(?: [=:] ?|[=: ] ?)(?:-9|137)\b",
            r"killed by signal: killed",
            r"oom[-_ ]kill",
            r"out of memory: killed process",
            r"due to time limit",
        ),
    ),
    (
        ErrorKind.DISK_FULL,
        any_of(
            r"no space left on device",
            r"storagefull",
            r"\berrno 28\b",
            r"disk quota exceeded",
            r"not enough (?:free )?disk space",
            r"\bdisk (?:is )?full\b",
        ),
    ),
    (
        ErrorKind.NAN_LOSS,
        any_of(
            r"\bloss (?:is|became|becomes|has become|was) (?:nan|inf|infinite|not finite)",
            r"\b(?:nan|infinite|non-?finite)(?: or (?:nan|inf))? (?:training )?(?:loss|gradient)",
            r"minimum loss scale reached",
        ),
    ),
    (
        ErrorKind.OOM,
        any_of(
            r"outofmemoryerror",
            r"(?:cuda|hip|mps|xpu|gpu|vram)[^.\n]{0,40}out of memory",
            r"\bran out of (?:gpu |cuda |device )?memory",
            r"memory allocation failed with oom",
            r"\boom (?:during|when|in|on)\b",
            r"resource_?exhausted(?:error)?\b.{0,60}(?:oom|memory)",
            r"cublas_status_alloc_failed",
            r"cuda_error_out_of_memory",
            r"\bcuda oom\b",
        ),
    ),
    (
        ErrorKind.NCCL,
        any_of(
            r"watchdog caught collective",
            r"collective operation timeout",
            r"nccl (?:error|operation|timeout|communicator)",
            r"nccl(?:system|internal|unhandledcuda|remote|invalid\w{0,20})error",
            r"distbackenderror",
        ),
    ),
    (
        ErrorKind.AUTH,
        any_of(
            r"gated ?repo",
            r"\b40[13] (?:client error|unauthorized|forbidden)",
            r"(?:status(?: code)?|http(?: error)?):? 40[13]\b",
            r"unauthori[sz]ed",
            r"invalid (?:user|access|api|auth)\w* ?(?:token|key|credentials)",
            r"invalid username or password",
            r"localtokennotfound",
            r"api[_ ]key (?:not configured|is invalid|must be)",
            r"access to model .{0,120}is restricted",
            r"\baccess ?denied\b",
            r"token .{0,30}(?:is not valid|is invalid|expired)",
            r"authentication ?(?:failed|error)",
        ),
    ),
    (
        ErrorKind.CUDA,
        any_of(
            r"\bcuda error\b",
            r"cudaerror",
            r"cuda (?:driver|runtime|failure|initialization)",
            r"no nvidia driver",
            r"no cuda(?:-capable| gpus)",
            r"device-side assert",
            r"illegal memory access",
            r"unspecified launch failure",
            r"cublas_status|cudnn_status|cudnn error|cusolver error|cufft_",
            r"not compiled with cuda",
            r"acceleratorerror",
            r"\bnvml\b.{0,40}(?:error|fail|mismatch)",
            r"hip error",
            r"misaligned address",
            r"uncorrectable ecc",
            r"gpu (?:has fallen off|is lost)",
            r"no kernel image|kernel image is invalid",
            r"\.cu:\d+.{0,160}assertion",
        ),
    ),
    (
        ErrorKind.CONFIG,
        any_of(
            r"unrecognized arguments?",
            r"arguments? (?:is|are) required",
            r"error: argument ",
            r"invalid choice",
            r"not used by the hfargumentparser",
            r"\bhydra\b|omegaconf",
            r"config\w{0,20}(?:error|invalid|exception)\b",
            r"(?:could not|cannot|can't|unable to) (?:find|read|open|parse|load) (?:the )?config",
            r"config(?:uration)? file .{0,120}(?:not found|does not exist|missing)",
            r"(?:unknown|unexpected|invalid|missing|unsupported|bad) "
            r"(?:config\w*|option|key|field|parameter|argument|setting|hyperparameter)s?\b",
            r"scannererror|yamlerror|yaml\.\w+\.\w*error|parsererror: (?:while|expected)|tomldecodeerror",
            r"validationerror\b|\d+ validation errors?",
            r"no such (?:option|command)\b",
            rf"(?:no such file or directory|filenotfounderror|not found|does not exist){_CONFIG_FILE}",
            r"mutually exclusive",
            r"must (?:be specified|specify|provide|be provided|be set)\b",
        ),
    ),
    (
        ErrorKind.MISSING_FILE,
        any_of(
            r"filenotfounderror",
            r"no such file or directory",
            r"\berrno 2\b",
            r"does not contain an? ",
            r"does not appear to have",
            rf"{_THING}\b.{{0,160}}{_ABSENT}",
            rf"{_ABSENT}.{{0,40}}(?:{_THING}|hub)",
            rf"no (?:valid |training )?(?:{_THING}|images?|data)s?(?: \w+){{0,3}} found",
            r"no file named",
            r"is not a local folder",
            r"not a valid model identifier",
            r"(?:entry|repository|dataset)notfounderror",
            r"(?:could not|couldn't|cannot|can't|unable to) (?:find|locate|open|load)",
            r"404 client error",
        ),
    ),
)


def kind_of(message: str) -> ErrorKind:
    """The kind of problem that a message names.

    >>> kind_of("RuntimeError: CUDA error: device-side assert triggered").value
    'cuda'
    """
    return next((kind for kind, pattern in KINDS if pattern.search(message)), ErrorKind.OTHER)
