"""All GPUs of this machine, from the first source that works."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Protocol

from trackside.machine.gpu import find_on_path
from trackside.machine.visible_gpus import visible_amd_gpus, visible_nvidia_gpus
from trackside.sampler.bounded import Bounded, StillRunning
from trackside.sampler.gpu_answer import GpuAnswer, GpuSourceError
from trackside.sampler.sample import GpuReading, MemoryReading

_LIMIT_SECONDS = 2.0
_SAME_MEMORY = 0.02
_NOTHING = GpuAnswer()


class GpuSource(Protocol):
    """One way of reading GPUs."""

    def read(self) -> GpuAnswer | None:
        """Return the GPUs; None if they were not read this time. Raises GpuSourceError."""

    def close(self) -> None:
        """Release what the source holds."""


class Gpus:
    """Reads with NVML, else nvidia-smi, else rocm-smi or amd-smi. Never waits longer than 2 s.

    `environment` names the GPUs that the training may use, where they are not all.
    """

    def __init__(
        self,
        *,
        quick: bool,
        now: Callable[[], float],
        note: Callable[[str], None],
        load_nvml: Callable[[], Any] | None = None,
        limit_seconds: float = _LIMIT_SECONDS,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._visible = visible_nvidia_gpus(environment)
        self._visible_amd = visible_amd_gpus(environment)
        self._quick = quick
        self._now = now
        self._note = note
        self._load_nvml = load_nvml
        self._limit_seconds = limit_seconds
        self._program_seconds = 0.9 * limit_seconds  # so that a program's own limit comes first
        self._source: GpuSource | None = None
        self._is_searched = False
        self._ask = Bounded(self._read_source, limit_seconds=limit_seconds)
        self._last: GpuAnswer | None = None

    def read(self) -> GpuAnswer:
        """Return the GPUs; none while they cannot be read. Raises GpuSourceError."""
        if self._is_searched and self._source is None:
            return _NOTHING
        try:
            answer = self._ask()
        except StillRunning:
            raise GpuSourceError("the GPU's driver has not answered for %g s" % self._limit_seconds) from None
        if answer is None:  # a program that rests
            return _NOTHING if self._last is None else GpuAnswer(process_memory_gb=self._last.process_memory_gb)
        self._last = answer
        return answer

    def last(self) -> GpuAnswer | None:
        """Return the last answer, or a first one; None if there is a source that has not answered."""
        if self._last is None:
            answer = self.read()
            return answer if answer.gpus or self._source is None else None
        return self._last

    def close(self) -> None:
        """Release the source; one that hangs is left alone."""
        source = self._source
        if source is None or self._ask.is_running():
            return
        self._source = None
        try:
            Bounded(source.close, limit_seconds=self._limit_seconds)()
        except StillRunning:
            pass

    def _read_source(self) -> GpuAnswer | None:
        if not self._is_searched:
            self._source = self._find_source()
            self._is_searched = True
        return _NOTHING if self._source is None else self._source.read()

    def _find_source(self) -> GpuSource | None:
        """Return the first source that works: NVIDIA's unless all of its GPUs are hidden."""
        nvidia = None if self._visible == () else self._nvml()
        return nvidia or (None if self._quick else self._program())

    def _nvml(self) -> GpuSource | None:
        from trackside.sampler import nvml  # ctypes is slow to import

        try:
            return nvml.Nvml(
                (self._load_nvml or nvml.load_library)(), now=self._now, note=self._note, visible=self._visible
            )
        except OSError:
            return None  # no NVIDIA driver here
        except GpuSourceError as error:
            self._note(str(error))
            return None

    def _program(self) -> GpuSource | None:
        nvidia = None if self._visible == () else find_on_path("nvidia-smi")
        if nvidia:
            from trackside.sampler.nvidia_smi import NvidiaSmi

            return NvidiaSmi(nvidia, now=self._now, limit_seconds=self._program_seconds, visible=self._visible)
        from trackside.sampler.rocm_smi import AMD_SMI, ROCM_SMI, RocmSmi

        amd = None if self._visible_amd == () else find_on_path(ROCM_SMI) or find_on_path(AMD_SMI)
        if amd is None:
            return None
        return RocmSmi(amd, now=self._now, limit_seconds=self._program_seconds, visible=self._visible_amd)


class UnifiedMemory:
    """Recognises GPUs that use the system's memory, whose pool is then the system's alone.

    Their driver reports no memory, or the system's: the same size, filled alike. A GPU with memory of its own may
    happen to be as large as the system's memory, so that one difference is enough to tell them apart.
    """

    def __init__(self) -> None:
        self._differs = False
        self.was_seen: bool | None = None  # with the last GPUs

    def is_seen(self, answer: GpuAnswer, memory: MemoryReading) -> bool:
        """Return whether all GPUs use the system's memory. Both readings are of the same moment."""
        if not answer.gpus:
            return False
        if answer.has_own_memory:
            self._differs = self._differs or not all(_is_same_pool(gpu, memory) for gpu in answer.gpus)
        self.was_seen = not answer.has_own_memory or not self._differs
        return self.was_seen


def without_memory(gpus: tuple[GpuReading, ...]) -> tuple[GpuReading, ...]:
    """Return the GPUs with their memory left out."""
    return tuple(gpu._replace(memory_used_gb=None, memory_total_gb=None) for gpu in gpus)


def _is_same_pool(gpu: GpuReading, memory: MemoryReading) -> bool:
    if gpu.memory_total_gb is None or gpu.memory_used_gb is None or memory.total_gb is None:
        return False
    total, nearness = memory.total_gb, _SAME_MEMORY * memory.total_gb
    in_use = [memory.used_gb, None if memory.available_gb is None else total - memory.available_gb]
    return abs(gpu.memory_total_gb - total) <= nearness and any(
        used is not None and abs(gpu.memory_used_gb - used) <= nearness for used in in_use
    )
