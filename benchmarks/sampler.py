"""What a sample every 5 s costs beside a training with 4 workers: share of a core, and memory added to a bare Python.

NVML and nvidia-smi are stand-ins here, so their figures show our part alone; `gpu/sampler_check.py` measures the real
ones. The stand-in for nvidia-smi takes 20 ms of CPU time, like the real one on a machine with one GPU.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _report import report
from _sampling import added_mebibytes, percent_of_a_core, training

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.machines.nvml import Gpu, StandInNvml
from trackside.sampler.gpus import Gpus

NVML_BUDGET_PERCENT = 0.1
PROGRAM_BUDGET_PERCENT = 1.0
BUDGET_MEBIBYTES = 10.0
TAKES, PROGRAM_TAKES = 2000, 100
_ROW = "0, NVIDIA H200, 1024, 143771, 97, 61, 412.50, 700.00, 1755, 1980, 700.00, 0x0000000000000004"
_PROGRAM = f"""#!{sys.executable} -IS
import time
while time.process_time() < 0.02:
    pass
print({_ROW!r})
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, training() as pid:
        os.environ["PATH"] = folder
        library = StandInNvml(Gpu(processes=[(pid, 1 << 30)]))
        by_nvml = percent_of_a_core(pid, takes=TAKES, gpus=lambda now: _gpus(now, library))
        report("sampler, NVML (stand-in): share of a core", by_nvml, "%", at_most=NVML_BUDGET_PERCENT)
        none = percent_of_a_core(pid, takes=TAKES, gpus=lambda now: _gpus(now, None))
        report("sampler, no GPU: share of a core", none, "%", at_most=NVML_BUDGET_PERCENT)
        report("sampler: memory added to a bare Python", added_mebibytes(pid), "MiB", at_most=BUDGET_MEBIBYTES)
        program = Path(folder, "nvidia-smi")
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        by_program = percent_of_a_core(pid, takes=PROGRAM_TAKES, gpus=lambda now: _gpus(now, None))
        report("sampler, nvidia-smi (stand-in): share of a core", by_program, "%", at_most=PROGRAM_BUDGET_PERCENT)
    return 0


def _gpus(now: Callable[[], float], library: StandInNvml | None) -> Gpus:
    def load() -> Any:
        if library is None:
            raise OSError("no such library")
        return library

    return Gpus(quick=False, now=now, note=print, load_nvml=load)


if __name__ == "__main__":
    sys.exit(main())
