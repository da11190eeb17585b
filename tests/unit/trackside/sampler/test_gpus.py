"""The first source of GPU readings that works is used, and none of them can hang the sampler."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.nvml import Gpu, StandInNvml
from tests.support.waiting import until
from trackside.sampler.gpu_answer import GpuAnswer, GpuSourceError
from trackside.sampler.gpus import Gpus, UnifiedMemory
from trackside.sampler.nvidia_smi import NvidiaSmi, parse_answer
from trackside.sampler.rocm_smi import parse_amd_smi, parse_rocm_smi
from trackside.sampler.sample import GpuReading, MemoryReading
from trackside.sampler.sampler import Sampler

ROW = "0, NVIDIA H200, 1024, 143771, 97, 61, 412.50, 700.00, 1755, 1980, 700.00, 0x0000000000000004"


class Bench:
    """A folder that is the whole PATH, a clock, and what was noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1000.0
        self.notes: list[str] = []

    def program(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\necho run >> {self.folder}/runs\n{script}\n")
        path.chmod(0o755)

    def runs(self) -> int:
        path = self.folder / "runs"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def gpus(
        self,
        library: StandInNvml | None = None,
        *,
        quick: bool = False,
        limit: float = 5.0,
        environment: Mapping[str, str] | None = None,
    ) -> Gpus:
        def load() -> Any:
            if library is None:
                raise OSError("no such library")
            return library

        return Gpus(
            quick=quick,
            now=lambda: self.now,
            note=self.notes.append,
            load_nvml=load,
            limit_seconds=limit,
            environment=environment or {},
        )


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    before = os.environ["PATH"]
    os.environ["PATH"] = str(tmp_path)
    yield Bench(tmp_path)
    os.environ["PATH"] = before


def failure(read: Callable[[], object]) -> str:
    with pytest.raises(GpuSourceError) as caught:
        read()
    return str(caught.value)


def test_where_nvml_works_no_program_is_started(bench: Bench) -> None:
    bench.program("nvidia-smi", f"echo '{ROW}'")
    assert len(bench.gpus(StandInNvml(Gpu())).read().gpus) == 1
    assert bench.runs() == 0


def test_without_nvml_nvidia_smi_is_asked(bench: Bench) -> None:
    bench.program("nvidia-smi", f"case $1 in *apps*) echo '71, 512';; *) echo '{ROW}';; esac")
    answer = bench.gpus().read()
    expected = GpuReading(0, "NVIDIA H200", 1.0, 143771 / 1024, 97.0, 61.0, 412.5, 700.0, 1755.0, "sw_power_cap")
    assert answer == GpuAnswer((expected,), {71: 0.5}, 1980.0, 700.0)


def test_a_quick_reading_starts_no_program(bench: Bench) -> None:
    bench.program("nvidia-smi", f"echo '{ROW}'")
    assert bench.gpus(quick=True).read() == GpuAnswer()
    assert bench.runs() == 0


def test_a_driver_that_does_not_know_the_newest_field_is_asked_without_it(bench: Bench) -> None:
    bench.program("nvidia-smi", f"case $1 in *event*) exit 2;; *apps*) ;; *) echo '{ROW}';; esac")
    gpus = bench.gpus()
    assert gpus.read().gpus[0].throttle == "sw_power_cap"
    asked = bench.runs()
    bench.now += 59.0
    assert gpus.read().gpus
    assert bench.runs() == asked + 1


def test_a_hanging_nvidia_smi_is_killed_and_after_three_times_asked_ever_less(bench: Bench) -> None:
    bench.program("nvidia-smi", "exec /bin/sleep 1000")
    source = NvidiaSmi(str(bench.folder / "nvidia-smi"), now=lambda: bench.now, limit_seconds=0.05)
    for _ in range(3):
        bench.now += 5.0
        assert failure(source.read) == "nvidia-smi hangs"
    for pause in (60.0, 120.0, 240.0):
        bench.now += pause - 1.0
        assert source.read() is None
        bench.now += 1.0
        assert failure(source.read) == "nvidia-smi hangs"


def test_an_expensive_nvidia_smi_rests_in_proportion(bench: Bench) -> None:
    bench.program("nvidia-smi", f"i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done; echo '{ROW}'")
    gpus = bench.gpus()
    assert gpus.read().gpus
    bench.now += 0.1
    assert gpus.read() == GpuAnswer()
    bench.now += 600.0
    assert gpus.read().gpus


def answers(gpus: Gpus) -> bool:
    try:
        return bool(gpus.read().gpus)
    except GpuSourceError:
        return False


def test_a_call_that_hangs_is_left_alone_and_never_made_twice(bench: Bench) -> None:
    library = StandInNvml(Gpu())
    gpus = bench.gpus(library, limit=0.05)
    assert until(lambda: answers(gpus))
    library.answers.clear()
    before = len(library.calls)
    assert {failure(gpus.read) for _ in range(3)} == {"the GPU's driver has not answered for 0.05 s"}
    assert len(library.calls) == before + 1
    gpus.close()
    library.answers.set()
    assert until(lambda: answers(gpus))


def test_a_sampler_whose_driver_hangs_still_reads_the_rest(bench: Bench) -> None:
    library = StandInNvml(Gpu())
    library.answers.clear()
    gpus = bench.gpus(library, limit=0.05)
    sampler = Sampler(None, folder=str(bench.folder), note=bench.notes.append, gpus=gpus)
    for _ in range(2):
        sample = sampler.take(1000.0)
    assert sample.gpus == ()
    assert sample.memory.total_gb
    assert "platform" not in sampler.facts()
    assert bench.notes == ["the GPUs cannot be read: the GPU's driver has not answered for 0.05 s"]
    library.answers.set()
    assert until(lambda: sampler.take(1000.0).gpus)
    assert sampler.facts()["platform"] == "discrete"


def test_facts_name_the_gpus(bench: Bench) -> None:
    sampler = Sampler(
        None, folder=str(bench.folder), note=bench.notes.append, gpus=bench.gpus(StandInNvml(Gpu(), Gpu()))
    )
    facts = sampler.facts()
    named = {key: facts[key] for key in ("platform", "gpu_count", "gpu_rated_clock_mhz", "gpu_rated_power_watts")}
    assert named == {
        "platform": "discrete", "gpu_count": "2", "gpu_rated_clock_mhz": "1980", "gpu_rated_power_watts": "700",
    }  # fmt: skip


def test_a_machine_without_gpus_is_a_cpu_platform(bench: Bench) -> None:
    facts = Sampler(None, folder=str(bench.folder), note=bench.notes.append, gpus=bench.gpus()).facts()
    assert (facts["platform"], facts["gpu_count"]) == ("cpu", "0")


@pytest.mark.parametrize(
    ("used", "available", "unified"), [(30.0, 90.0, True), (60.0, 98.0, True), (60.0, 70.0, False)]
)
def test_unified_memory_has_the_size_and_the_use_of_the_systems(used: float, available: float, unified: bool) -> None:
    gpu = GpuReading(0, memory_used_gb=30.0, memory_total_gb=128.0)
    memory = MemoryReading(total_gb=127.5, used_gb=used, available_gb=available)
    assert UnifiedMemory().is_seen(GpuAnswer((gpu,)), memory) is unified


def test_one_difference_shows_that_a_gpu_has_memory_of_its_own() -> None:
    pool = UnifiedMemory()
    memory = MemoryReading(total_gb=80.0, used_gb=10.0, available_gb=75.0)
    assert pool.is_seen(GpuAnswer((GpuReading(0, memory_used_gb=10.0, memory_total_gb=80.0),)), memory)
    assert not pool.is_seen(GpuAnswer((GpuReading(0, memory_used_gb=60.0, memory_total_gb=80.0),)), memory)
    assert not pool.is_seen(GpuAnswer((GpuReading(0, memory_used_gb=10.0, memory_total_gb=80.0),)), memory)


def test_a_sample_of_unified_memory_leaves_the_gpus_memory_out(bench: Bench) -> None:
    gpus = bench.gpus(StandInNvml(Gpu(name="NVIDIA GB10", total=None)))
    sampler = Sampler(None, folder=str(bench.folder), note=bench.notes.append, gpus=gpus)
    gpu = sampler.take(1000.0).gpus[0]
    assert (gpu.memory_used_gb, gpu.memory_total_gb, gpu.utilization_percent) == (None, None, 97.0)
    assert sampler.facts()["platform"] == "unified"


def test_values_that_nvidia_smi_does_not_know_are_none() -> None:
    row = "1, Odd, Name, [N/A], [N/A], [Not Supported], 40, [N/A], [N/A], 300, [N/A], [N/A], [N/A]"
    answer = parse_answer(row)
    assert answer.gpus == (GpuReading(1, "Odd, Name", temperature_c=40.0, clock_mhz=300.0),)
    assert not answer.has_own_memory


ROCM = """
{"card0": {"GPU use (%)": "34", "VRAM Total Memory (B)": "68702699520", "VRAM Total Used Memory (B)": "1073741824",
  "Temperature (Sensor edge) (C)": "41.0", "Temperature (Sensor junction) (C)": "44.0",
  "Average Graphics Package Power (W)": "95.0", "Card series": "AMD Instinct MI210"},
 "card10": {"GPU use (%)": "N/A", "Current Socket Graphics Package Power (W)": "130"},
 "system": {"Driver version": "6"}}
"""
AMD = """
[{"gpu": 0, "usage": {"gfx_activity": {"value": 34, "unit": "%"}},
  "power": {"socket_power": {"value": 95, "unit": "W"}},
  "clock": {"gfx_0": {"clk": {"value": 1700, "unit": "MHz"}}},
  "temperature": {"edge": "N/A", "hotspot": {"value": 44, "unit": "C"}},
  "mem_usage": {"total_vram": {"value": 65536, "unit": "MB"}, "used_vram": {"value": 1024, "unit": "MB"}}}]
"""


def test_cards_of_rocm_smi_are_read() -> None:
    assert parse_rocm_smi(ROCM) == (
        GpuReading(0, "AMD Instinct MI210", 1.0, 68702699520 / (1 << 30), 34.0, 41.0, 95.0),
        GpuReading(10, power_watts=130.0),
    )


@pytest.mark.parametrize("text", [AMD, "WARNING: no group render\n" + AMD, '{"gpu_data": ' + AMD + "}"])
def test_cards_of_amd_smi_are_read(text: str) -> None:
    assert parse_amd_smi(text) == (GpuReading(0, "", 1.0, 64.0, 34.0, 44.0, 95.0, clock_mhz=1700.0),)


@pytest.mark.parametrize("name", ["rocm-smi", "amd-smi"])
def test_a_machine_with_amd_cards_is_read_by_its_program(bench: Bench, name: str) -> None:
    (bench.folder / "answer").write_text(ROCM if name == "rocm-smi" else AMD)
    bench.program(name, f"exec /bin/cat {bench.folder}/answer")
    assert bench.gpus().read().gpus[0].memory_used_gb == 1.0


def test_an_output_that_is_not_understood_is_a_failure(bench: Bench) -> None:
    bench.program("rocm-smi", "echo no cards")
    assert failure(bench.gpus().read).startswith("the output of rocm-smi is not understood")


def test_only_the_gpus_of_the_job_are_read_by_nvml(bench: Bench) -> None:
    library = StandInNvml(Gpu(uuid="GPU-aaaa", total=24 << 30), Gpu(uuid="GPU-bbbb", total=48 << 30))
    (gpu,) = bench.gpus(library, environment={"CUDA_VISIBLE_DEVICES": "GPU-bb"}).read().gpus
    assert gpu.memory_total_gb == 48.0
    assert len(bench.gpus(library, environment={"CUDA_VISIBLE_DEVICES": "1"}).read().gpus) == 2, "numbers say nothing"


def test_only_the_gpus_of_the_job_are_asked_of_nvidia_smi(bench: Bench) -> None:
    bench.program("nvidia-smi", f'case "$*" in *--id=GPU-b) echo "{ROW}";; *) exit 9;; esac')
    assert len(bench.gpus(environment={"CUDA_VISIBLE_DEVICES": "GPU-b"}).read().gpus) == 1


def test_a_job_without_gpu_measures_none(bench: Bench) -> None:
    bench.program("nvidia-smi", f'echo "{ROW}"')
    bench.program("rocm-smi", "echo '{}'")
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    assert bench.gpus(StandInNvml(Gpu()), environment=hidden).read() == GpuAnswer()
    assert bench.runs() == 0


def test_only_the_cards_of_the_job_are_read_by_rocm_smi(bench: Bench) -> None:
    cards = '{"card0": {"GPU use (%)": "1"}, "card1": {"GPU use (%)": "2"}}'
    bench.program("rocm-smi", f"echo '{cards}'")
    (gpu,) = bench.gpus(environment={"HIP_VISIBLE_DEVICES": "1"}).read().gpus
    assert gpu.utilization_percent == 2.0
