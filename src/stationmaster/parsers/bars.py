"""Progress bars in a piece of text: tqdm in its many shapes, and its relatives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stationmaster.parsers.quantities import duration_seconds, steps_per_second, whole

_TIME = r"\d+(?::\d\d){1,2}"
# The part that only a bar has: a counter followed by elapsed time.
_COUNT = r"\d[\d.,]*+[kKMGTP]?i?B?"
_COUNTERS = re.compile(
    rf"(?<![\d.,])(?P<n>{_COUNT})/(?P<m>{_COUNT}|\?) *\[ *(?P<elapsed>{_TIME}) *(?:< *(?P<eta>{_TIME}|\?))?"
    rf"|(?<![\d.,])(?P<alone>\d++) ?[a-z]*+ \[(?P<alone_elapsed>{_TIME}), "
    rf"|\[ *+(?P<boxed_n>\d++)/(?P<boxed_m>\d++) +(?P<boxed_elapsed>{_TIME})"
    rf"(?: *< *(?P<boxed_eta>{_TIME}|\?)|(?=, Epoch ))"
    rf"|(?<=\| )(?P<short_n>\d++)/(?P<short_m>\d++)(?: +(?P<short_elapsed>{_TIME}))?\s*$"
    r"|(?<=[━─╸╺ ])(?P<plain_n>\d++)/(?P<plain_m>\d++|--) ++(?:(?P<rich_elapsed>\d+:\d\d:\d\d) • "
    r"(?P<rich_eta>\d+:\d\d:\d\d|-:--:--)|(?=[\d.]++ ?(?:it/s|s/it) ++[\d.:hms]++(?:<|$|\s)))"
)
# What every bar has, and few other lines: looking for it first makes them twice as quick to read.
_CLOCK_OR_PACE = re.compile(r"\d:\d\d|it/s|s/it|%\|")
# Nearly all bars are drawn like this, and reading them is most of the work.
_USUAL = re.compile(
    rf"(?P<head>[^%|\[\]]{{0,200}}?):? *+\d{{1,3}}%\|[^|\[\]]*+\| (?P<n>\d++)/(?P<m>\d++) "
    rf"\[(?P<elapsed>{_TIME})<(?P<eta>{_TIME}|\?), *+"
    r"(?P<rate>[\d.]++[a-z]++/[a-z]++|\?[a-z]++/s)(?P<postfix>[^\[\]]*+)\]\s*+$"
)
_RATE = re.compile(r"\s*,?\s*([\d.]+ ?[A-Za-zµ]+/[A-Za-z]+|\?[ A-Za-zµ]*/?[A-Za-z]*)")
_SHORT_ETA = re.compile(r" *[\d.:hms]+< *([\d.:hms]+)")
_DRAWN = re.compile(r"(\d{1,3})%\|[^|]*\| $")
_PERCENT_END = re.compile(r"(\d{1,3}(?:\.\d+)?)% *$")
# A log line printed over the end of a bar starts with its date, glued to the last number.
_GLUED_DATE = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\d\d/\d\d/\d{4} \d\d:\d\d")
# What may stand after the last comma of a bar cut at the terminal's edge.
_CUT_VALUE = re.compile(r"\s*+[\w/.?-]*+(?: [\w/.]++)?(?:\s*+[=:]\s*+\S*+)?\s*+$")

# A bar as it is drawn again and again, in bytes: runs of such redraws are skipped unread.
_REDRAWN_NUMBER = rb"[-+]?\d[\d.]*+(?:e[-+]?\d++)?"
_REDRAW = re.compile(
    rb"(?P<head>[^|\r\n\x1b\x08\x00^]{0,200}?) {0,3}\d{1,3}%\|[^|\r\n\x1b\x08\x00]*+\| (?P<n>\d++)/(?P<m>\d++) "
    rb"\[[\d:]++<[\d:?]++(?:, *[\d.]++ ?(?P<unit>[A-Za-z]+/[a-z]+))(?P<postfix>[^\]\r\n\x1b\x08\x00]{0,200})\] *$"
)
#: One or more ended redraws of any bars, the last of them as the first group: all that a visit reads of many.
ANY_REDRAWS = re.compile(
    rb"(?:([^|\r\n\x1b\x08\x00^]{0,200}?\d{1,3}%\|[^|\r\n\x1b\x08\x00]*+\| \d++/\d++ "
    rb"\[[^\]\r\n\x1b\x08\x00]{0,300}\] *+)[\r\n]++){1,1000}"
)
_REDRAWN_VALUE = re.compile(rb"(?<![\w.])[-+]?\d[\d.]*+(?:e[-+]?\d++)?(?![\w.])")

RedrawShape = tuple[bytes, bytes, bytes]  # head and postfix as patterns, and the total between them
_redraw_patterns: dict[RedrawShape, re.Pattern[bytes]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One drawing of one progress bar."""

    description: str
    step: int | None  # None: it counts bytes or other big units
    total: int | None
    eta_seconds: float | None
    rate: float | None  # steps per second
    postfix: str
    text: str

    @property
    def is_complete(self) -> bool:
        return self.step is not None and self.total is not None and self.step >= self.total

    @property
    def identity(self) -> str:
        return identity_of(self.description)


@lru_cache(maxsize=512)
def identity_of(description: str) -> str:
    """What stays the same from one drawing to the next: the description without its numbers."""
    return re.sub(r"\d+(?:\.\d+)?", "#", description)[:80]


def split_bars(text: str) -> list[Bar | str]:
    """The bars of a piece and the texts between them, in order.

    >>> [type(part).__name__ for part in split_bars("steps: 5%|# | 5/100 [00:10<03:10, 2.00s/it]saving checkpoint")]
    ['Bar', 'str']
    """
    if ("/" not in text and "[" not in text) or not _CLOCK_OR_PACE.search(text):
        return [text]
    if (usual := _USUAL.match(text)) and not _GLUED_DATE.search(usual["postfix"]):
        return [_usual_bar(usual)]
    cores = list(_COUNTERS.finditer(text))
    if not cores:
        return [text]
    parts: list[Bar | str] = []
    rest = 0
    for index, core in enumerate(cores):
        head_start = _head_start(text, rest, core.start())
        if head_start is None or not _is_whole(core, text[rest : core.start()]):
            continue
        if before := text[rest:head_start].strip():
            parts.append(before)
        limit = _next_head(text, core.end(), cores[index + 1].start()) if index + 1 < len(cores) else len(text)
        bar, rest = _read_bar(text, head_start, core, limit)
        parts.append(bar)
    if after := text[rest:].strip():
        parts.append(after if parts else text)
    return parts


def shape_of_redraws(piece: bytes) -> RedrawShape | None:
    """What the redraws of the bar in this piece have in common; None if there is no bar, or not one in its middle."""
    found = _REDRAW.match(piece) if b"%|" in piece else None
    if not found or found["n"] in (b"0", found["m"]):
        return None
    return _numbers_open(found["head"].lstrip()), found["m"], _numbers_open(found["postfix"])


def run_of_redraws(shape: RedrawShape) -> re.Pattern[bytes]:
    """A pattern for one or more ended redraws of this shape, the last of them as its first group.

    It never skips a drawing at 0 or at the total: there a bar begins or ends, which means more than progress. All
    others differ in finite numbers only, so each makes the one before it forgotten.
    """
    pattern = _redraw_patterns.get(shape)
    if pattern is None:  # another thread may clear them at any time
        if len(_redraw_patterns) > 256:
            _redraw_patterns.clear()
        head, total, postfix = shape
        pattern = _redraw_patterns[shape] = re.compile(
            rb"(?:( *+" + head + rb" *+\d{1,3}%\|[^|\r\n\x1b\x08\x00]*+\| (?!0/|" + total + rb"/)\d++/" + total
            + rb" \[[\d:]++<[\d:?]++, *+[\d.]++ ?(?:it/s|s/it|[A-Za-z]++/s)" + postfix + rb"\] *+)[\r\n]++){1,1000}"
        )  # fmt: skip
    return pattern


def _numbers_open(text: bytes) -> bytes:
    """The text as a pattern in which every number may be another finite one."""
    parts, position = [], 0
    for value in _REDRAWN_VALUE.finditer(text):
        parts += [re.escape(text[position : value.start()]), _REDRAWN_NUMBER]
        position = value.end()
    return b"".join([*parts, re.escape(text[position:])])


def _usual_bar(found: re.Match[str]) -> Bar:
    head, n, m, _, eta, rate, postfix = found.groups()
    return Bar(
        description=head.strip().rstrip(":").rstrip(),
        step=whole(n),
        total=whole(m),
        eta_seconds=duration_seconds(eta),
        rate=steps_per_second(rate),
        postfix=postfix,
        text=found[0].strip(),
    )


def _head_start(text: str, start: int, core_start: int) -> int | None:
    """Where the description begins; None when the counter is only a leftover of a bar."""
    head = text[start:core_start]
    stripped = head.rstrip()
    if stripped.endswith("|") and stripped.count("|") == 1 and "%" not in stripped and stripped != "|":
        return None
    return start


def _is_whole(core: re.Match[str], head: str) -> bool:
    """Whether a counter at the end of the text, without a time, has all its digits: they agree with the percentage."""
    if core["short_n"] is None or core["short_elapsed"] is not None:
        return True
    drawn = _DRAWN.search(head)
    n, m = int(core["short_n"]), int(core["short_m"])
    return drawn is not None and abs(int(drawn[1]) * m - 100 * n) <= m


def _next_head(text: str, start: int, next_core: int) -> int:
    """Where a bar that follows on the same line begins, so that a bar without its closing bracket ends there."""
    between = text[start:next_core]
    closing = between.find("]")
    if closing >= 0:
        return start + closing + 1
    percent = between.rfind("%")
    comma = between.rfind(",", 0, percent if percent >= 0 else len(between))
    return start + comma + 1 if comma >= 0 else start


def _read_bar(text: str, head_start: int, core: re.Match[str], limit: int) -> tuple[Bar, int]:
    bracket = text.find("]", core.end(), limit)
    boxed = core["boxed_n"] is not None
    open_ended = core["plain_n"] is not None or bracket < 0
    inside = text[core.end() : limit if open_ended else bracket]
    end = limit if open_ended else bracket + 1
    if glued := _GLUED_DATE.search(inside):
        inside, end = inside[: glued.start()], core.end() + glued.start()
    elif bracket < 0 and (cut := _message_start(inside)) is not None:
        inside, end = inside[:cut], core.end() + cut
    rate_text, postfix = _split_rate(inside)
    n, m = _counters(core)
    eta = core["eta"] or core["boxed_eta"] or core["rich_eta"]
    if core["plain_n"] is not None and (short := _SHORT_ETA.match(postfix)):
        eta, end, postfix = short[1], end - len(postfix) + short.end(), ""
    bar = Bar(
        description="" if boxed else _description(text[head_start : core.start()]),
        step=whole(n),
        total=whole(m),
        eta_seconds=duration_seconds(eta) if eta and m != "?" else None,
        rate=steps_per_second(rate_text),
        postfix=postfix,
        text=text[head_start:end].strip(),
    )
    return bar, end


def _message_start(inside: str) -> int | None:
    """Where a message begins that was printed over the end of a bar: after the last comma, if no value is there."""
    comma = inside.rfind(",")
    return comma + 1 if comma >= 0 and not _CUT_VALUE.match(inside, comma + 1) else None


def _counters(core: re.Match[str]) -> tuple[str, str]:
    if core["n"] is not None:
        return core["n"], core["m"]
    if core["alone"] is not None:
        return core["alone"], "?"
    if core["boxed_n"] is not None:
        return core["boxed_n"], core["boxed_m"]
    if core["short_n"] is not None:
        return core["short_n"], core["short_m"]
    return core["plain_n"], core["plain_m"]


def _split_rate(inside: str) -> tuple[str, str]:
    found = _RATE.match(inside)
    return (found[1], inside[found.end() :]) if found else ("", inside)


def _description(head: str) -> str:
    """The text before the percentage and the drawn bar."""
    head = head.rstrip()
    if head.endswith("|"):  # 12%|###   |
        opening = head.rfind("|", 0, len(head) - 1)
        head = head[:opening].rstrip() if opening >= 0 else head[:-1].rstrip()
    if percent := _PERCENT_END.search(head[-12:]):
        head = head[: len(head) - len(head[-12:]) + percent.start()].rstrip()
        if head.endswith("|") and (opening := head.rfind("|", 0, len(head) - 1)) >= 0:  # Progress:|###  | 12%
            head = head[:opening].rstrip()
    elif drawn := re.search(r"(\d{1,3})% +[━─╸╺]*$", head[-200:]):
        head = head[: len(head) - len(head[-200:]) + drawn.start()].rstrip()
    else:
        head = head.rstrip("━─╸╺ ")
    return head.strip().rstrip(":").rstrip()
