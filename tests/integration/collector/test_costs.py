"""What recording adds to a training's imports and disk."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import trackside
from trackside.metrics.database import insert_sample, open_database, transaction
from trackside.sampler.sample import GpuReading, IoReading, MemoryReading, ProcessReading, Sample

SAMPLE_SECONDS = 5
BUDGET_BYTES_PER_HOUR = 50_000_000
A_DAY, AN_HOUR = 24 * 3600, 3600


def test_a_script_that_imports_run_waits_for_nothing_that_only_the_thread_needs() -> None:
    path = str(Path(trackside.__file__).parent.parent)
    code = "import sys; sys.path.insert(0, sys.argv[1]); from trackside import Run; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", code, path], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert not loaded & {"sqlite3", "json", "typing", "re", "subprocess", "ctypes", "trackside.sampler.sampler"}
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "trackside", "__main__"}


@pytest.mark.parametrize(
    ("seconds", "gpus", "processes", "expected_bytes_per_hour"), [(A_DAY, 1, 5, 600_000), (AN_HOUR, 8, 65, 6_000_000)]
)
def test_samples_stay_far_below_their_disk_budget(
    tmp_path: Path, seconds: int, gpus: int, processes: int, expected_bytes_per_hour: int
) -> None:
    """A day of a training on one GPU, and an hour of one on eight with as many workers as cores."""
    database = tmp_path / "aitk_db.db"
    with closing(open_database(str(database))) as connection, transaction(connection):
        for second in range(0, seconds, SAMPLE_SECONDS):
            sample = _sample(1_700_000_000.123 + second, gpus=gpus, processes=processes)
            insert_sample(connection, "0b7d3c5e-72aa-4ac5-9f3b-2f3a9f1c0d5e", sample)
    bytes_per_hour = database.stat().st_size / seconds * 3600
    assert bytes_per_hour < expected_bytes_per_hour < BUDGET_BYTES_PER_HOUR


def _sample(timestamp: float, *, gpus: int, processes: int) -> Sample:
    change = timestamp % 7 / 10
    gpu = GpuReading(0, "NVIDIA H100 80GB HBM3", 70.1 + change, 79.6, 98.0, 64.0, 652.3 + change, 700.0, 1755.0, None)
    return Sample(
        timestamp=timestamp,
        memory=MemoryReading(1007.5, 300.25 + change, 700.75 - change, 0.125),
        main_process_memory_gb=60.3 + change,
        worker_memory_gb=16.7 + change,
        worker_count=processes - 1,
        cpu_utilization_percent=31.4 + change,
        gpus=tuple(gpu._replace(gpu_index=index) for index in range(gpus)),
        processes=tuple(ProcessReading(4000 + place, "worker", 1.1 + change, 35.2, None) for place in range(processes)),
        io=IoReading(2000.5, 900.25 - change, 120.7 + change, 10.2, 0.5, 0.1),
    )
