"""NVIDIA's GPUs, from nvidia-smi."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stationmaster.model import Gpu, GpuMaker
from stationmaster.providers.gpus.tool import Ask, ToolFailed

_FIELDS = ("index", "uuid", "memory.total", "memory.free", "mig.mode.current", "name")  # the name may hold commas
_MIB_PER_GIB = 1024
_CUDA = re.compile(r"CUDA (?:\w+ )?Version\s*:\s*(\d+\.\d+)")
_BRANDS = re.compile(r"^NVIDIA\s+|\bGeForce\s+")


async def find_nvidia_gpus(ask: Ask) -> list[Gpu]:
    """All GPUs that nvidia-smi lists. Raises ToolMissing and ToolFailed."""
    listed = await ask("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
    cuda = _cuda_version(await ask("nvidia-smi"))  # only the summary has it, in every driver's version
    return list(parse_gpus(listed, cuda=cuda))


def parse_gpus(text: str, *, cuda: float | None) -> Iterator[Gpu]:
    """
    >>> next(parse_gpus("0, GPU-5f2b, 24564, 23000, [N/A], NVIDIA GeForce RTX 4090", cuda=12.4)).name
    'RTX 4090'
    """
    for line in text.splitlines():
        fields = line.strip().split(", ", len(_FIELDS) - 1)
        if len(fields) != len(_FIELDS):
            raise ToolFailed(f"nvidia-smi answered what is not understood: {line.strip()[:100]!r}")
        number, uuid, total, free, parts, name = fields
        yield Gpu(
            id=uuid,
            number=int(number) if number.isdigit() else 0,
            maker=GpuMaker.NVIDIA,
            name=_BRANDS.sub("", name),
            total_gib=_gib(total),
            free_gib=_gib(free),
            cuda=cuda,
            unusable=_objection(total, parts),
        )


def _objection(total: str, parts: str) -> str | None:
    if parts == "Enabled":
        return "divided into parts (MIG), which cannot be given to jobs"
    return None if total.isdigit() else "its memory is unknown"


def _gib(mib: str) -> float:
    return int(mib) / _MIB_PER_GIB if mib.isdigit() else 0.0


def _cuda_version(summary: str) -> float | None:
    """
    >>> _cuda_version("| NVIDIA-SMI 580.159.03   Driver Version: 580.159.03   CUDA Version: 13.0 |")
    13.0
    """
    found = _CUDA.search(summary)
    return None if found is None else float(found[1])
