"""Memory, load and events over time, thinned for a chart (R197)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stationmaster.analysis.facts.run_facts import RunFacts

_POINTS = 240


def timeline_of(facts: RunFacts) -> list[Mapping[str, Any]]:
    """Return points by time: the highest memory of each interval, and every event."""
    pool, times = facts.summary_pool, facts.row_times
    if times is None:
        return []
    points: list[dict[str, Any]] = [
        {"timestamp": event.at, "event": event.kind, "step": event.step} for event in facts.events
    ]
    if pool is not None:
        width = max((times[1] - times[0]) / _POINTS, 1e-9)
        highest: dict[int, Any] = {}
        for level in pool.levels:
            place = int((level.at - times[0]) / width)
            if place not in highest or level.used_gb > highest[place].used_gb:
                highest[place] = level
        points += [
            {
                "timestamp": level.at,
                "memory_gb": round(level.used_gb, 3),
                "memory_percent": round(level.used_gb / pool.size_gb * 100, 1),
            }
            for level in highest.values()
        ]
    return sorted(points, key=lambda point: float(point["timestamp"]))
