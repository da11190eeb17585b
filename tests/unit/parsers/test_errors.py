"""Which lines tell an error, of which kind, and whether it ends the run."""

from __future__ import annotations

import pytest

from stationmaster.parsers import LogReader


def told(text: str) -> list[tuple[str, bool]]:
    reader = LogReader()
    reader.feed(text.encode() + b"\n")
    return [(error.kind.value, error.fatal) for error in reader.summary().errors]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "oom"),
        ("RuntimeError: CUDA error: out of memory", "oom"),
        ("tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor", "oom"),
        ("RuntimeError: MPS backend out of memory (MPS allocated: 18.13 GB)", "oom"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "cuda"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "cuda"),
        ("AssertionError: Torch not compiled with CUDA enabled", "cuda"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cuda"),
        ("torch.distributed.DistBackendError: NCCL error in: init.cpp", "nccl"),
        ("OSError: [Errno 28] No space left on device: 'out/x.pt'", "disk_full"),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.", "killed"),
        ("subprocess.CalledProcessError: Command 'python' died with <Signals.SIGKILL: 9>.", "killed"),
        ("Killed", "killed"),
        ("huggingface_hub.errors.GatedRepoError: 403 Client Error.", "auth"),
        ("OSError: You are trying to access a gated repo.", "auth"),
        ("wandb.errors.UsageError: api_key not configured (no-tty)", "auth"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/a.png'", "missing_file"),
        ("OSError: org/model does not appear to have a file named config.json", "missing_file"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'train.yaml'", "config"),
        ("yaml.scanner.ScannerError: mapping values are not allowed here", "config"),
        ("pydantic_core._pydantic_core.ValidationError: 2 validation errors for Config", "config"),
        ("train.py: error: the following arguments are required: --data", "config"),
        ("FloatingPointError: Loss became infinite or NaN at iteration=120!", "nan_loss"),
        ("ModuleNotFoundError: No module named 'datasets'", "other"),
        ("KeyError: 'images'", "other"),
        ("Segmentation fault (core dumped)", "other"),
        ("KeyboardInterrupt", "other"),
    ],
)
def test_the_kind_follows_the_wording(line: str, kind: str) -> None:
    assert told(line) == [(kind, True)]


@pytest.mark.parametrize(
    "line",
    [
        "UserWarning: this may lead to CUDA out of memory",
        "Mean squared error: 0.4",
        "If you run out of memory, try gradient checkpointing",
        "0 errors, 3 warnings",
        "[rank0]:[W320 01:57:14.472868074 ProcessGroupNCCL.cpp:1553] Warning: destroy_process_group() was not called",
        "NaN found in latents, replacing with zeros",
        "Cache check failed: model.safetensors not found in local cache.",
        "number of nan iterations:   0",
        "    raise RuntimeError('CUDA out of memory')",
        "node1:12:34 [0] NCCL INFO Bootstrap : Using eth0",
    ],
)
def test_a_line_that_only_sounds_like_an_error_is_none(line: str) -> None:
    assert told(line) == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("ERROR: TensorBoard could not bind to port 6006", "other"),
        ("2025-01-01 10:00:00,000 - uploader - ERROR - upload refused, retrying", "other"),
        ("# OOM during training step, skipping batch 1/3 #", "oom"),
        ("steps: 1%|  | 10/744 [00:30<36:53, 3.02s/it, avr_loss=nan]", "nan_loss"),
    ],
)
def test_a_problem_that_the_run_survives_is_not_fatal(line: str, kind: str) -> None:
    assert told(line) == [(kind, False)]


def test_several_ranks_reporting_one_problem_are_one_error() -> None:
    line = "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. GPU {0} has a total capacity of 24 GiB"
    assert told("\n".join(line.format(rank) for rank in range(4))) == [("oom", True)]


def test_the_cause_is_what_the_launcher_wraps_not_the_launcher() -> None:
    text = "ValueError: bad shape\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError:\ntrain.py FAILED"
    assert told(text) == [("other", True)]


def test_a_launcher_alone_tells_that_something_failed() -> None:
    assert told("train.py FAILED\n  exitcode  : -9 (pid: 7)") == [("killed", True)]


def test_source_lines_of_a_traceback_are_not_errors_of_their_own() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "a.py", line 3, in f\n'
        '    raise OSError("No space left on device")\n'
        "TypeError: odd"
    )
    assert told(text) == [("other", True)]
