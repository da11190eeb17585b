"""GPU readings from NVML, NVIDIA's library for them: no program is started.

The structures and numbers are those of NVIDIA's nvml.h. A function that this driver lacks, or that returns an error,
leaves its value out.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any, Callable, Iterator, NamedTuple, Optional

from trackside.machine.visible_gpus import Visible
from trackside.sampler.cpu_share import CpuShare
from trackside.sampler.gpu_answer import GpuAnswer, GpuSourceError
from trackside.sampler.sample import GB, GpuReading
from trackside.sampler.throttle import strongest_reason

_LIBRARIES = (
    "libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
)
_SUCCESS, _NOT_SUPPORTED, _INSUFFICIENT_SIZE, _GPU_IS_LOST = 0, 3, 7, 15
_MISSING_FUNCTION = 13
_PROBLEMS = {
    4: "no permission",
    9: "the driver is not loaded",
    18: "the versions of driver and library differ",
}
_TOLERATE_NO_GPUS = 1
_TEMPERATURE_OF_GPU = 0
_CLOCK_OF_SM = 1
_NOT_AVAILABLE = (1 << 64) - 1
_SLOW_SECONDS = 60.0
_PROCESSES_SHARE_OF_A_CORE = 0.0002


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Memory2(ctypes.Structure):
    """Counts what the driver reserves apart from what is used, as nvidia-smi does."""

    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Process1(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Device(NamedTuple):
    """A GPU, or a part of one (MIG), whose temperature, power and clock are those of the whole."""

    handle: Any
    whole: Any
    name: str
    rated_clock_mhz: Optional[float]
    rated_power_watts: Optional[float]


def load_library() -> Any:
    """Return NVIDIA's library. Raises OSError if this machine has none."""
    for path in _LIBRARIES:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    try:
        pynvml = importlib.import_module("pynvml")  # may know other places
        pynvml.nvmlInit()
        return pynvml.nvmlLib
    except Exception as error:  # its errors are classes of its own
        raise OSError("libnvidia-ml.so.1 is not on this machine") from error


class Nvml:
    """The visible GPUs that the driver shows. `library` is what `load_library` returns. Raises GpuSourceError."""

    def __init__(
        self, library: Any, *, now: Callable[[], float], note: Callable[[str], None], visible: Visible = None
    ) -> None:
        self._library = library
        self._visible = visible
        self._now = now
        self._note = note
        self._lost: set[int] = set()
        self._without_memory: set[int] = set()
        self._limits: dict[int, tuple[float, float | None]] = {}
        self._processes: dict[int, float] = {}
        self._processes_cost = CpuShare(_PROCESSES_SHARE_OF_A_CORE, now=now)
        code = self._call("nvmlInitWithFlags", _TOLERATE_NO_GPUS)
        if code == _MISSING_FUNCTION:
            code = self._call("nvmlInit_v2")
        if code != _SUCCESS:
            raise GpuSourceError("NVML cannot be started: %s" % _PROBLEMS.get(code, "error %d" % code))
        self._devices = list(self._find_devices())
        if not self._devices:
            self.close()
            raise GpuSourceError("NVML shows no GPU")

    def read(self) -> GpuAnswer:
        """Return all GPUs and the memory of the processes on them."""
        gpus = tuple(self._read_gpu(index, device) for index, device in enumerate(self._devices))
        if self._processes_cost.is_free():
            with self._processes_cost:
                self._processes = self._read_processes()
        first = self._devices[0]
        return GpuAnswer(
            gpus,
            self._processes,
            first.rated_clock_mhz,
            first.rated_power_watts,
            has_own_memory=len(self._without_memory) < len(gpus),
        )

    def close(self) -> None:
        """Release the library. It may be started again."""
        self._call("nvmlShutdown")

    def _find_devices(self) -> Iterator[_Device]:
        count = ctypes.c_uint()
        if self._call("nvmlDeviceGetCount_v2", ctypes.byref(count)) != _SUCCESS:
            return
        for index in range(count.value):
            handle = ctypes.c_void_p()
            code = self._call("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
            if code == _SUCCESS and self._is_visible(handle):
                yield from self._parts_of(handle) or [self._device(handle, handle)]

    def _is_visible(self, handle: Any) -> bool:
        """Return whether the training may use this GPU. A UUID may be written in short."""
        if self._visible is None:
            return True
        uuid = ctypes.create_string_buffer(96)
        self._call("nvmlDeviceGetUUID", handle, uuid, ctypes.c_uint(len(uuid)))
        return any(uuid.value.decode("utf-8", "replace").startswith(each) for each in self._visible)

    def _parts_of(self, whole: Any) -> list[_Device]:
        """Return the parts into which this GPU is divided (MIG); none if it is whole."""
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        code = self._call("nvmlDeviceGetMigMode", whole, ctypes.byref(current), ctypes.byref(pending))
        if code != _SUCCESS or not current.value:
            return []
        parts = []
        for number in range(int(self._number("nvmlDeviceGetMaxMigDeviceCount", whole) or 0)):
            part = ctypes.c_void_p()
            if self._call("nvmlDeviceGetMigDeviceHandleByIndex", whole, number, ctypes.byref(part)) == _SUCCESS:
                parts.append(self._device(part, whole))
        return parts

    def _device(self, handle: Any, whole: Any) -> _Device:
        name = ctypes.create_string_buffer(96)
        self._call("nvmlDeviceGetName", handle, name, ctypes.c_uint(len(name)))
        return _Device(
            handle=handle,
            whole=whole,
            name=name.value.decode("utf-8", "replace"),
            rated_clock_mhz=self._number("nvmlDeviceGetMaxClockInfo", whole, _CLOCK_OF_SM),
            rated_power_watts=_thousandth(self._number("nvmlDeviceGetPowerManagementDefaultLimit", whole)),
        )

    def _read_gpu(self, index: int, device: _Device) -> GpuReading:
        used, total = self._memory(index, device.handle)
        return GpuReading(
            gpu_index=index,
            name=device.name,
            memory_used_gb=used,
            memory_total_gb=total,
            utilization_percent=self._utilization(device.handle),
            temperature_c=self._number("nvmlDeviceGetTemperature", device.whole, _TEMPERATURE_OF_GPU),
            power_watts=_thousandth(self._number("nvmlDeviceGetPowerUsage", device.whole)),
            power_limit_watts=self._power_limit(index, device.whole),
            clock_mhz=self._number("nvmlDeviceGetClockInfo", device.whole, _CLOCK_OF_SM),
            throttle=self._throttle(device.whole),
        )

    def _memory(self, index: int, handle: Any) -> tuple[float | None, float | None]:
        memory2 = _Memory2(version=ctypes.sizeof(_Memory2) | 2 << 24)
        code = self._call("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(memory2))
        if code == _SUCCESS:
            return memory2.used / GB, memory2.total / GB
        memory = _Memory()
        code = self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        if code == _SUCCESS:
            return memory.used / GB, memory.total / GB
        if code == _NOT_SUPPORTED:
            self._without_memory.add(index)
        if code == _GPU_IS_LOST and index not in self._lost:
            self._lost.add(index)
            self._note("GPU %d does not answer its driver any more" % index)
        return None, None

    def _utilization(self, handle: Any) -> float | None:
        found = _Utilization()
        code = self._call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(found))
        return float(found.gpu) if code == _SUCCESS else None

    def _power_limit(self, index: int, handle: Any) -> float | None:
        read_at, limit = self._limits.get(index, (None, None))
        if read_at is None or self._now() - read_at >= _SLOW_SECONDS:
            limit = _thousandth(self._number("nvmlDeviceGetEnforcedPowerLimit", handle))
            self._limits[index] = (self._now(), limit)
        return limit

    def _throttle(self, handle: Any) -> str | None:
        reasons = ctypes.c_ulonglong()
        code = self._call("nvmlDeviceGetCurrentClocksEventReasons", handle, ctypes.byref(reasons))
        if code == _MISSING_FUNCTION:
            code = self._call("nvmlDeviceGetCurrentClocksThrottleReasons", handle, ctypes.byref(reasons))
        return strongest_reason(reasons.value) if code == _SUCCESS else None

    def _read_processes(self) -> dict[int, float]:
        """Return the GPU memory of each process, on all GPUs together."""
        found: dict[int, float] = {}
        for device in self._devices:
            for process in self._processes_on(device.handle):
                if process.used not in (0, _NOT_AVAILABLE):
                    found[process.pid] = found.get(process.pid, 0.0) + process.used / GB
        return found

    def _processes_on(self, handle: Any) -> list[Any]:
        for version, kind in (("_v3", _Process), ("_v2", _Process), ("", _Process1)):
            room = 64
            while True:
                count, processes = ctypes.c_uint(room), (kind * room)()
                name = "nvmlDeviceGetComputeRunningProcesses" + version
                code = self._call(name, handle, ctypes.byref(count), processes)
                if code != _INSUFFICIENT_SIZE or room > 4096:
                    break
                room *= 4
            if code == _SUCCESS:
                return list(processes[: count.value])
            if code != _MISSING_FUNCTION:
                break
        return []

    def _number(self, function: str, handle: Any, *arguments: int) -> float | None:
        found = ctypes.c_uint()
        code = self._call(function, handle, *arguments, ctypes.byref(found))
        return float(found.value) if code == _SUCCESS else None

    def _call(self, function: str, *arguments: Any) -> int:
        try:
            return int(getattr(self._library, function)(*arguments))
        except AttributeError:
            return _MISSING_FUNCTION


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000.0
