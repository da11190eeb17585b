"""The tables of values that a machine sends, with the kind of each column.

They mirror trackside's tables without `job_id`; a contract test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType


class Kind(StrEnum):
    """What a column holds. Every kind also has None, for a value that was not measured."""

    REAL = "real"
    INTEGER = "integer"
    TEXT = "text"


_REAL, _INTEGER, _TEXT = Kind.REAL, Kind.INTEGER, Kind.TEXT

TABLES: Mapping[str, Mapping[str, Kind]] = MappingProxyType(
    {
        "StepMetric": {
            "id": _INTEGER,
            "step": _INTEGER,
            "timestamp": _REAL,
            "loss": _REAL,
            "batch_size": _INTEGER,
            "gradient_norm": _REAL,
            "learning_rate": _REAL,
            "step_time_seconds": _REAL,
        },
        "StepValue": {"id": _INTEGER, "step": _INTEGER, "timestamp": _REAL, "name": _TEXT, "value": _REAL},
        "MetricsSample": {
            "id": _INTEGER,
            "timestamp": _REAL,
            "total_memory_gb": _REAL,
            "used_memory_gb": _REAL,
            "available_memory_gb": _REAL,
            "swap_used_gb": _REAL,
            "main_process_memory_gb": _REAL,
            "worker_memory_gb": _REAL,
            "worker_count": _INTEGER,
            "gpu_memory_used_gb": _REAL,
            "gpu_utilization_percent": _REAL,
            "cpu_utilization_percent": _REAL,
        },
        "GpuSample": {
            "id": _INTEGER,
            "timestamp": _REAL,
            "gpu_index": _INTEGER,
            "name": _TEXT,
            "memory_used_gb": _REAL,
            "memory_total_gb": _REAL,
            "utilization_percent": _REAL,
            "temperature_c": _REAL,
            "power_watts": _REAL,
            "power_limit_watts": _REAL,
            "clock_mhz": _REAL,
            "throttle": _TEXT,
        },
        "ResourceSample": {
            "id": _INTEGER,
            "timestamp": _REAL,
            "disk_total_gb": _REAL,
            "disk_free_gb": _REAL,
            "disk_read_mb_per_second": _REAL,
            "disk_write_mb_per_second": _REAL,
            "network_received_mb_per_second": _REAL,
            "network_sent_mb_per_second": _REAL,
        },
        "ProcessSample": {
            "id": _INTEGER,
            "timestamp": _REAL,
            "pid": _INTEGER,
            "role": _TEXT,
            "memory_gb": _REAL,
            "cpu_percent": _REAL,
            "gpu_memory_gb": _REAL,
            "io_mb_per_second": _REAL,
            "state": _TEXT,
        },
        "TrainingEvent": {
            "id": _INTEGER,
            "timestamp": _REAL,
            "event_type": _TEXT,
            "details": _TEXT,
            "memory_snapshot_id": _INTEGER,
        },
        "RunInfo": {"id": _INTEGER, "key": _TEXT, "value": _TEXT},
        "InstanceSample": {
            "id": _INTEGER,
            "timestamp": _REAL,
            "gpu_percent": _REAL,
            "gpu_temperature_c": _REAL,
            "memory_percent": _REAL,
            "cost_per_hour_usd": _REAL,
            "total_cost_usd": _REAL,
            "training_step": _INTEGER,
            "training_epoch": _REAL,
            "training_loss": _REAL,
            "steps_per_second": _REAL,
        },
    }
)

OWN_TABLES = ("InstanceSample",)
"""Tables that home fills itself: what `monitor` sees of a rented machine. No machine sends them."""

#: Columns that every row has a value in; a row without one is dropped.
REQUIRED = frozenset({"id", "step", "timestamp", "event_type", "gpu_index", "pid", "role", "key"})
_REQUIRED_OF_TABLE = {"StepValue": frozenset({"name"})}


@cache
def required_columns(table: str) -> tuple[str, ...]:
    """Return the columns of a table that every row has a value in."""
    needed = REQUIRED | _REQUIRED_OF_TABLE.get(table, frozenset())
    return tuple(name for name in TABLES[table] if name in needed)
