"""One row of Vast.ai's list as the monitor shows it."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.control.monitoring.sources import Sighting
from stationmaster.model import SshAccess
from stationmaster.providers.vastai.machine_status import machine
from stationmaster.providers.vastai.telemetry_rows import TelemetryRow

_DOWN = ("exited", "stopped", "frozen")


def sighting(row: TelemetryRow, *, key_path: str | None) -> Sighting:
    """Host keys of machines that others rented are unknown; only a log is read, and no secret is sent."""
    seen = machine(row, key_path=key_path, job_root="")
    status = "exited" if row.actual_status in _DOWN else row.actual_status or "created"
    accesses = [replace(access, unverified=True) for access in seen.accesses if isinstance(access, SshAccess)]
    return Sighting(
        id=str(row.id),
        status=status,
        label=row.label or "",
        gpu_type=(row.gpu_name or "unknown") if (row.num_gpus or 1) == 1 else f"{row.num_gpus}x {row.gpu_name}",
        gpu_percent=row.gpu_util if status == "running" else None,  # the last value stays listed after a stop
        gpu_celsius=row.gpu_temp if status == "running" else None,
        memory_percent=row.memory_percent if status == "running" else None,
        cost_per_hour=seen.price_per_hour,
        started_at=row.start_date,
        accesses=tuple(accesses),
    )
