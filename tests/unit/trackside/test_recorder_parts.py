"""When the recorder samples, what it reads of a log, and which lines report a lack of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackside.recorder.log_tail import LogTail
from trackside.recorder.memory_errors import find_memory_error
from trackside.recorder.schedule import Schedule


def test_samples_are_due_at_steady_times_whatever_a_sample_takes() -> None:
    schedule = Schedule(5.0, start=100.0)
    moments = [100.0, 100.1, 104.9, 105.4, 107.0, 110.0, 110.1]
    assert [schedule.take_turn(moment) for moment in moments] == [True, False, False, True, False, True, False]
    assert schedule.seconds_left(112.0) == 3.0


def test_after_a_suspension_one_sample_is_due_and_not_all_that_were_missed() -> None:
    schedule = Schedule(5.0, start=0.0)
    assert [schedule.take_turn(moment) for moment in (0.0, 3601.0, 3602.0, 3605.0)] == [True, True, False, True]


REPORTS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.99 GiB",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "Error running job: CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total",
    "RuntimeError: CUDA error: out of memory",
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.76 GiB total capacity)",
    "RuntimeError: HIP out of memory. Tried to allocate 256.00 MiB",
    "RuntimeError: MPS backend out of memory (MPS allocated: 17.81 GB, other allocations: 304.00 MB, max allowed: 18)",
    "[W CUDACachingAllocator.cpp:2910] memory allocation failed with OOM",
    "# OOM during training step, skipping batch 1/3 #",
    "RuntimeError: OOM during training step 3 times in a row, aborting training",
    "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 171798 bytes",
    "ResourceExhaustedError: Graph execution error: OOM when allocating tensor with shape[32,512]",
    "failed to allocate 2.0G: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
    "ncclUnhandledCudaError: Cuda failure 2 'out of memory'",
    "MemoryError",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array",
    "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried",
    "OSError: [Errno 12] Cannot allocate memory",
)

OTHERS = (
    "caption: a bedroom with a zoom lens",
    "BEDROOM 12/40",
    "Loading ROOM_OOMPH.safetensors",
    "To avoid CUDA out of memory errors, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "    except torch.cuda.OutOfMemoryError:",
    "    except MemoryError:",
    "max memory allocated: 12.1 GB",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "RESOURCE_EXHAUSTED: quota of requests per minute",
    "Killed",
    "skip_on_oom: true",
    "a painting of being out of memory.",
)


@pytest.mark.parametrize("line", REPORTS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_a_report_is_found_among_other_lines(line: str, end: str) -> None:
    assert find_memory_error(f"steps: 3%|3/100\r{OTHERS[0]}\n{line}{end}".encode()) == line


@pytest.mark.parametrize("line", OTHERS)
def test_other_lines_are_not_reports(line: str) -> None:
    assert find_memory_error(f"{line}\n".encode()) is None


def test_lines_come_once_and_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tail = LogTail(str(log))
    assert tail.read() == b""
    with log.open("ab", buffering=0) as file:
        file.write(b"one\ntw")
        assert tail.read() == b"one\n"
        assert tail.read() == b""
        file.write(b"o\r3%")
        assert tail.read() == b"two\r"
        assert tail.read(is_last=True) == b"3%"
        assert tail.read(is_last=True) == b""


def test_a_flood_is_skipped_up_to_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 99 + b"\n")
    tail = LogTail(str(log))
    tail.read()
    with log.open("ab") as file:
        file.write((b"y" * 99 + b"\n") * 100_000 + b"the end\n")
    got = tail.read()
    assert len(got) <= 1 << 15
    assert got.endswith(b"the end\n")
    assert tail.read() == b""


def test_a_truncated_log_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a long first line\n")
    tail = LogTail(str(log))
    tail.read()
    log.write_bytes(b"new\n")
    assert tail.read() == b"new\n"
