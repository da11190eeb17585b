"""GPU readings from the program nvidia-smi, where its library cannot be used."""

from __future__ import annotations

from typing import Callable

from trackside.machine.gpu import CSV_FORMAT, csv_rows, only
from trackside.machine.query import Query
from trackside.machine.visible_gpus import Visible
from trackside.sampler.gpu_answer import GpuAnswer, GpuSourceError
from trackside.sampler.paced_query import PacedQuery
from trackside.sampler.sample import GpuReading
from trackside.sampler.throttle import strongest_reason

_FIELDS = (
    "index", "name", "memory.used", "memory.total", "utilization.gpu", "temperature.gpu", "power.draw",
    "enforced.power.limit", "clocks.sm", "clocks.max.sm", "power.default_limit",
)  # fmt: skip
# The last field has changed its name; very old drivers do not know it.
_QUERIES = ((*_FIELDS, "clocks_event_reasons.active"), (*_FIELDS, "clocks_throttle_reasons.active"), _FIELDS)
_PROCESSES = "--query-compute-apps=pid,used_gpu_memory"
_PROCESSES_SECONDS = 60.0
_MIB_PER_GB = 1024.0


class NvidiaSmi:
    """The visible GPUs that nvidia-smi lists."""

    def __init__(
        self, program: str, *, now: Callable[[], float], limit_seconds: float = 2.0, visible: Visible = None
    ) -> None:
        self._only = only(visible)
        self._now = now
        self._program = PacedQuery(Query(program, limit_seconds=limit_seconds), now=now)
        self._queries: tuple[tuple[str, ...], ...] = _QUERIES
        self._processes: dict[int, float] = {}
        self._processes_at: float | None = None

    def read(self) -> GpuAnswer | None:
        """Return the GPUs; None while nvidia-smi rests. Raises GpuSourceError if it fails or hangs."""
        if not self._program.is_free():
            return None
        for fields in self._queries:
            text = self._program.ask("--query-gpu=" + ",".join(fields), CSV_FORMAT, *self._only)
            if text is not None:
                self._queries = (fields,)  # the one that this driver understands
                return parse_answer(text, columns=len(fields))._replace(process_memory_gb=self._process_memory())
            if self._program.hung:
                raise GpuSourceError("nvidia-smi hangs")
        raise GpuSourceError("nvidia-smi fails")

    def close(self) -> None:
        """Nothing is held."""

    def _process_memory(self) -> dict[int, float]:
        if self._processes_at is None or self._now() - self._processes_at >= _PROCESSES_SECONDS:
            self._processes_at = self._now()
            self._processes = parse_processes(self._program.ask(_PROCESSES, CSV_FORMAT) or "")
        return self._processes


def parse_answer(text: str, *, columns: int = len(_QUERIES[0])) -> GpuAnswer:
    """Return the GPUs of nvidia-smi's CSV; what it does not know is None.

    >>> row = "0, NVIDIA H200, 1024, 143771, 97, 61, 412.50, 700.00, 1755, 1980, 700.00, 0x0000000000000004"
    >>> parse_answer(row).gpus[0][2:4], parse_answer(row).gpus[0].throttle
    ((1.0, 140.4013671875), 'sw_power_cap')
    """
    gpus, rated = [], []
    without_memory = 0
    for row in csv_rows(text, columns=columns):
        used, total, utilization, temperature, power, limit, clock, *ratings = map(_number, row[2 : len(_FIELDS)])
        rated.append(ratings)
        without_memory += row[3].strip("[] ") in ("N/A", "Not Supported")
        reasons = row[len(_FIELDS)] if columns > len(_FIELDS) else ""
        gpus.append(
            GpuReading(
                gpu_index=int(_number(row[0]) or 0),
                name=row[1],
                memory_used_gb=None if used is None else used / _MIB_PER_GB,
                memory_total_gb=None if total is None else total / _MIB_PER_GB,
                utilization_percent=utilization,
                temperature_c=temperature,
                power_watts=power,
                power_limit_watts=limit,
                clock_mhz=clock,
                throttle=strongest_reason(int(reasons, 16)) if reasons.startswith("0x") else None,
            )
        )
    clock, power = rated[0] if rated else (None, None)
    return GpuAnswer(tuple(gpus), {}, clock, power, has_own_memory=without_memory < max(1, len(gpus)))


def parse_processes(text: str) -> dict[int, float]:
    """
    >>> parse_processes("71, 2048\\n71, 1024\\n72, [N/A]")
    {71: 3.0}
    """
    found: dict[int, float] = {}
    for line in text.splitlines():
        pid, _, memory = line.partition(", ")
        used = _number(memory)
        if pid.isdigit() and used:
            found[int(pid)] = found.get(int(pid), 0.0) + used / _MIB_PER_GB
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None  # [N/A], [Not Supported], [Unknown Error]
