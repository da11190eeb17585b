"""Which errors are permanent on a machine, and which are temporary.

A try too many costs minutes of a rented GPU; a try too few costs the run. So only what is certain to recur counts as
permanent: an error that no line here names is retried.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Sequence

#: Mistakes in code or settings: the same program with the same arguments repeats them, with any message.
#: ValueError and RuntimeError are not among them: a loss of NaN or a broken download raise them, too; some
#: of their wordings are below.
_MISTAKES = frozenset(
    (
        "AssertionError",  # a check inside the trainer
        "AttributeError",  # packages whose versions do not fit
        "ImportError",  # what is installed does not change between tries
        "IndentationError",
        "KeyError",  # a setting or a column that is not there
        "ModuleNotFoundError",
        "NameError",
        "NotImplementedError",  # the trainer cannot do what was asked
        "SyntaxError",
        "TabError",
        "TypeError",  # arguments that do not fit
        "UnboundLocalError",
    )
)


def _any_of(*wordings: str) -> str:
    """A pattern for `re`, which compiles it at its first use: most supervisors see no error."""
    return "(?i)" + "|".join(wordings)


#: May be gone at the next try. Checked before the permanent wordings: a temporary refusal is not permanent.
_TEMPORARY = _any_of(
    # The network, on either side: minutes later it may work.
    r"connection ?(?:error|reset|refused|aborted|broken|closed|timed)",
    r"connect(?:ion)?timeout|read ?timeout|timeouterror|\btimed out\b|\btime-?out\b",
    r"temporary failure|name resolution|name or service not known|could not resolve|getaddrinfo",
    r"newconnectionerror|max ?retr(?:y|ies)|remotedisconnected|incompleteread|chunkedencoding|protocolerror",
    r"\bssl(?:error|eoferror|: )|proxyerror|network is unreachable|no route to host|unexpected eof|early eof",
    r"(?:couldn't|could not|cannot|can't|failed to|unable to) (?:connect|reach)",
    r"localentrynotfound|the remote end hung up",
    # A server that is overloaded or under maintenance.
    r"\b(?:429|5\d\d)(?: (?:client|server) error|\b.{0,20}(?:gateway|unavailable|internal server))",
    r"(?:http|status)(?: error| code)?:? ?(?:429|5\d\d)\b",
    r"too many requests|rate.?limit|service unavailable|bad gateway|internal server error",
    # Other processes, and the connections between them.
    r"\bnccl|distbackend|collective operation|\bgloo\b|worker \(pid.{0,20}\) (?:is killed|exited)|broken pipe",
    # Memory: another program may have held some, and fragmentation grows over thousands of steps; a further try
    # begins with an empty GPU and, where the recipe can, at the last checkpoint.
    r"out ?of ?memory|cannot allocate memory|memoryerror|alloc_failed|resource temporarily unavailable",
    # A signal that the program received as an exception.
    r"keyboardinterrupt|\bsigterm\b|\bsigkill\b",
    # Disks and file systems that recover.
    r"input/output error|stale file handle|device or resource busy",
)

#: Permanent on this machine with these settings, until a person changes something.
_PERMANENT = _any_of(
    # The disk does not empty itself between two tries.
    r"no space left on device|storagefull|\berrno 28\b|disk quota exceeded",
    # No access: a licence that was not accepted, a wrong token. And what does not exist.
    r"gated ?repo|\b40[134] (?:client error|unauthorized|forbidden|not found)|error 40[134]\b",
    r"repositorynotfound|revisionnotfound|entrynotfound|is not a valid model identifier",
    r"access to model .{0,120}restricted|authentication failed|pull access denied|manifest unknown",
    r"invalid (?:user|access|api|auth)\w* ?(?:token|key|credentials)|invalid username or password",
    # No GPU that this program can use: driver and card belong to the machine.
    r"no nvidia driver|cuda driver initialization failed|no cuda(?:-capable device| gpus are available)",
    r"not compiled with cuda|driver version is insufficient|nvidia driver on your system is too old",
    r"no kernel image is available|libcuda\.so|could not select device driver",
    # Settings that the trainer rejects.
    r"unrecognized arguments?|arguments? (?:is|are) required|argument \S{1,80}: (?:invalid|expected|not allowed)",
    r"invalid choice|no such option|mutually exclusive",
    r"(?:scanner|parser|composer|constructor|representer|yaml|tomldecode)error\b",
    r"validationerror\b|\d validation errors? for|multipleinvalid|omegaconf|config\w{0,20}(?:error|exception)\b",
    r"no such file or directory.{0,200}\.(?:ya?ml|toml|ini|cfg)\b",
    # Most trainers refuse a setting with a ValueError. One about numbers that diverged is not among these.
    r"valueerror: (?!.{0,300}\b(?:nan|inf\w*|finite|loss|gradients?)\b).{0,200}\b(?:"
    r"must (?:be (?:specified|provided|set|given|one of|greater|less|larger|divisible|between|positive|at least)"
    r"|specify|provide|have)|(?:is|are) required|should be one of|unknown|unrecognized|unsupported|not supported"
    r"|invalid (?:value|option|argument|parameter|choice|type|setting))\b",
    # Weights of another shape than the model's.
    r"error\(s\) in loading state_dict|size mismatch for ",
)


class Raised(NamedTuple):
    """An exception: the last line of its traceback."""

    line: str
    has_cause: bool  # it was raised because of the one before it, not only while that one was handled


def name_of(line: str) -> str:
    """Return the exception's name without its modules.

    >>> name_of("huggingface_hub.errors.GatedRepoError: 403 Client Error.")
    'GatedRepoError'
    """
    return line.split(":", 1)[0].strip().rpartition(".")[2]


def will_recur(chain: Sequence[Raised]) -> bool:
    """Return whether the exception at the end of a chain recurs at every try.

    A mistake made while a lost connection was handled disappears with the lost connection. A permanent error makes one
    that names it as its cause permanent too; one raised only while handling it is not.
    """
    if any(name_of(each.line) not in _MISTAKES and re.search(_TEMPORARY, each.line) for each in chain):
        return False
    for each in reversed(chain):
        if name_of(each.line) in _MISTAKES or re.search(_PERMANENT, each.line):
            return True
        if not each.has_cause:
            return False
    return False


def is_permanent(line: str, *, around: Sequence[str]) -> bool:
    """Return whether an error line is permanent; not if the lines around it mention a temporary error."""
    return re.search(_PERMANENT, line) is not None and not mentions_temporary(around)


def mentions_temporary(lines: Sequence[str]) -> bool:
    return any(re.search(_TEMPORARY, line) for line in lines)
