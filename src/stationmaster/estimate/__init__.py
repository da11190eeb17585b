"""Before a job starts: its hours and price, the GPU memory it takes, and whether that fits the GPU."""

from stationmaster.estimate.fitting import Card, change_that_fits, fit_warning, fits_well
from stationmaster.estimate.gpus import GPU_FACTORS, gpu_factor, gpu_memory_gib, is_as_fast, same_gpu
from stationmaster.estimate.hours import Estimate, Scaling, estimate, hours_on, most_per_hour, scaling
from stationmaster.estimate.memory import MemoryEstimate, estimate_memory, why_unknown

__all__ = [
    "GPU_FACTORS",
    "Card",
    "Estimate",
    "MemoryEstimate",
    "Scaling",
    "change_that_fits",
    "estimate",
    "estimate_memory",
    "fit_warning",
    "fits_well",
    "gpu_factor",
    "gpu_memory_gib",
    "hours_on",
    "is_as_fast",
    "most_per_hour",
    "same_gpu",
    "scaling",
    "why_unknown",
]
