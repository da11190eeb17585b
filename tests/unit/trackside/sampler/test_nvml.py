"""GPUs are read from NVML as far as the driver answers."""

from __future__ import annotations

import pytest

from tests.support.machines.nvml import Gpu, StandInNvml
from trackside.sampler.gpu_answer import GpuSourceError
from trackside.sampler.nvml import Nvml
from trackside.sampler.sample import GpuReading

NOT_AVAILABLE = (1 << 64) - 1


def nvml(library: StandInNvml, notes: list[str] | None = None) -> Nvml:
    return Nvml(library, now=lambda: 100.0, note=(notes if notes is not None else []).append)


def test_every_value_of_a_gpu_is_read() -> None:
    answer = nvml(StandInNvml(Gpu(reasons=0x04, processes=[(71, 10 << 30)]))).read()
    assert answer.gpus == (GpuReading(0, "NVIDIA H200", 12.0, 141.0, 97.0, 61.0, 412.5, 650.0, 1755.0, "sw_power_cap"),)
    assert answer.process_memory_gb == {71: 10.0}
    assert (answer.rated_clock_mhz, answer.rated_power_watts) == (1980.0, 700.0)


def test_what_a_gpu_does_not_support_is_none_and_the_rest_is_read() -> None:
    gpu = Gpu(utilization=None)
    gpu.numbers["PowerUsage"] = None
    found = nvml(StandInNvml(gpu)).read().gpus[0]
    assert (found.power_watts, found.utilization_percent) == (None, None)
    assert (found.temperature_c, found.memory_used_gb) == (61.0, 12.0)


def test_an_old_driver_has_older_functions() -> None:
    missing = (
        "nvmlInitWithFlags", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
    )  # fmt: skip
    answer = nvml(StandInNvml(Gpu(reasons=0x20, processes=[(71, 1 << 30)]), missing=missing)).read()
    assert answer.gpus[0].memory_used_gb == 13.0  # that version includes what the driver reserves
    assert answer.gpus[0].throttle == "sw_thermal"
    assert answer.process_memory_gb == {71: 1.0}


def test_memory_of_a_process_on_several_gpus_is_added_and_an_unknown_one_left_out() -> None:
    first = Gpu(processes=[(71, 1 << 30), (72, NOT_AVAILABLE)])
    second = Gpu(processes=[(71, 2 << 30), *((number, 1 << 30) for number in range(1000, 1100))])
    found = nvml(StandInNvml(first, second)).read().process_memory_gb
    assert found[71] == 3.0
    assert 72 not in found
    assert len(found) == 101


@pytest.mark.parametrize(
    ("bits", "reason"),
    [
        (0x01, None),
        (0x02, None),
        (0x04, "sw_power_cap"),
        (0x24, "sw_thermal"),
        (0x08, "hw_power_brake"),
        (0x88, "hw_power_brake"),
        (0x6C, "hw_thermal"),
    ],
)
def test_the_strongest_reason_of_a_slow_clock_counts_and_an_idle_gpu_has_none(bits: int, reason: str | None) -> None:
    assert nvml(StandInNvml(Gpu(reasons=bits))).read().gpus[0].throttle == reason


def test_a_lost_gpu_is_noted_once_and_the_others_are_read() -> None:
    notes: list[str] = []
    library = StandInNvml(Gpu(), Gpu())
    source = nvml(library, notes)
    library.gpus[0].is_lost = True
    for _ in range(3):
        lost, healthy = source.read().gpus
    assert lost == GpuReading(0, "NVIDIA H200", power_limit_watts=None)
    assert healthy.memory_used_gb == 12.0
    assert notes == ["GPU 0 does not answer its driver any more"]
    assert source.read().has_own_memory


def test_a_gpu_without_memory_of_its_own_is_seen() -> None:
    assert not nvml(StandInNvml(Gpu(name="NVIDIA GB10", total=None))).read().has_own_memory


def test_the_parts_of_a_divided_gpu_are_read_with_the_temperature_of_the_whole() -> None:
    parts = [Gpu(name="MIG 1g.18gb", total=16 << 30, used=used << 30, utilization=None) for used in (3, 4)]
    found = nvml(StandInNvml(Gpu(parts=parts))).read().gpus
    assert [(gpu.gpu_index, gpu.memory_used_gb, gpu.temperature_c) for gpu in found] == [(0, 3.0, 61.0), (1, 4.0, 61.0)]


@pytest.mark.parametrize("library", [StandInNvml(), StandInNvml(Gpu(), init_code=18)], ids=["no gpu", "no driver"])
def test_a_library_without_gpus_or_driver_is_no_source(library: StandInNvml) -> None:
    with pytest.raises(GpuSourceError):
        nvml(library)
