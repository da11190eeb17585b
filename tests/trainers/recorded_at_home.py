"""What a finished training recorded, as it is stored at home."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.commands.cli_runs import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """The rows of a job's last attempt."""

    steps: dict[int, dict[str, Any]]
    events: list[tuple[str, int]]
    times: list[float]


def recorded(home: Home, job_id: str) -> Recorded:
    """Steps by number; events with their steps, by time."""
    steps = _last_attempt(home, job_id, "StepMetric")
    events = sorted(_last_attempt(home, job_id, "TrainingEvent"), key=lambda event: event["timestamp"])
    return Recorded(
        steps={row["step"]: row for row in steps},
        events=[(event["event_type"], json.loads(event["details"]).get("step", 0)) for event in events],
        times=[event["timestamp"] for event in events],
    )


def _last_attempt(home: Home, job_id: str, table: str) -> list[dict[str, Any]]:
    found = home.store.series.read(job_id, table)
    return list(found[max(found)].rows()) if found else []
