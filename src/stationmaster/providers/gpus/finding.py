"""All GPUs of this computer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stationmaster.model import FoundGpus, Gpu
from stationmaster.providers.gpus.amd import find_amd_gpus
from stationmaster.providers.gpus.apple import find_apple_gpu
from stationmaster.providers.gpus.nvidia import find_nvidia_gpus
from stationmaster.providers.gpus.tool import ToolFailed, ToolMissing, tools_in


async def find_gpus(environment: Mapping[str, str], *, allowed: Sequence[str] | None = None) -> FoundGpus:
    """The GPUs that the tools on this environment's PATH list; with `allowed` only these, by id or number."""
    ask = tools_in(environment)
    gpus: list[Gpu] = []
    problems: list[str] = []
    for find in (find_nvidia_gpus, find_amd_gpus, find_apple_gpu):
        try:
            gpus += await find(ask)
        except ToolMissing:
            continue
        except ToolFailed as problem:
            problems.append(str(problem))
    usable = tuple(gpu for gpu in gpus if _is_allowed(gpu, allowed))
    return FoundGpus(gpus=usable, kept_back=len(gpus) - len(usable), problems=tuple(problems))


def _is_allowed(gpu: Gpu, allowed: Sequence[str] | None) -> bool:
    """Whether jobs may use it. A UUID may be written in short, as CUDA allows."""
    if allowed is None:
        return True
    return any(one == str(gpu.number) or (not one.isdigit() and gpu.id.startswith(one)) for one in allowed)
