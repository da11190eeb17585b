"""A stand-in for NVIDIA's library: the functions of nvml.h in Python, writing into the caller's structures."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

SUCCESS, NOT_SUPPORTED, INSUFFICIENT_SIZE, GPU_IS_LOST = 0, 3, 7, 15


@dataclass
class Gpu:
    """One GPU; a value of None is not supported by it."""

    name: str = "NVIDIA H200"
    uuid: str = "GPU-5f2b"
    total: int | None = 141 << 30
    used: int = 12 << 30
    reserved: int = 1 << 30
    numbers: dict[str, int | None] = field(
        default_factory=lambda: {
            "Temperature": 61,
            "PowerUsage": 412_500,
            "EnforcedPowerLimit": 650_000,
            "PowerManagementDefaultLimit": 700_000,
            "ClockInfo": 1755,
            "MaxClockInfo": 1980,
            "MaxMigDeviceCount": 7,
        }
    )
    utilization: int | None = 97
    reasons: int = 0
    processes: list[tuple[int, int]] = field(default_factory=list)
    parts: list[Gpu] = field(default_factory=list)
    is_lost: bool = False


class StandInNvml:
    """`missing` names functions that an older driver does not have. While `answers` is cleared, every call hangs."""

    def __init__(self, *gpus: Gpu, missing: tuple[str, ...] = (), init_code: int = SUCCESS) -> None:
        self.gpus = gpus
        self.missing = missing
        self.init_code = init_code
        self.calls: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        self._handles = [part for gpu in gpus for part in (gpu, *gpu.parts)]

    def __getattr__(self, function: str) -> Any:
        if not function.startswith("nvml") or function in self.missing:
            raise AttributeError(function)
        return lambda *arguments: self._call(function, *arguments)

    def _call(self, function: str, *arguments: Any) -> int:
        self.calls.append(function)
        self.answers.wait()
        if function.startswith(("nvmlInit", "nvmlShutdown")):
            return self.init_code
        if function == "nvmlDeviceGetCount_v2":
            arguments[0]._obj.value = len(self.gpus)
            return SUCCESS
        if function == "nvmlDeviceGetHandleByIndex_v2":
            return self._hand_out(self.gpus[arguments[0]], arguments[1])
        gpu = self._handles[arguments[0].value - 1]
        return GPU_IS_LOST if gpu.is_lost else self._ask(gpu, function[len("nvmlDeviceGet") :], *arguments[1:])

    def _ask(self, gpu: Gpu, what: str, *arguments: Any) -> int:
        if what == "Name":
            arguments[0].value = gpu.name.encode()
        elif what == "UUID":
            arguments[0].value = gpu.uuid.encode()
        elif what == "MigMode":
            arguments[0]._obj.value = bool(gpu.parts)
        elif what == "MigDeviceHandleByIndex":
            return self._hand_out(gpu.parts[arguments[0]], arguments[1]) if arguments[0] < len(gpu.parts) else 6
        elif what.startswith("MemoryInfo"):
            return self._memory(gpu, what, arguments[0]._obj)
        elif what == "UtilizationRates":
            if gpu.utilization is None:
                return NOT_SUPPORTED
            arguments[0]._obj.gpu = gpu.utilization
        elif what.startswith("CurrentClocks"):
            arguments[0]._obj.value = gpu.reasons
        elif what.startswith("ComputeRunningProcesses"):
            return self._processes(gpu, *arguments)
        else:
            number = gpu.numbers[what]
            if number is None:
                return NOT_SUPPORTED
            arguments[-1]._obj.value = number
        return SUCCESS

    def _hand_out(self, gpu: Gpu, handle: Any) -> int:
        handle._obj.value = 1 + next(number for number, known in enumerate(self._handles) if known is gpu)
        return SUCCESS

    def _memory(self, gpu: Gpu, what: str, found: Any) -> int:
        if gpu.total is None:
            return NOT_SUPPORTED
        if what.endswith("_v2"):
            assert found.version == 0x2000028, "the second version of a structure of 40 bytes"
            found.total, found.used, found.reserved = gpu.total, gpu.used, gpu.reserved
        else:
            found.total, found.used = gpu.total, gpu.used + gpu.reserved
        return SUCCESS

    def _processes(self, gpu: Gpu, count: Any, found: Any) -> int:
        if count._obj.value < len(gpu.processes):
            return INSUFFICIENT_SIZE
        count._obj.value = len(gpu.processes)
        for number, (pid, used) in enumerate(gpu.processes):
            found[number].pid, found[number].used = pid, used
        return SUCCESS
