"""What a monitor needs to know of a training: where its files are, and when it counts as stalled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from stationmaster.errors import ConfigInvalid
from stationmaster.parsers.patterns import UserPattern, checked_pattern
from stationmaster.watch.policy import StallPolicy

_CAPITAL = re.compile(r"(?=[A-Z])")
#: Names that are durations in milliseconds, as in a job's monitoring block, and what they set.
_MILLISECONDS = {"gracePeriod": "grace"}
_OTHER_NAMES = {"grace_period": "grace", "stall_threshold": "eta_convergence_threshold"}
_NOT_OF_THE_POLICY = frozenset({"poll_interval"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInfo:
    """Where the training's files are on its machine."""

    log_file: str
    pid_file: str
    output_dir: str
    framework: str = "auto"
    total_steps: int | None = None
    checkpoint_pattern: str = "*.safetensors"
    log_patterns: tuple[UserPattern, ...] = ()
    """For output that no parser knows. In a mapping, each is a string or a table with pattern, phase and fatal."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> JobInfo:
        """Read a mapping with these names, also in camelCase (`logFile`); others are ignored. Raises ConfigInvalid."""
        given = {_snake(key): value for key, value in values.items()}
        missing = [item.name for item in fields(cls) if item.default is MISSING and not given.get(item.name)]
        if missing:
            hint = "for example {'logFile': '/w/train.log', 'pidFile': '/w/pid', 'outputDir': '/w/out'}"
            raise ConfigInvalid(f"the job info has no {missing[0]}", hint=hint)
        known = {item.name: given[item.name] for item in fields(cls) if item.name in given}
        patterns = tuple(_pattern(one) for one in known.pop("log_patterns", ()))
        return cls(**known, log_patterns=patterns)


def policy_from(config: Mapping[str, Any]) -> StallPolicy:
    """Thresholds by name, in snake_case or camelCase, flat or in `stallDetection`. Raises ConfigInvalid.

    `gracePeriod` is in milliseconds, as in a job's monitoring block; `stallThreshold` is `etaConvergenceThreshold`.

    >>> policy_from({"gracePeriod": 600_000, "stallThreshold": 0.4, "stallDetection": {"minSamples": 5}}).grace
    600.0
    """
    flat = {**config, **config.get("stallDetection", {}), **config.get("stall_detection", {})}
    values = {}
    for key, value in flat.items():
        if key in ("stallDetection", "stall_detection") or _snake(key) in _NOT_OF_THE_POLICY:
            continue
        if key in _MILLISECONDS:
            values[_MILLISECONDS[key]] = _seconds(key, value)
        else:
            values[_OTHER_NAMES.get(_snake(key), _snake(key))] = value
    return StallPolicy().changed(values)


def _snake(name: str) -> str:
    return _CAPITAL.sub("_", name).lower()


def _seconds(name: str, milliseconds: Any) -> float:
    try:
        return float(milliseconds) / 1000
    except (TypeError, ValueError):
        raise ConfigInvalid(f"{name} is not a number of milliseconds: {milliseconds!r}") from None


def _pattern(given: UserPattern | str | Mapping[str, Any]) -> UserPattern:
    """Raises ConfigInvalid if the pattern is invalid."""
    if isinstance(given, UserPattern):
        return given
    return checked_pattern(given) if isinstance(given, str) else checked_pattern(**given)
