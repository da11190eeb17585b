"""GPUs are found by the output of their makers' tools; a tool that fails is named, one that is missing is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.model import FoundGpus, GpuMaker
from stationmaster.providers.gpus.finding import find_gpus
from tests.support.asynchronous_tests import asynchronous
from tests.support.machines.gpu_tools import UUIDS, nvidia_gpu, write_nvidia_smi, write_tool

ROCM_SMI = """#!/bin/sh
cat <<'END'
WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status
{"card0": {"VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "1073741824",
           "Card Series": "AMD Radeon RX 7900 XTX", "Card Model": "0x744c", "GFX Version": "gfx1100"},
 "card10": {"VRAM Total Memory (B)": "N/A", "Card Series": "AMD Radeon Graphics"},
 "system": {"Driver version": "6.8.5"}}
END
"""
AMD_SMI = """#!/bin/sh
case "$1" in
static) echo '{"gpu_data": [{"gpu": 0, "asic": {"market_name": "AMD Instinct MI300X"}}]}';;
metric) echo '{"gpu_data": [{"gpu": 0, "mem_usage": {"total_vram": {"value": 196592, "unit": "MB"},
  "used_vram": {"value": 284, "unit": "MB"}, "free_vram": {"value": 196308, "unit": "MB"}}}]}';;
esac
"""
SYSCTL = """#!/bin/sh
echo 'Apple M2 Max'
echo 34359738368
"""
VM_STAT = """#!/bin/sh
cat <<'END'
Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               65536.
Pages active:                            500000.
Pages inactive:                           65536.
Pages speculative:                            0.
Pages throttled:                              0.
Pages wired down:                        100000.
Pages purgeable:                              0.
END
"""


async def found_in(folder: Path, **options: tuple[str, ...]) -> FoundGpus:
    return await find_gpus({"PATH": f"{folder}"}, **options)


@asynchronous
async def test_gpus_of_nvidia_have_their_uuid_and_their_free_memory(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu(free=20480), nvidia_gpu(1, name="NVIDIA H200", total=143771)])
    first, second = (await found_in(tmp_path)).gpus
    assert (first.id, first.name, first.cuda) == (UUIDS[0], "RTX 4090", 13.0)
    assert (round(first.total_gib, 2), first.free_gib) == (23.99, 20.0)
    assert (second.name, round(second.total_gib, 1)) == ("H200", 140.4)


@asynchronous
async def test_a_gpu_that_is_divided_or_unknown_cannot_be_used_and_says_why(tmp_path: Path) -> None:
    divided = {**nvidia_gpu(), "mig.mode.current": "Enabled"}
    unknown = {**nvidia_gpu(1), "memory.total": "[N/A]", "memory.free": "[N/A]"}
    write_nvidia_smi(tmp_path, [divided, unknown])
    reasons = [gpu.unusable for gpu in (await found_in(tmp_path)).gpus]
    assert reasons == ["divided into parts (MIG), which cannot be given to jobs", "its memory is unknown"]


@asynchronous
async def test_only_the_allowed_gpus_are_found(tmp_path: Path) -> None:
    write_nvidia_smi(tmp_path, [nvidia_gpu(), nvidia_gpu(1)])
    assert [gpu.number for gpu in (await found_in(tmp_path, allowed=("1",))).gpus] == [1]
    assert [gpu.number for gpu in (await found_in(tmp_path, allowed=(UUIDS[0][:12],))).gpus] == [0]
    assert await found_in(tmp_path, allowed=()) == FoundGpus(kept_back=2)


@asynchronous
async def test_no_tool_is_no_gpu_and_no_problem(tmp_path: Path) -> None:
    assert await found_in(tmp_path) == FoundGpus()


@asynchronous
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'; exit 18\n",
            "nvidia-smi fails: Failed to initialize NVML: Driver/library version mismatch",
        ),
        ("#!/bin/sh\necho nonsense\n", "nvidia-smi answered what is not understood: 'nonsense'"),
        ("#!/no/such/interpreter\n", "nvidia-smi cannot be started: No such file or directory"),
    ],
)
async def test_a_tool_that_fails_is_named_and_the_others_are_asked(tmp_path: Path, script: str, problem: str) -> None:
    write_tool(tmp_path, "nvidia-smi", script)
    write_tool(tmp_path, "rocm-smi", ROCM_SMI.replace("cat", "/bin/cat"))
    found = await found_in(tmp_path)
    assert found.problems == (problem,)
    assert [gpu.maker for gpu in found.gpus] == [GpuMaker.AMD, GpuMaker.AMD]


@asynchronous
async def test_gpus_of_amd_by_rocm_smi(tmp_path: Path) -> None:
    write_tool(tmp_path, "rocm-smi", ROCM_SMI.replace("cat", "/bin/cat"))
    first, second = (await found_in(tmp_path)).gpus
    assert (first.id, first.name, round(first.total_gib, 1)) == ("0", "AMD Radeon RX 7900 XTX", 24.0)
    assert round(first.total_gib - first.free_gib, 2) == 1.0
    assert (second.id, second.unusable) == ("10", "its memory is unknown")


@asynchronous
async def test_gpus_of_amd_by_amd_smi(tmp_path: Path) -> None:
    write_tool(tmp_path, "amd-smi", AMD_SMI)
    (gpu,) = (await found_in(tmp_path)).gpus
    assert (gpu.name, round(gpu.total_gib), round(gpu.free_gib, 1)) == ("AMD Instinct MI300X", 192, 191.7)


@asynchronous
async def test_the_gpu_of_a_mac_has_the_memory_of_the_system(tmp_path: Path) -> None:
    write_tool(tmp_path, "sysctl", SYSCTL)
    write_tool(tmp_path, "vm_stat", VM_STAT.replace("cat", "/bin/cat"))
    (gpu,) = (await found_in(tmp_path)).gpus
    assert (gpu.maker, gpu.name, gpu.total_gib, gpu.free_gib) == (GpuMaker.APPLE, "Apple M2 Max", 32.0, 2.0)


@asynchronous
async def test_the_sysctl_of_linux_is_no_mac(tmp_path: Path) -> None:
    write_tool(tmp_path, "sysctl", "#!/bin/sh\necho 'sysctl: cannot stat /proc/sys/hw/memsize' >&2; exit 255\n")
    assert await found_in(tmp_path) == FoundGpus()
