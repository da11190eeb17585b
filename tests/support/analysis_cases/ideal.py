"""The answer that a label asks for, built from the label: it shows that the label can be met."""

from __future__ import annotations

from typing import Any

from tests.support.analysis_cases.case import Label


def ideal_answer(label: Label) -> dict[str, Any]:
    """Return an analysis as JSON that does what the label asks, and no more."""
    wanted = [*(label["first"] or [])[:1], *(alternatives[0] for alternatives in label["must_include"])]
    ranks = {"critical": 0, "warning": 1, "info": 2}
    figures = ("peak_memory_gb", "total_memory_gb", "steps_completed", "duration_minutes")
    return {
        "summary": {
            "health_score": label["health_score"].lower(),
            "training_completed": label["training_completed"],
            **{key: None if label[key] is None else _middle(label[key]) for key in figures},
        },
        "recommendations": sorted(
            (_advice(want, label) for want in wanted), key=lambda item: ranks[str(item["severity"])]
        ),
        "log_errors": [
            {
                "level": "ERROR",
                "message": want["any"][0],
                "timestamp": _middle(want["timestamp"]) if "timestamp" in want else None,
                "memory_at_time_gb": _middle(want["memory_gb"]) if "memory_gb" in want else None,
            }
            for want in label["log_errors"]
        ],
    }


def _advice(want: dict[str, Any], label: Label) -> dict[str, Any]:
    path = want["path"] if isinstance(want["path"], str) else want["path"][0]
    gigabytes = sum(want["gb"][0]) / 2 if "gb" in want else 0
    return {
        "severity": want["severity"][0],
        "title": "Change it",
        "action": "Change it",
        "impact": f"frees {gigabytes} GB",
        "config_path": path,
        "current_value": label["config"].get(path),
        "recommended_value": _value(want.get("value", {})),
    }


def _value(rule: dict[str, Any]) -> Any:
    for key in ("eq", "max", "min"):
        if key in rule:
            return rule[key]
    return rule["in"][0] if "in" in rule else None


def _middle(span: dict[str, float]) -> float:
    return span["value"] if "value" in span else (span["min"] + span["max"]) / 2
