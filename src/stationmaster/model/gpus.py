"""The GPUs of this computer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GpuMaker(StrEnum):
    NVIDIA = "NVIDIA"
    AMD = "AMD"
    APPLE = "Apple"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU, as its maker's tool describes it."""

    id: str  # NVIDIA: its UUID, which stays the same; others: its number
    number: int  # as the tool counts
    maker: GpuMaker
    name: str
    total_gib: float
    free_gib: float  # that no program uses now
    cuda: float | None = None  # newest version that the driver supports
    unusable: str | None = None  # why no job can use it

    def __str__(self) -> str:
        """
        >>> str(Gpu(id="GPU-5f2b", number=0, maker=GpuMaker.NVIDIA, name="RTX 4090", total_gib=23.99, free_gib=22.1))
        'RTX 4090 (22.1 of 24.0 GiB free)'
        """
        return f"{self.name} ({self.free_gib:.1f} of {self.total_gib:.1f} GiB free)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundGpus:
    """The GPUs of this computer that jobs may use, and the problems of tools that should have listed some."""

    gpus: tuple[Gpu, ...] = ()
    kept_back: int = 0  # others, which the settings keep from jobs
    problems: tuple[str, ...] = ()
