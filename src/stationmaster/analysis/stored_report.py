"""A report as JSON, and back: what a store, a file or an API keeps. Pure.

Other versions may have written it: unknown keys are ignored, and what cannot be read is left out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import (
    Confidence,
    Evidence,
    Health,
    LogError,
    Recommendation,
    Report,
    Severity,
    Summary,
)

Value = TypeVar("Value")


def report_to_json(report: Report) -> dict[str, Any]:
    """Return the report as JSON values; a number that is not finite becomes null."""
    made: dict[str, Any] = _finite(report.as_json())
    return made


def report_from_json(data: Mapping[str, Any]) -> Report:
    """Return the report that `report_to_json` gave."""
    return Report(
        job_id=str(data.get("job_id", "")),
        summary=_summary(_mapping(data.get("summary"))),
        recommendations=_all(_recommendation, data.get("recommendations")),
        log_errors=_all(_log_error, data.get("log_errors")),
        timeline=tuple(point for point in _list(data.get("metrics_timeline")) if isinstance(point, Mapping)),
        notes=tuple(str(note) for note in _list(data.get("notes"))),
    )


def _summary(data: Mapping[str, Any]) -> Summary:
    empty = Summary(
        health_score=Health.UNKNOWN,
        peak_memory_gb=None,
        total_memory_gb=None,
        training_completed=False,
        steps_completed=None,
        duration_minutes=None,
    )
    health = data.get("health_score")
    known = Health(health) if health in list(Health) else Health.UNKNOWN
    return dataclasses.replace(empty, **{**_known(Summary, data), "health_score": known})


def _recommendation(data: Mapping[str, Any]) -> Recommendation:
    return Recommendation(
        **{
            **_known(Recommendation, data),
            "severity": Severity(data["severity"]),
            "lever": Lever(data["lever"]),
            "confidence": Confidence(data.get("confidence", Confidence.MEDIUM)),
            "evidence": _all(lambda each: Evidence(**_known(Evidence, each)), data.get("evidence")),
        }
    )


def _log_error(data: Mapping[str, Any]) -> LogError:
    return LogError(**_known(LogError, data))


def _known(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    return {field.name: data[field.name] for field in dataclasses.fields(cls) if field.name in data}


def _all(read: Callable[[Mapping[str, Any]], Value], data: object) -> tuple[Value, ...]:
    return tuple(_readable(read, (each for each in _list(data) if isinstance(each, Mapping))))


def _readable(read: Callable[[Mapping[str, Any]], Value], items: Iterable[Mapping[str, Any]]) -> Iterable[Value]:
    for each in items:
        try:
            yield read(each)
        except (TypeError, ValueError, KeyError):
            continue


def _list(data: object) -> list[Any]:
    return data if isinstance(data, list) else []


def _mapping(data: object) -> Mapping[str, Any]:
    return data if isinstance(data, Mapping) else {}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
