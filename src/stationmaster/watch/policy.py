"""Every threshold of the stall detector, in one frozen value that settings and replays can change by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from stationmaster.durations import parse_duration
from stationmaster.errors import ConfigInvalid

_SECONDS = {"unit": "seconds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StallPolicy:
    """When a training counts as stalled, and how long until it is stopped. Durations are seconds."""

    enabled: bool = True  # per job: no verdict at all when off
    terminate: bool = True  # per job: off means alert only
    grace: float = field(default=900.0, metadata=_SECONDS)  # from the flag to the stop, unless progress resumes

    min_samples: int = 4  # ETA readings before any verdict
    window_readings: int = 3  # the window holds at least this many readings ...
    min_window: float = field(default=600.0, metadata=_SECONDS)  # ... and at least this much training time
    eta_convergence_threshold: float = 0.5  # healthy ETA falls by more than this part of the elapsed time
    speed_drop_threshold: float = 0.5  # a speed that lost more than this part of its peak reinforces the verdict
    trend_windows: float = 1.5  # a slow-down that continues is flagged after this many windows ...
    trend_ratio: float = 0.93  # ... if the second half of them was slower than the first by this factor
    sustain_windows: float = 2.15  # after more than two windows, when a single drop is over ...
    sustain_ratio: float = 0.96  # ... this factor is enough
    sustain_share: float = 0.9  # part of the readings meanwhile that must agree
    slowdown_floor: float = 0.85  # above this part of the usual undisturbed pace a trend is noise
    collapse_threshold: float = 0.2  # "a sixth or less", with room for wobble
    collapse_hold: float = field(default=240.0, metadata=_SECONDS)
    unknown_total_horizon: float = field(default=3600.0, metadata=_SECONDS)  # work assumed ahead if no total is known

    patience_steps: float = 20.0  # a silence is long after this many usual steps ...
    patience_lines: float = 3.0  # ... and this many usual intervals between lines
    still_windows: float = 0.6  # a machine that provably does nothing is stalled after this part of `min_window` ...
    still_pause_windows: float = 0.8  # ... or this, in announced pauses and before the first step
    blind_gap: float = field(default=300.0, metadata=_SECONDS)  # not looking for longer proves nothing about silence

    near_end_eta: float = field(default=600.0, metadata=_SECONDS)  # no verdict this close to the end
    near_end_progress: float = 0.98

    start_limit: float = field(default=1080.0, metadata=_SECONDS)  # nothing moves before the first step
    restart_limit: float = field(default=840.0, metadata=_SECONDS)  # the same while loading again in mid-run
    saving_limit: float = field(default=870.0, metadata=_SECONDS)
    sampling_limit: float = field(default=870.0, metadata=_SECONDS)
    evaluating_limit: float = field(default=870.0, metadata=_SECONDS)
    loop_limit: float = field(default=1020.0, metadata=_SECONDS)  # all pauses together once they take turns
    learned_factor: float = 2.0  # a pause may last this many times the longest one that ended well
    learned_cap: float = field(default=1800.0, metadata=_SECONDS)

    resume_pace: float = 0.5  # above this part of the usual pace a flagged run has recovered
    resume_span: float = field(default=60.0, metadata=_SECONDS)  # new steps for this long before a flag clears
    resume_window: float = field(default=180.0, metadata=_SECONDS)  # over which the resumed pace is taken

    def changed(self, settings: Mapping[str, Any]) -> StallPolicy:
        """The policy with settings applied by name, as text or as values; raises ConfigInvalid for a wrong one."""
        if not settings:
            return self
        known = {item.name: item for item in fields(self)}
        values: dict[str, Any] = {}
        for name, value in settings.items():
            if name not in known:
                raise ConfigInvalid(f"stall.{name} is not a setting", hint=f"use one of: {', '.join(sorted(known))}")
            values[name] = _read(name, value, getattr(self, name), is_duration=known[name].metadata == _SECONDS)
        return replace(self, **values)


def _read(name: str, value: Any, current: Any, *, is_duration: bool) -> Any:
    try:
        if isinstance(current, bool):
            return _read_switch(value)
        if is_duration:
            return parse_duration(value)
        number = float(value)
        if not 0 <= number < float("inf"):
            raise ValueError("a threshold must be zero or more")
        return int(number) if isinstance(current, int) else number
    except (TypeError, ValueError) as error:
        raise ConfigInvalid(f"stall.{name}: {error}", hint=f"write for example stall.{name}={current}") from error


def _read_switch(value: Any) -> bool:
    text = str(value).strip().lower()
    if text in ("true", "yes", "on", "1"):
        return True
    if text in ("false", "no", "off", "0"):
        return False
    raise ValueError(f"{value!r} is neither on nor off")
