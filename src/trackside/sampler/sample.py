"""One sample of the machine: the values of all its tables at one moment."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

GB = float(1 << 30)  # everywhere


class GpuReading(NamedTuple):
    """One GPU. Values that the driver does not report are None; `throttle` is the strongest active reason."""

    gpu_index: int
    name: str = ""
    memory_used_gb: Optional[float] = None
    memory_total_gb: Optional[float] = None
    utilization_percent: Optional[float] = None
    temperature_c: Optional[float] = None
    power_watts: Optional[float] = None
    power_limit_watts: Optional[float] = None
    clock_mhz: Optional[float] = None
    throttle: Optional[str] = None  # sw_thermal, hw_thermal, sw_power_cap or hw_power_brake


class ProcessReading(NamedTuple):
    """One process of the training: `role` is main, worker (of a data loader) or other."""

    pid: int
    role: str
    memory_gb: Optional[float] = None
    cpu_percent: Optional[float] = None  # of one core
    gpu_memory_gb: Optional[float] = None
    io_mb_per_second: Optional[float] = None  # megabytes (10^6) that it read and wrote since the last look
    state: Optional[str] = None  # asleep, running, disk or stopped; looked at only while the training is quiet


class MemoryReading(NamedTuple):
    """The machine's memory; `used` includes the page cache."""

    total_gb: Optional[float] = None
    used_gb: Optional[float] = None
    available_gb: Optional[float] = None
    swap_used_gb: Optional[float] = None


class IoReading(NamedTuple):
    """Room on the disk of the job's folder, and megabytes (10^6) per second of disk and network since the last look."""

    disk_total_gb: Optional[float] = None
    disk_free_gb: Optional[float] = None
    disk_read_mb_per_second: Optional[float] = None
    disk_write_mb_per_second: Optional[float] = None
    network_received_mb_per_second: Optional[float] = None
    network_sent_mb_per_second: Optional[float] = None


class Sample(NamedTuple):
    """Everything at one moment. What cannot be read is None or empty."""

    timestamp: float
    memory: MemoryReading = MemoryReading()
    main_process_memory_gb: Optional[float] = None
    worker_memory_gb: Optional[float] = None
    worker_count: Optional[int] = None
    cpu_utilization_percent: Optional[float] = None
    gpus: Tuple[GpuReading, ...] = ()
    processes: Tuple[ProcessReading, ...] = ()
    io: IoReading = IoReading()

    def as_record(self) -> dict[str, Any]:
        """Return the sample as JSON values; `sample_from_record` reads it."""
        return {
            **self._asdict(),
            "memory": list(self.memory),
            "gpus": [list(gpu) for gpu in self.gpus],
            "processes": [list(process) for process in self.processes],
            "io": list(self.io),
        }


def sample_from_record(record: dict[str, Any]) -> Sample:
    """Return the sample in a record. Raises KeyError, TypeError or ValueError if it is none."""
    known = {name: record[name] for name in Sample._fields if name in record}
    return Sample(
        **{
            **known,
            "memory": MemoryReading(*record["memory"]),
            "gpus": tuple(GpuReading(*gpu) for gpu in record["gpus"]),
            "processes": tuple(ProcessReading(*process) for process in record["processes"]),
            "io": IoReading(*record["io"]),
        }
    )
