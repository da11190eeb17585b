"""What every source of GPU readings returns."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from trackside.sampler.sample import GpuReading


class GpuAnswer(NamedTuple):
    """All GPUs, the GPU memory of each process in GB, and the rated figures of the first GPU.

    `has_own_memory` is false if the driver reports that the GPUs have none.
    """

    gpus: Tuple[GpuReading, ...] = ()
    process_memory_gb: Dict[int, float] = {}
    rated_clock_mhz: Optional[float] = None
    rated_power_watts: Optional[float] = None
    has_own_memory: bool = True


class GpuSourceError(Exception):
    """A source of GPU readings cannot be used."""
