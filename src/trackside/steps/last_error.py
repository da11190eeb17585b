"""Find the error that ended a try at the end of its log, and whether another try would fail in the same way."""

from __future__ import annotations

import os
import re
from typing import NamedTuple, Sequence, Tuple

from trackside.steps.permanent_errors import Raised, is_permanent, mentions_temporary, name_of, will_recur

_TAIL_BYTES = 1 << 16
_LONGEST_LINE = 2400
_LONGEST_ERROR = 400
_MOST_LINES_AFTER = 40  # output of programs after the exception that ends them
_MOST_WRAPPERS = 4
_NEAR_LINES = 40
_SIGNALS_OF_SHELLS = range(129, 193)  # a shell adds the signal's number to 128
_NOT_RUNNABLE = (126, 127)  # a shell's exit codes for a program that is not executable or missing

# The patterns are compiled at their first use: most supervisors see no error.
_HEADER = "Traceback (most recent call last)"
_FRAME = r'  ?File "[^"]{1,400}", line \d+'
_RANK = r"\[(?:rank|default)\d+\]: ?"
_BOX = tuple("│╭╰┃┏┗┌└├─❱")
_EXCEPTION = r"(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Za-z_]\w{0,80}(?=: |:?$)"
_USUAL_NAME = r"(?:Error|Exception|Interrupt|Exit|Warning|Invalid)$"
_CAUSE = "The above exception was the direct cause"
_HANDLED = "During handling of the above exception"
# Heads of tracebacks that end a thread, a destructor or a task, and not the program.
_ELSEWHERE = ("Exception in thread", "Exception ignored in", "Error in atexit", "--- Logging error", "future: <")
_WRAPPERS = frozenset(("CalledProcessError", "ChildFailedError", "ProcessExitedException"))
_SIGNALLED = r"died with <Signals\.(SIG\w+)|terminated with signal (SIG\w+)|Signal \d+ \((SIG\w+)\)|exitcode *: -(\d+)"
_WRAPPED_STATUS = r"non-zero exit status (\d+)|exitcode *: (\d+)|exit code (\d+)"
_NOISE = r"closing signal|destroy_process_group"  # what launchers and torch print at every exit
_OURS = "trackside: "
_ROOT_CAUSE = "Root Cause (first observed failure)"  # torchrun: the processes named before it were ended because of it
_USAGE_ERROR = r"[\w./-]{1,120}: error: "
_USAGE_STATUS = 2
_ESCAPE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?"
_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_COUNTER = r"\b\d+/(\d+) \["
_GOES_ON = r"(?i)\bloss\b|\bsaved\b|\bsaving\b"
_ERROR_LINE = (
    r"(?i)^(?:\S{1,80}: )?(?:error|fatal|panic)\b ?:? ?\S|(?-i:\b(?:ERROR|CRITICAL|FATAL)\b)|^E: "
    r"|: (?:not found|command not found|no such file or directory|permission denied)$|no space left on device"
    r"|^trackside: could not start |error response from daemon"
)


class LastError(NamedTuple):
    """The line that names the error, if there is one; and whether every further try would fail in the same way."""

    text: str | None
    cannot_pass: bool


_UNKNOWN = LastError(text=None, cannot_pass=False)


class _Traceback(NamedTuple):
    """A traceback: where it begins, where its last exception is, and its exceptions from the first one on."""

    begin: int
    end: int
    chain: Tuple[Raised, ...]
    is_elsewhere: bool


def read_last_error(path: str, *, exit_code: int | None) -> LastError:
    """Find the error at the end of a try's log; nothing if the log cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            tail = file.read(_TAIL_BYTES)
    except OSError:
        return _UNKNOWN
    return find_last_error(tail.decode("utf-8", "replace"), exit_code=exit_code)


def read_fatal_error(path: str) -> str | None:
    """Return the exception that ended a program whose exit code nobody knows; None if its log does not end with one.

    Only a traceback after which nothing went on counts: lines with the word error are no proof without an exit code.
    """
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    lines = [_shortened(line) for line in re.sub(_ESCAPE, "", text).replace("\r", "\n").split("\n")]
    found = next((each for each in reversed(_tracebacks(lines)) if not each.is_elsewhere), None)
    if found is None or _went_on([line for line in lines[found.end + 1 :] if line.strip()]):
        return None
    return _clean(found.chain[-1].line)


def find_last_error(text: str, *, exit_code: int | None) -> LastError:
    """Find the error in a text. `exit_code` None: the try never started to run."""
    lines = [_shortened(line) for line in re.sub(_ESCAPE, "", text).replace("\r", "\n").split("\n")]
    for _ in range(_MOST_WRAPPERS):
        if exit_code in _SIGNALS_OF_SHELLS:
            return _UNKNOWN  # it was killed: no error that it printed before ended it
        found = next((each for each in reversed(_tracebacks(lines)) if not each.is_elsewhere), None)
        if found is None or name_of(found.chain[-1].line) not in _WRAPPERS:
            return _judge(lines, found, exit_code)
        # A launcher reports its child's exit: the cause is what the child printed before it.
        report = "\n".join(lines[found.begin :])
        report = report[max(0, report.rfind(_ROOT_CAUSE)) :]
        signalled = re.search(_SIGNALLED, report)
        if signalled:
            name = next(filter(None, signalled.groups()))
            shown = "signal %s" % name if name.isdigit() else name
            return LastError(text="a process of the step was killed by %s" % shown, cannot_pass=False)
        status = re.search(_WRAPPED_STATUS, report)
        exit_code = int(next(filter(None, status.groups()))) if status else exit_code
        lines = lines[: found.begin]
    return _UNKNOWN


def _judge(lines: Sequence[str], ending: _Traceback | None, exit_code: int | None) -> LastError:
    after = [line for line in lines[ending.end + 1 if ending else 0 :] if line.strip()]
    if exit_code == _USAGE_STATUS and after and re.match(_USAGE_ERROR, after[-1]):
        return LastError(text=_clean(after[-1]), cannot_pass=not mentions_temporary(after[-1:]))
    if ending is not None and not _went_on(after):
        cannot_pass = will_recur(ending.chain) and not mentions_temporary(_without_noise(after))
        return LastError(text=_clean(ending.chain[-1].line), cannot_pass=cannot_pass)
    return _error_line(after[-_NEAR_LINES:], exit_code)


def _error_line(lines: Sequence[str], exit_code: int | None) -> LastError:
    """Return the last line that names an error, for a program that does not end with a traceback."""
    line = next((line for line in reversed(lines) if re.search(_ERROR_LINE, line.strip())), None)
    is_there = exit_code not in _NOT_RUNNABLE
    if line is None:
        return LastError(text=None, cannot_pass=not is_there and not mentions_temporary(lines))
    permanent = is_permanent(line, around=lines) if is_there else not mentions_temporary(lines)
    return LastError(text=_clean(line), cannot_pass=permanent)


def _went_on(lines: Sequence[str]) -> bool:
    """Whether the program kept working after its traceback: then it was caught, and something else ended it."""
    spoken = [line for line in lines if not line.startswith("wandb:")]
    bars = {(found[1], found[0]) for found in (re.search(_COUNTER, line) for line in spoken) if found}
    # A bar is drawn once more when it is closed at the end: only one that moves shows that work continued.
    moves = len(bars) > len({total for total, _ in bars})
    mentions_progress = any(re.search(_GOES_ON, line) and not re.search(_COUNTER, line) for line in spoken)
    return moves or mentions_progress or len(spoken) > _MOST_LINES_AFTER


def _without_noise(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if not re.search(_NOISE, line)]


def _tracebacks(lines: Sequence[str]) -> list[_Traceback]:
    """Return the tracebacks in the lines, by where they end; a launcher's processes are read separately."""
    by_rank: dict[str, list[tuple[int, str]]] = {}
    for index, line in enumerate(lines):
        rank = re.match(_RANK, line)
        prefix = rank[0] if rank else ""
        by_rank.setdefault(prefix, []).append((index, line[len(prefix) :].rstrip()))
    found = [ending for numbered in by_rank.values() for ending in _tracebacks_of_one(numbered)]
    return sorted(found, key=lambda ending: ending.end)


def _tracebacks_of_one(numbered: Sequence[tuple[int, str]]) -> list[_Traceback]:
    found: list[_Traceback] = []
    begin: int | None = None  # of the traceback that is being read
    link: bool | None = None  # the next traceback belongs to the last one: caused by it, or raised while handling it
    is_elsewhere = False
    before = ""  # the last line that was not empty
    for index, line in numbered:
        if not line:
            continue
        if begin is None and (_HEADER in line or re.match(_FRAME, line)):
            begin = index
            is_elsewhere = before.startswith(_ELSEWHERE)
        elif begin is not None and _is_exception(line, before):
            raised = Raised(line=line, has_cause=bool(link))
            if link is not None and found:
                found[-1] = found[-1]._replace(end=index, chain=(*found[-1].chain, raised))
            else:
                found.append(_Traceback(begin, index, (raised,), is_elsewhere))
            begin = link = None
        elif line.startswith((_CAUSE, _HANDLED)):
            link = line.startswith(_CAUSE)
        before = line
    return found


def _is_exception(line: str, before: str) -> bool:
    """Whether a line of a traceback is its last one; other output may appear between its frames."""
    found = re.match(_EXCEPTION, line)
    if found is None or line.startswith(_BOX):
        return False
    follows_frames = before.startswith((" ", "\t", *_BOX)) or _HEADER in before
    return re.search(_USUAL_NAME, found[0]) is not None or follows_frames


def _shortened(line: str) -> str:
    """Keep a long line's beginning and end: a launcher prints the whole command in between."""
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 400] + line[-400:]


def _clean(line: str) -> str:
    """Clean the line for display: no control characters, single spaces, limited length."""
    rank = re.match(_RANK, line)
    text = " ".join(re.sub(_CONTROL, " ", line[rank.end() :] if rank else line).split())
    text = text[len(_OURS) :] if text.startswith(_OURS) else text
    return text if len(text) <= _LONGEST_ERROR else text[: _LONGEST_ERROR - 1] + "…"
