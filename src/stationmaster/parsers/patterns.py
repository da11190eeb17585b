"""Log patterns that users add for their own trainer."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

from stationmaster.errors import ConfigInvalid
from stationmaster.parsers.backtracking import slow_on
from stationmaster.parsers.base import ErrorKind, Fault, Parsed, Phase, Saved
from stationmaster.parsers.quantities import duration_seconds, per_second, whole

_GROUPS = (
    *("step", "total_steps", "epoch", "total_epochs", "loss", "learning_rate", "steps_per_second", "seconds_per_step"),
    *("eta", "checkpoint", "error"),
)
#: A user's pattern only sees this much of a line, so that a careless one cannot delay the watch for long.
TEXT_LIMIT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UserPattern:
    """A regular expression whose named groups are the values to read.

    Groups: step, total_steps, epoch, total_epochs, loss, learning_rate, steps_per_second, seconds_per_step, eta,
    checkpoint, error. `phase` is the phase that a match sets; without it, a match with a step sets training.
    """

    pattern: str
    phase: Phase | None = None
    fatal: bool = True

    def __post_init__(self) -> None:
        try:
            compiled = re.compile(self.pattern)
        except re.error as problem:
            raise ConfigInvalid(
                f"the log pattern {self.pattern!r} is not a regular expression: {problem}",
                hint="put a backslash before a character that is meant literally, as in \\( or \\[",
            ) from problem
        unknown = sorted(set(compiled.groupindex) - set(_GROUPS))
        if unknown:
            raise ConfigInvalid(
                f"the log pattern {self.pattern!r} has an unknown group: {unknown[0]}",
                hint=f"use one of: {', '.join(_GROUPS)}",
            )
        if not compiled.groupindex and self.phase is None:
            raise ConfigInvalid(
                f"the log pattern {self.pattern!r} has no named group and no phase",
                hint="name a group, as in (?P<step>\\d+), or give a phase",
            )

    def read(self, text: str) -> Parsed | None:
        """The values in a line; None if the pattern is not in it."""
        found = re.search(self.pattern, text[:TEXT_LIMIT])
        if not found:
            return None
        group = {name: value for name, value in found.groupdict().items() if value is not None}
        step = whole(group.get("step", ""))
        pace = _number(group.get("steps_per_second"))
        seconds = _number(group.get("seconds_per_step"))
        error, checkpoint = group.get("error"), group.get("checkpoint")
        phase = self.phase or (Phase.TRAINING if step is not None else Phase.SAVING if checkpoint else None)
        return Parsed(
            step=step,
            total=whole(group.get("total_steps", "")),
            epoch=_number(group.get("epoch")),
            total_epochs=whole(group.get("total_epochs", "")),
            loss=_number(group.get("loss")),
            learning_rate=_number(group.get("learning_rate")),
            rate=pace if pace is not None else per_second(seconds or 0.0),
            eta_seconds=duration_seconds(group["eta"]) if "eta" in group else None,
            phase=phase if phase != Phase.FINISHED else None,
            finished=phase == Phase.FINISHED,
            evidence=text[:TEXT_LIMIT],
            saved=Saved(name=checkpoint, done=True) if checkpoint else None,
            fault=Fault(kind=ErrorKind.OTHER, message=error, fatal=self.fatal) if error else None,
        )

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def checked_pattern(pattern: str, *, phase: str | None = None, fatal: bool = True) -> UserPattern:
    """A newly written pattern. Raises ConfigInvalid, also for a pattern that is too slow on some lines."""
    made = UserPattern(pattern=pattern, phase=None if phase is None else Phase(phase), fatal=fatal)
    if (line := slow_on(pattern)) is not None:
        raise ConfigInvalid(
            f"the log pattern {pattern!r} is too slow on lines that begin like {line[:60]!r}",
            hint="make sure that no two adjacent repeats match the same text, or limit them, as in \\d{1,9}",
        )
    return made


def _number(text: str | None) -> float | None:
    try:
        return float(text.replace(",", "")) if text else None
    except ValueError:
        return None
