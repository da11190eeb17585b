"""Check whether this machine can train, before any data is sent to it."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any, Callable

from trackside.machine.gpu import GpuProbe, find_on_path, read_gpus
from trackside.machine.readings import read_disk, read_memory
from trackside.records import remove_file
from trackside.report.machine import gpu_record
from trackside.root import Root
from trackside.sampler.sample import GpuReading

_PROBE_BYTES = 64 * 1024 * 1024
_DRIVER_FILE = "/proc/driver/nvidia/version"
_TOOLS = ("python3", "rsync", "docker", "podman", "nvidia-smi")


def preflight(root: Root, *, wall: float, allocate: bool = True) -> dict[str, Any]:
    """Return disk, memory, GPUs, driver, and whether GPU memory can really be allocated.

    Without `allocate` that is not tried: where somebody else trains, even a little memory could be the last.
    """
    os.makedirs(root.path, exist_ok=True)
    gpus = _nvidia_gpus(root, wall) or _amd_gpus() or _apple_gpus()
    return {
        "disk_free_bytes": read_disk(root.path)["free_bytes"],
        "memory": read_memory(),
        "gpus": gpus,
        "driver": _driver(),
        "cuda": cuda_version(),
        "tools": [name for name in _TOOLS if find_on_path(name)],
        "allocation": try_allocation() if gpus and allocate else None,
    }


def _nvidia_gpus(root: Root, wall: float) -> list[dict[str, Any]]:
    answer = os.path.join(root.path, ".preflight-gpu")
    GpuProbe(answer).ask_and_wait()
    gpus = read_gpus(answer, wall=wall) or []
    remove_file(answer)
    return gpus


def _amd_gpus() -> list[dict[str, Any]]:
    from trackside.sampler.gpu_answer import GpuSourceError
    from trackside.sampler.gpus import Gpus

    try:
        return [gpu_record(gpu) for gpu in Gpus(quick=False, now=time.monotonic, note=lambda _: None).read().gpus]
    except GpuSourceError:
        return []


def _apple_gpus() -> list[dict[str, Any]]:
    """Return the GPU that every Mac with Apple's own processor has; it uses the system's memory."""
    system = os.uname()
    is_there = system.sysname == "Darwin" and system.machine == "arm64"
    return [gpu_record(GpuReading(gpu_index=0, name="Apple"))] if is_there else []


def try_allocation() -> str | None:
    """Allocate memory on the first GPU: "ok", else the driver's error; None where there is no CUDA driver.

    This calls the driver itself: frameworks belong to the recipe, and nvidia-smi also works on a GPU that hangs.
    """
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    calls: tuple[tuple[str, Callable[[], int]], ...] = (
        ("cuInit", lambda: cuda.cuInit(0)),
        ("cuDeviceGet", lambda: cuda.cuDeviceGet(ctypes.byref(device), 0)),
        ("cuDevicePrimaryCtxRetain", lambda: cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)),
        ("cuCtxSetCurrent", lambda: cuda.cuCtxSetCurrent(context)),
        ("cuMemAlloc", lambda: cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(_PROBE_BYTES))),
        ("cuMemFree", lambda: cuda.cuMemFree_v2(memory)),
        ("cuDevicePrimaryCtxRelease", lambda: cuda.cuDevicePrimaryCtxRelease_v2(device)),
    )
    for name, call in calls:
        result = call()
        if result != 0:
            return "%s returned error %d" % (name, result)
    return "ok"


def cuda_version() -> float | None:
    """Return the newest CUDA version that the driver supports, e.g. 12.4; None where there is no CUDA driver."""
    version = ctypes.c_int()
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except OSError:
        return None
    return version.value // 1000 + version.value % 1000 // 10 / 10


def _driver() -> str | None:
    try:
        with open(_DRIVER_FILE, encoding="utf-8", errors="replace") as file:
            return driver_version(file.readline())
    except OSError:
        return None


def driver_version(line: str) -> str | None:
    """Return the version in the first line of the driver's file.

    >>> driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build")
    '580.159.04'
    """
    words = line.split()
    return next((word for word in words if word.replace(".", "").isdigit() and "." in word), " ".join(words) or None)
