"""Compares the sampler's NVML readings with nvidia-smi on a machine with an NVIDIA GPU, and measures their cost.

Needs nothing but Python 3.8 and this repository: `python benchmarks/gpu/sampler_check.py`. A process of its own keeps
the GPU busy through CUDA's driver. Prints one JSON line for each value (both readings and their difference) and for
each figure; exits with 1 if a value differs by more than it can change within a second, or a figure is over its budget.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from _sampling import added_mebibytes, percent_of_a_core, training
from trackside.machine.gpu import find_on_path
from trackside.sampler.gpu_answer import GpuAnswer
from trackside.sampler.gpus import Gpus
from trackside.sampler.nvidia_smi import NvidiaSmi
from trackside.sampler.nvml import Nvml, load_library
from trackside.sampler.sampler import Sampler

LOAD_BYTES = 3 << 30
ROUNDS = 5
TAKES, PROGRAM_TAKES = 200, 20
NVML_BUDGET_PERCENT, PROGRAM_BUDGET_PERCENT, BUDGET_MEBIBYTES = 0.1, 1.0, 10.0

#: How far two readings within a second may be apart, for a steady load.
TOLERANCES = {
    "memory_used_gb": 0.05, "memory_total_gb": 0.01, "utilization_percent": 25.0, "temperature_c": 3.0,
    "power_watts": 60.0, "power_limit_watts": 0.1, "clock_mhz": 150.0, "throttle": None, "name": None,
}  # fmt: skip

_LOAD = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
size = ctypes.c_size_t(int(sys.argv[1]))
for code in (
    cuda.cuInit(0),
    cuda.cuDeviceGet(ctypes.byref(device), 0),
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device),
    cuda.cuMemAlloc_v2(ctypes.byref(memory), size),
):
    assert code == 0, code
print("ready", flush=True)
while True:
    for _ in range(50):
        cuda.cuMemsetD8_v2(memory, 1, size)
    cuda.cuCtxSynchronize()
"""


def main() -> int:
    program = find_on_path("nvidia-smi")
    if program is None:
        raise SystemExit("nvidia-smi is not on this machine")
    results = []
    with load() as pid:
        nvml = Nvml(load_library(), now=time.monotonic, note=print)
        results += compare(nvml, program, pid)
        nvml.close()
        show_calls()
        results += costs()
    show_sample()
    return 0 if all(results) else 1


@contextmanager
def load() -> Iterator[int]:
    """Keep the first GPU busy; yields the pid of the process that does it."""
    command = [sys.executable, "-c", _LOAD, str(LOAD_BYTES)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        if running.stdout.readline() != b"ready\n":
            raise SystemExit("the load could not be started")
        time.sleep(3.0)  # temperature, power and clock settle
        yield running.pid
        running.kill()


def compare(nvml: Nvml, program: str, pid: int) -> list[bool]:
    """Print both readings of every value. The one of NVML is the nearer of those before and after nvidia-smi's."""
    results = []
    for number in range(ROUNDS):
        before, by_program, after = nvml.read(), NvidiaSmi(program, now=time.monotonic).read(), nvml.read()
        assert by_program is not None
        for index, gpu in enumerate(by_program.gpus):
            for field, tolerance in TOLERANCES.items():
                ours = [getattr(answer.gpus[index], field) for answer in (before, after)]
                results.append(show(number, f"gpu {index} {field}", ours, getattr(gpu, field), tolerance))
        for field in ("rated_clock_mhz", "rated_power_watts"):
            ours = [getattr(before, field)]
            results.append(show(number, field, ours, getattr(by_program, field), 0.1))
        results.append(show_processes(number, before, by_program, pid))
        time.sleep(1.0)
    return results


def show(number: int, what: str, ours: list[Any], theirs: Any, tolerance: float | None) -> bool:
    known = [value for value in ours if value is not None]
    if tolerance is None or theirs is None or not known:
        nearest, difference = (theirs if theirs in ours else ours[0]), None
        ok = theirs in ours
    else:
        nearest = min(known, key=lambda value: abs(value - theirs))
        difference = round(nearest - theirs, 4)
        ok = abs(difference) <= tolerance
    line = {"round": number, "value": what, "nvml": nearest, "nvidia_smi": theirs, "difference": difference, "ok": ok}
    print(json.dumps(line), flush=True)
    return ok


def show_processes(number: int, ours: GpuAnswer, theirs: GpuAnswer, pid: int) -> bool:
    """In a container the driver may show other pids, or none: both must then agree."""
    same = ours.process_memory_gb.keys() == theirs.process_memory_gb.keys() and all(
        abs(ours.process_memory_gb[key] - theirs.process_memory_gb[key]) < 0.05 for key in theirs.process_memory_gb
    )
    line = {
        "round": number, "value": "process memory by pid", "nvml": ours.process_memory_gb,
        "nvidia_smi": theirs.process_memory_gb, "pid of the load": pid,
        "allocated_gb": LOAD_BYTES / (1 << 30), "ok": same,
    }  # fmt: skip
    print(json.dumps(line), flush=True)
    return same


def costs() -> list[bool]:
    """Print the share of a core and the memory of sampling, beside a training with workers."""

    def no_library() -> Any:
        raise OSError("hidden")

    def by(load_nvml: Callable[[], Any]) -> Callable[[Callable[[], float]], Gpus]:
        return lambda now: Gpus(quick=False, now=now, note=print, load_nvml=load_nvml)

    with training() as trained:
        alone = percent_of_a_core(None, takes=TAKES, gpus=by(load_library))
        nvml = percent_of_a_core(trained, takes=TAKES, gpus=by(load_library))
        smi = percent_of_a_core(trained, takes=PROGRAM_TAKES, gpus=by(no_library))
        added = added_mebibytes(trained)
    return [
        figure("sampler, NVML, without processes: share of a core", alone, "%", NVML_BUDGET_PERCENT),
        figure("sampler, NVML: share of a core", nvml, "%", NVML_BUDGET_PERCENT),
        figure("sampler, nvidia-smi: share of a core", smi, "%", PROGRAM_BUDGET_PERCENT),
        figure("sampler, NVML: memory added to a bare Python", added, "MiB", BUDGET_MEBIBYTES),
    ]


def figure(name: str, value: float, unit: str, budget: float) -> bool:
    ok = value <= budget
    print(json.dumps({"name": name, "value": round(value, 4), "unit": unit, "budget": budget, "ok": ok}), flush=True)
    return ok


class Measured:
    """NVIDIA's library with the CPU and wall seconds of each of its functions."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.seconds: dict[str, list[float]] = {}

    def __getattr__(self, function: str) -> Callable[..., int]:
        call = getattr(self._library, function)

        def measured(*arguments: Any) -> int:
            cpu, wall = time.thread_time(), time.perf_counter()
            code = int(call(*arguments))
            spent = self.seconds.setdefault(function, [0.0, 0.0])
            spent[0] += time.thread_time() - cpu
            spent[1] += time.perf_counter() - wall
            return code

        return measured


def show_calls() -> None:
    """Print the CPU and wall milliseconds of each call, in one reading. What is read rarely is read each time here."""
    library, clock = Measured(load_library()), [1000.0]
    nvml = Nvml(library, now=lambda: clock[0], note=print)
    library.seconds.clear()
    for _ in range(TAKES):
        clock[0] += 1000.0
        nvml.read()
    for function, (cpu, wall) in sorted(library.seconds.items()):
        line = {"call": function, "cpu_ms": round(1000 * cpu / TAKES, 4), "wall_ms": round(1000 * wall / TAKES, 4)}
        print(json.dumps(line), flush=True)
    nvml.close()


def show_sample() -> None:
    """Print one whole sample and the facts, to look at."""
    sampler = Sampler(None, folder=".", note=lambda text: print(json.dumps({"note": text})))
    print(json.dumps({"sample": sampler.take(time.time()).as_record(), "facts": sampler.facts()}), flush=True)
    sampler.close()


if __name__ == "__main__":
    sys.exit(main())
